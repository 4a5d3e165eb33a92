package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The pages and their charts are made from the figures in bench/results:
//
//	kith bench report --page docs/inside/performance.md bench/results/standard.json
//	kith bench report --page docs/inside/scale.md bench/results/scale-size.json bench/results/scale-shards.json bench/results/scale-memory.json
func TestDocumentsAreMadeFromTheFigures(t *testing.T) {
	for page, figures := range map[string][]string{
		"performance": {"standard.json"},
		"scale":       {"scale-size.json", "scale-shards.json", "scale-memory.json"},
	} {
		t.Run(page, func(t *testing.T) { isMadeFrom(t, page, figures) })
	}
}

func isMadeFrom(t *testing.T, name string, figures []string) {
	const docs, results = "../../docs/inside", "../results"
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
	page, err := os.ReadFile(filepath.Join(docs, name+".md"))
	if err != nil {
		t.Fatal(err)
	}
	want, charts, err := Page(page, name, reports...)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, want) {
		t.Errorf("docs/inside/%s.md is not made from bench/results: run kith bench report as said above", name)
	}
	there, err := filepath.Glob(filepath.Join(docs, name, "*.svg"))
	if err != nil || len(there) != len(charts) {
		t.Errorf("%d charts are there, want %d: %v", len(there), len(charts), err)
	}
	for chart, text := range charts {
		got, err := os.ReadFile(filepath.Join(docs, name, chart))
		if err != nil || string(got) != text {
			t.Errorf("docs/inside/%s/%s is not made from bench/results: %v", name, chart, err)
		}
	}
}
