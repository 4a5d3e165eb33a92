package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
)

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	const source = `package p

func f(a, b int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	if a < b && a > 0 {
		return g(a, b), nil
	}
	_ = make([]int, a-1, a+1)
	_ = make(map[int]int, a+1)
	_ = max(a, b)
	return a + b, fmt.Errorf("%d of %d", a, b)
}
`
	must.OK(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600))
	must.OK(t, os.WriteFile(filepath.Join(dir, "p_test.go"), []byte("package p\nvar x = 1 < 2\n"), 0o600))
	changes, err := changesOf(dir)
	must.OK(t, err)
	var got []string
	for _, c := range changes {
		lines := strings.Split(c.text(), "\n")
		got = append(got, strings.TrimSpace(lines[c.line-1]))
	}
	want := []string{
		"if false && err != nil {",
		"if !(a < b && a > 0) {", "if a < b || a > 0 {", "if a <= b && a > 0 {", "if a < b && a >= 0 {",
		"return g(b, a), nil",
		"_ = make([]int, a+1, a+1)",
		`return a - b, fmt.Errorf("%d of %d", a, b)`,
	}
	check.That(t, slices.Equal(got, want), "changes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}

// A change that a test notices is not listed. A change that no test notices is.
func TestSurvivorsAreReported(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module p\n\ngo 1.24\n",
		"p.go":      "package p\n\nfunc less(a, b int) bool { return a < b }\n\nfunc more(a, b int) bool { return a > b }\n",
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestLess(t *testing.T) {\n\tif less(1, 1) {\n\t\tt.Error()\n\t}\n}\n",
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Setenv("GOWORK", "off") // a module of its own
	t.Chdir(dir)
	survivors, err := mutate(".", 10, 1)
	check.That(t, err == nil && survivors == 1, "%d went unnoticed, %v; want 1", survivors, err)
}
