package report

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kith/bench"
	"kith/internal/must"
)

var update = flag.Bool("update", false, "write testdata and the pages anew")

func figure(n float64) *float64 { return &n }

// standard is a run on two engines with two questions. In the second question on MariaDB the
// baseline failed now and then, and costs are unknown.
func standard() *Report {
	cell := func(engine, state, question string, rate, cpu float64) Cell {
		return Cell{engine, state, question, Figures{
			PerSecond: rate, P50: 1.234, P99: 5.678, Max: 10, Requests: 1000,
			GatewayCPU: figure(cpu), Statements: figure(1.5), Allocated: figure(12345),
		}}
	}
	mixed := cell(MariaDB, Baseline, "mixed", 5000, 100)
	mixed.Errors, mixed.Error = 2, "no"
	mixed.GatewayCPU, mixed.Statements, mixed.Allocated = nil, nil, nil
	mixed.Kinds = []Kind{{"user", 0.9, 1, 2, 0.25, 0.6}, {"deleteAccount", 0.1, 30.5, 60, 0.75, 0.4}}
	q1 := cell(MariaDBRedis, Warm, "q1", 20_000, 40)
	q1.DatabaseCPU = figure(3.4)
	return &Report{
		Kind: Standard, Command: "kith bench", Date: "2026-11-20", Connections: 16, Rounds: 2, Seconds: 1.5,
		Machine: Machine{CPU: "Some & CPU", Cores: 2, System: "linux/amd64", Go: "go1.26", MariaDB: "10.11", Load: 0.25},
		Sizes: []Size{{Users: 50_000, Edges: 2_461_630, MixedUsers: 1000, MixedEdges: 5000, Cells: []Cell{
			cell(SQLite, Baseline, "q1", 10_000, 50), cell(SQLite, Cold, "q1", 2_500, 300), cell(SQLite, Warm, "q1", 15_000, 60),
			cell(MariaDB, Baseline, "q1", 10_000, 50), cell(MariaDB, Cold, "q1", 5_000, 200), q1,
			mixed, cell(MariaDB, Warm, "mixed", 10_000, 150),
		}}},
	}
}

func TestRatio(t *testing.T) {
	size := &standard().Sizes[0]
	for _, c := range []struct {
		engine, state, question string
		want                    float64
	}{
		{SQLite, Cold, "q1", 0.25}, {SQLite, Warm, "q1", 1.5}, {SQLite, Baseline, "q1", 1}, {MariaDB, Cold, "q1", 0.5},
		{MariaDBRedis, Warm, "q1", 2}, // compared with MariaDB's baseline
		{MariaDB, Warm, "mixed", 2},
	} {
		cell := size.Find(c.engine, c.state, c.question)
		if cell == nil {
			t.Fatalf("%v is not found", c)
		}
		if got := size.Ratio(cell); got != c.want {
			t.Errorf("%v: ratio %v", c, got)
		}
	}
	if c := size.Find(SQLite, Warm, "q2"); c != nil {
		t.Errorf("found %v", c)
	}
	if got := size.Ratio(&Cell{SQLite, Warm, "q2", Figures{PerSecond: 1}}); got != 0 {
		t.Errorf("beside no baseline the ratio is %v", got)
	}
}

// Costs are per request, including wrong answers. Rates and times count only good answers.
func TestFiguresOfAResult(t *testing.T) {
	ms := time.Millisecond
	f := FiguresOf(bench.Result{
		Requests: 4, Errors: 1, Error: errors.New("no"), Elapsed: 2 * time.Second, Latencies: bench.Latencies{1 * ms, 2 * ms, 3 * ms},
		Usage: bench.Usage{Gateway: 0.002, Databases: math.NaN(), Statements: 6, Allocated: 4000},
	})
	if f.PerSecond != 1.5 || math.Abs(f.P50-2) > 1e-9 || f.Max != 3 || f.Requests != 4 || f.Errors != 1 || f.Error != "no" {
		t.Errorf("%+v", f)
	}
	if *f.GatewayCPU != 500 || f.DatabaseCPU != nil || *f.Statements != 1.5 || *f.Allocated != 1000 {
		t.Errorf("%+v", f)
	}
}

// The tables are equal to those in testdata. The flag -update writes them.
func TestTablesAreAsBefore(t *testing.T) {
	var got bytes.Buffer
	standard().WriteTables(&got)
	path := filepath.Join("testdata", "standard.md")
	if *update {
		must.OK(t, os.WriteFile(path, got.Bytes(), 0o644))
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s is now\n%s\n%v", path, &got, err)
	}
}
