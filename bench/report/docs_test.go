package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// docs/performance.md and its charts are made from the figures in bench/results:
//
//	kith bench report --page docs/performance.md bench/results/standard.json bench/results/growth.json
func TestDocumentsAreMadeFromTheFigures(t *testing.T) {
	const docs, results = "../../docs", "../results"
	var reports []*Report
	for _, name := range []string{"standard.json", "growth.json"} {
		r, err := Read(filepath.Join(results, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range r.Sizes {
			for _, c := range size.Cells {
				// The page reports how many were wrong. Of a graph that has just been made, long lists are
				// incomplete until they are packed.
				if c.Errors > 0 && (r.Kind != Growth || c.Errors*100 > c.Requests) {
					t.Errorf("%s: %s %s, %s: %d answers were wrong", name, c.Engine, c.State, c.Question, c.Errors)
				}
			}
		}
		reports = append(reports, r)
	}
	page, err := os.ReadFile(filepath.Join(docs, "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, charts, err := Page(page, "performance", reports...)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, want) {
		t.Error("docs/performance.md is not made from bench/results: run kith bench report --page docs/performance.md bench/results/standard.json bench/results/growth.json")
	}
	there, err := filepath.Glob(filepath.Join(docs, "performance", "*.svg"))
	if err != nil || len(there) != len(charts) {
		t.Errorf("%d charts are there, want %d: %v", len(there), len(charts), err)
	}
	for name, chart := range charts {
		got, err := os.ReadFile(filepath.Join(docs, "performance", name))
		if err != nil || string(got) != chart {
			t.Errorf("docs/performance/%s is not made from bench/results: %v", name, err)
		}
	}
}
