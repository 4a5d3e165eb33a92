package sim

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

// checkedBy is the comment of a line of the page that names what checks it: properties of this package, by their constants, and tests.
var checkedBy = regexp.MustCompile(`<!--([\w,]+)-->`)

// TestEachGuaranteeIsChecked looks at each line of docs/reference/guarantees.md that promises something.
func TestEachGuaranteeIsChecked(t *testing.T) {
	page := must.File(t, "../../docs/reference/guarantees.md")
	known := namesOfChecks(t)
	_, promises, _ := strings.Cut(string(page), "\n## ")
	checked, lines := map[string]bool{}, strings.Split(promises, "\n")
	for i, line := range lines[1:] {
		isHead := i+2 < len(lines) && strings.HasPrefix(lines[i+2], "|---")
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|---") || strings.HasSuffix(line, ":") || isHead {
			continue
		}
		by := checkedBy.FindStringSubmatch(line)
		if by == nil {
			t.Errorf("nothing is named that checks the line %q", line)
			continue
		}
		for _, name := range strings.Split(by[1], ",") {
			checked[name] = true
			check.That(t, known[name], "%s, which is to check the line %q, is neither a property of internal/sim nor a test", name, line)
		}
	}
	for _, name := range properties(t) {
		check.That(t, checked[name], "no line of the page names the property %s", name)
	}
}

// properties are the constants of world_test.go.
func properties(t *testing.T) (names []string) {
	text := must.File(t, "world_test.go")
	_, list, _ := strings.Cut(string(text), "// Properties,")
	list, _, _ = strings.Cut(list, "\n)\n")
	for _, found := range regexp.MustCompile(`(?m)^\t(\w+) += "`).FindAllStringSubmatch(list, -1) {
		names = append(names, found[1])
	}
	return names
}

// namesOfChecks are the properties, and all tests of the repository.
func namesOfChecks(t *testing.T) map[string]bool {
	known := map[string]bool{}
	for _, name := range properties(t) {
		known[name] = true
	}
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range test.FindAllStringSubmatch(string(text), -1) {
			known[found[1]] = true
		}
		return err
	})
	must.That(t, err == nil && len(known) >= 1000, "%d names: %v", len(known), err)
	return known
}
