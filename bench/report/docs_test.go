package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The pages and their charts are made from the figures in bench/results:
//
//	kith bench report --page bench/results/standard.md bench/results/standard.json
//	kith bench report --page bench/results/scale.md bench/results/scale-size.json bench/results/scale-shards.json bench/results/scale-memory.json
func TestDocumentsAreMadeFromTheFigures(t *testing.T) {
	for page, figures := range map[string][]string{
		"standard": {"standard.json"},
		"scale":    {"scale-size.json", "scale-shards.json", "scale-memory.json"},
	} {
		t.Run(page, func(t *testing.T) { isMadeFrom(t, page, figures) })
	}
}

func isMadeFrom(t *testing.T, name string, figures []string) {
	const results = "../results"
	var reports []*Report
	for _, name := range figures {
		r, err := Read(filepath.Join(results, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range r.Sizes {
			for _, c := range size.Cells {
				// The page reports how many answers were wrong. Long lists of a new graph are incomplete until they are packed.
				if c.Errors > 0 && (r.Kind != Growth || c.Errors*100 > c.Requests) {
					t.Errorf("%s: %s %s, %s: %d answers were wrong", name, c.Engine, c.State, c.Question, c.Errors)
				}
			}
		}
		reports = append(reports, r)
	}
	page, err := os.ReadFile(filepath.Join(results, name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	want, charts, err := Page(page, name, reports...)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, want) {
		t.Errorf("bench/results/%s.md is not made from the figures: run kith bench report as said above", name)
	}
	there, err := filepath.Glob(filepath.Join(results, name, "*.svg"))
	if err != nil || len(there) != len(charts) {
		t.Errorf("%d charts are there, want %d: %v", len(there), len(charts), err)
	}
	for chart, text := range charts {
		got, err := os.ReadFile(filepath.Join(results, name, chart))
		if err != nil || string(got) != text {
			t.Errorf("bench/results/%s/%s is not made from the figures: %v", name, chart, err)
		}
	}
}

// The table of docs/inside/performance.md has the ratios of warm gateways:
//
//	go test ./bench/report -run Ratios -update
func TestRatiosAreOfTheStandardRun(t *testing.T) {
	const path, begin, end = "../../docs/inside/performance.md", "<!-- begin: ratios of bench/results/standard.json -->\n", "<!-- end: ratios of bench/results/standard.json -->\n"
	r, err := Read("../results/standard.json")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(page), begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatal("the page does not say where its table is")
	}
	asked := map[string]string{
		"q1": "a user by id, with counts", "q2": "20 followings with names", "q3": "relations to 50 others", "q4": "common followings of two",
		"q5r": "common followers of two", "q5c": "of two famous users", "q5t": "of two celebrities", "q6": "20 suggestions", "mixed": "the mixed load",
	}
	var table strings.Builder
	table.WriteString("\n| | SQLite | MariaDB | MariaDB with Redis |\n|---|---:|---:|---:|\n")
	size := r.Sizes[0]
	for _, question := range size.Questions() {
		cells := []string{asked[question]}
		for _, engine := range Engines {
			cells = append(cells, size.ratioText(size.Find(engine, Warm, question)))
		}
		fmt.Fprintf(&table, "| %s |\n", strings.Join(cells, " | "))
	}
	want := before + begin + table.String() + "\n" + end + after
	switch {
	case want == string(page):
	case *update:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: the ratios are now\n%s", path, table.String())
	}
}
