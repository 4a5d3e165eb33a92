package program_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// floors are the top-level folders, the highest first. Each may import only folders of lower
// floors. bench and internal are not on a floor: they may import anything.
var floors = [][]string{
	{"cli"},
	{"deployment", "exporter", "gateway", "importer", "resolvers"},
	{"graphfile"},
	{"accounts", "reconcile"},
	{"identity", "loaders", "replication", "social"},
	{"examples", "graph", "web"},
	{"storage"},
}

// shared may be imported by every package, although it is in internal. The suite of the stores,
// which contains tests, may import the packages that tests share, and the product imports nothing of it.
const shared = "kith/internal/sleep"

func isSuite(name string) bool { return strings.HasPrefix(name+"/", "kith/storage/storagetest/") }

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	list := exec.Command("go", "list", "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}", "./...")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(packages) < 50 {
		t.Fatalf("%d packages", len(packages))
	}
	for _, line := range packages {
		names := strings.Fields(line)
		for _, imported := range names[1:] {
			if wrongWay(t, names[0], imported) {
				t.Errorf("%s imports %s", names[0], imported)
			}
		}
	}
	for _, wrong := range [][2]string{
		{"kith/storage/localcache", "kith/loaders"}, {"kith/social", "kith/loaders"}, {"kith/resolvers", "kith/gateway"},
		{"kith/gateway", "kith/bench"}, {"kith/cli", "kith/internal/testenv"}, {"kith/storage/sqlstore", "kith/internal/properties"}, {"kith/storage/storagetest", "kith/loaders"},
		{"kith/storage/sqlstore", "kith/storage/storagetest/oracle"},
	} {
		if !wrongWay(t, wrong[0], wrong[1]) {
			t.Errorf("%s could import %s", wrong[0], wrong[1])
		}
	}
}

func wrongWay(t *testing.T, from, to string) bool {
	a, fromKith := topFolder(from)
	b, toKith := topFolder(to)
	if isSuite(to) {
		return !isSuite(from) && a != "bench" && a != "internal"
	}
	if !fromKith || !toKith || a == b || a == "bench" || a == "internal" || to == shared || isSuite(from) && b == "internal" {
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
	if at < 0 {
		t.Errorf("the folder %s is on no floor", folder)
	}
	return at
}
