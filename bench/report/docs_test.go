package report

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"kith/internal/must"
)

// The pages of the standard run and of the program's speed have the figures of bench/results/standard.json:
//
//	go test ./bench/report -update
func TestPagesHaveTheFiguresOfTheStandardRun(t *testing.T) {
	var r Report
	text, err := os.ReadFile("../results/standard.json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	must.OK(t, err)
	size := &r.Sizes[0]
	for _, c := range size.Cells {
		if c.Errors > 0 {
			t.Errorf("%s %s, %s: %d answers were wrong", c.Engine, c.State, c.Question, c.Errors)
		}
	}
	var run strings.Builder
	fmt.Fprint(&run, "\n## Standard run\n\n")
	r.writeOrigin(&run)
	for _, engine := range Engines {
		size.writeRates(&run, engine)
	}
	hasBetween(t, "../results/standard.md", "kith bench: from here on it is generated", "kith bench: up to here", run.String())
	asked := map[string]string{
		"q1": "a user by id, with counts", "q2": "20 followings with names", "q3": "relations to 50 others", "q4": "common followings of two",
		"q5r": "common followers of two", "q5c": "of two famous users", "q5t": "of two celebrities", "q6": "20 suggestions", "mixed": "the mixed load",
	}
	var table strings.Builder
	table.WriteString("\n| | SQLite | MariaDB | MariaDB with Redis |\n|---|---:|---:|---:|\n")
	for _, question := range size.Questions() {
		cells := []string{asked[question]}
		for _, engine := range Engines {
			cells = append(cells, size.ratioText(size.Find(engine, Warm, question)))
		}
		fmt.Fprintf(&table, "| %s |\n", strings.Join(cells, " | "))
	}
	const figures = "ratios of bench/results/standard.json"
	hasBetween(t, "../../docs/inside/performance.md", "begin: "+figures, "end: "+figures, table.String())
}

// hasBetween checks what a page has between two marks, or writes it there.
func hasBetween(t *testing.T, path, begin, end, want string) {
	t.Helper()
	page, err := os.ReadFile(path)
	must.OK(t, err)
	begin, end = "<!-- "+begin+" -->\n", "<!-- "+end+" -->\n"
	before, rest, opened := strings.Cut(string(page), begin)
	has, after, closed := strings.Cut(rest, end)
	switch want += "\n"; {
	case !opened || !closed:
		t.Errorf("%s does not say where its figures are", path)
	case has == want:
	case *update:
		must.OK(t, os.WriteFile(path, []byte(before+begin+want+end+after), 0o644))
	default:
		t.Errorf("%s: the figures are now\n%s", path, want)
	}
}
