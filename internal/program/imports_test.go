package program_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// floors are the top-level folders, the highest first. Each may import only folders of lower
// floors. bench and internal are not on a floor: they may import anything.
var floors = [][]string{
	{"cli"},
	{"cluster", "files", "gateway", "resolvers"},
	{"accounts", "loaders", "reconcile", "social"},
	{"replication"},
	{"examples", "graph", "web"},
	{"storage"},
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	for name, imports := range importsOfPackages(t) {
		for _, imported := range imports {
			check.That(t, !wrongWay(t, name, imported), "%s imports %s", name, imported)
		}
	}
	for _, wrong := range [][2]string{
		{"kith/storage/cache/localcache", "kith/loaders"}, {"kith/social", "kith/loaders"}, {"kith/resolvers", "kith/gateway"},
		{"kith/gateway", "kith/bench"}, {"kith/cli", "kith/internal/testenv"}, {"kith/storage/sqlstore", "kith/internal/properties"},
		{"kith/storage/sqlstore", "kith/internal/storagetest/oracle"},
	} {
		check.That(t, wrongWay(t, wrong[0], wrong[1]), "%s could import %s", wrong[0], wrong[1])
	}
}

// importsOfPackages lists what each package of the module imports, without its tests and without packages of tests alone.
func importsOfPackages(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.Command("go", "list", "-f", "{{if .GoFiles}}{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{end}}", "./...")
	list.Dir = "../.."
	out, err := list.Output()
	must.OK(t, err)
	packages := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if names := strings.Fields(line); len(names) > 0 {
			packages[names[0]] = names[1:]
		}
	}
	must.Least(t, "packages", len(packages), 50)
	return packages
}

// TestFoldersAreFew: what the system consists of can be seen from its top-level folders.
func TestFoldersAreFew(t *testing.T) {
	t.Parallel()
	const mostFolders, mostWithPackages = 19, 16
	folders := map[string]bool{}
	for name := range importsOfPackages(t) {
		if folder, ok := topFolder(name); ok {
			folders[folder] = true
		}
	}
	if len(folders) > mostWithPackages {
		t.Errorf("%d folders hold packages, want at most %d: %v", len(folders), mostWithPackages, slices.Sorted(maps.Keys(folders)))
	}
	tracked := exec.Command("git", "ls-tree", "-d", "--name-only", "HEAD")
	tracked.Dir = "../.."
	out, err := tracked.Output()
	if err != nil {
		t.Skip("no git here: ", err)
	}
	top := strings.Fields(string(out))
	check.That(t, len(top) <= mostFolders+2, "%d folders at the top, want at most %d: %v", len(top), mostFolders+2, top) // .ci and .github, which are for machines
}

func wrongWay(t *testing.T, from, to string) bool {
	a, fromKith := topFolder(from)
	b, toKith := topFolder(to)
	if !fromKith || !toKith || a == b || a == "bench" || a == "internal" {
		return false
	}
	if b == "bench" || b == "internal" {
		return true
	}
	return floorOf(t, a) >= floorOf(t, b)
}

// topFolder is the top-level folder of a package. The program's own package and docs have none.
func topFolder(name string) (folder string, ok bool) {
	rest, ok := strings.CutPrefix(name, "kith/")
	folder, _, _ = strings.Cut(rest, "/")
	return folder, ok && folder != "docs" && folder != "scripts"
}

func floorOf(t *testing.T, folder string) int {
	t.Helper()
	at := slices.IndexFunc(floors, func(floor []string) bool { return slices.Contains(floor, folder) })
	check.That(t, at >= 0, "the folder %s is on no floor", folder)
	return at
}
