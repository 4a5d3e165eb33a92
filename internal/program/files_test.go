package program_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// TestFilesPointOneWay: in the great packages files stand above one another, too. A file uses what others declare, and in the best order of
// the files few of these uses point up: who reads the package from the bottom meets as many things that are explained further above.
// The numbers only go down.
func TestFilesPointOneWay(t *testing.T) {
	t.Parallel()
	for folder, most := range map[string]int{"storage": 14, "resolvers": 2, "resolvers/prefetch": 0, "gateway": 0, "gateway/exchange": 1, "gateway/quota": 1, "gateway/documents": 0, "gateway/live": 0} {
		up := usesUp(usesOfFiles(t, "../../"+folder))
		check.That(t, len(up) <= most, "in %s %d uses point up, want at most %d:\n%s", folder, len(up), most, strings.Join(up, "\n"))
	}
	circle := map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "c"}, "e": nil}
	check.Equal(t, "in a circle of three, what points up", len(usesUp(circle)), 1)
}

// usesOfFiles lists the files of a package of which each file uses a declaration. Methods have no file: their types have.
func usesOfFiles(t *testing.T, folder string) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob(folder + "/*.go")
	must.OK(t, err)
	files, declaredIn := map[string]*ast.File{}, map[string]string{}
	for _, path := range paths {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || name == "doc.go" {
			continue
		}
		files[name], err = parser.ParseFile(token.NewFileSet(), path, nil, 0)
		must.OK(t, err)
		for declared := range files[name].Scope.Objects {
			declaredIn[declared] = name
		}
	}
	uses := map[string][]string{}
	for name, file := range files {
		uses[name] = nil
		for _, used := range file.Unresolved {
			if in, ok := declaredIn[used.Name]; ok && !slices.Contains(uses[name], in) {
				uses[name] = append(uses[name], in)
			}
		}
	}
	return uses
}

// usesUp puts files in an order, from the top, and lists the uses that point up in it: each file is put where the fewest of its uses and
// of the uses of it point up, until none can be put better.
func usesUp(uses map[string][]string) (up []string) {
	order := slices.Sorted(maps.Keys(uses))
	for moved := true; moved; {
		moved = false
		for _, file := range slices.Clone(order) {
			from := slices.Index(order, file)
			others := slices.Delete(slices.Clone(order), from, from+1)
			gains, best, at := 0, 0, from // of a place, from the first one on, against that place
			gain := make([]int, len(order))
			for place, above := range others {
				if slices.Contains(uses[above], file) { // no longer points up
					gains++
				}
				if slices.Contains(uses[file], above) { // points up now
					gains--
				}
				gain[place+1] = gains
			}
			for place := range gain {
				if better := gain[place] - gain[from]; better > best {
					best, at = better, place
				}
			}
			if best > 0 {
				order, moved = slices.Insert(others, at, file), true
			}
		}
	}
	for i, file := range order {
		for _, above := range order[:i] {
			if slices.Contains(uses[file], above) {
				up = append(up, file+" uses "+above)
			}
		}
	}
	return up
}
