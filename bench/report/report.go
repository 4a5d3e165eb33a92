// Package report keeps what `kith bench` has measured, as JSON, and makes the tables of bench/results/standard.md from it.
package report

import (
	"math"
	"slices"

	"kith/bench"
)

// Report is one run.
type Report struct {
	Kind        string  `json:"kind"` // one of the kinds below
	Command     string  `json:"command"`
	Date        string  `json:"date"` // 2026-11-20
	Machine     Machine `json:"machine"`
	Connections int     `json:"connections"`
	Rounds      int     `json:"rounds"`
	Seconds     float64 `json:"secondsPerRound"`
	Sizes       []Size  `json:"sizes"`
}

// Kinds of runs.
const (
	Standard = "standard"
	Several  = "several"
)

// Machine is what everything ran on: gateways, databases and the load.
type Machine struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	System  string `json:"system"`
	Go      string `json:"go"`
	MariaDB string `json:"mariadb,omitempty"`
	Redis   string `json:"redis,omitempty"`

	// Load is the load average of the last minute before the run, 0 if it is unknown. It shows how busy others kept the machine.
	Load float64 `json:"loadBefore"`
}

// Size is what was measured on graphs of one size.
type Size struct {
	Users      int    `json:"users"`
	Edges      int    `json:"edges"`
	Sonyflake  bool   `json:"sonyflake"`
	MixedUsers int    `json:"mixedUsers,omitempty"` // of the mixed load's own graph
	MixedEdges int    `json:"mixedEdges,omitempty"`
	Cells      []Cell `json:"cells"`
}

// Cell is one question put to one subject.
type Cell struct {
	Engine   string `json:"engine"` // one of Engines
	State    string `json:"state"`  // Cold, Warm or Baseline
	Question string `json:"question"`
	Figures
}

// Engines, in the order of tables.
const (
	SQLite       = "sqlite"
	MariaDB      = "mariadb"
	MariaDBRedis = "mariadb+redis"
)

// Engines are all of them.
var Engines = []string{SQLite, MariaDB, MariaDBRedis}

// States of a subject: Kith without caches and with them, and the hand-written handler.
const (
	Cold     = "cold"
	Warm     = "warm"
	Baseline = "baseline"

	// Of several gateways: with Redis as their cache, and with Redis for events only.
	Shared     = "cache in Redis"
	EventsOnly = "events only"
	NoRedis    = "no Redis"
	Restarted  = "restarted" // one of them, with nothing in its memory
)

// Figures are what was measured. Wrong, incomplete and failed answers are counted in Errors and
// Requests, and in no other figure. Costs are for each request, and null if they are unknown.
type Figures struct {
	PerSecond float64 `json:"perSecond"` // good answers
	P50       float64 `json:"p50Ms"`
	P99       float64 `json:"p99Ms"`
	Max       float64 `json:"maxMs"`
	Requests  int     `json:"requests"`
	Errors    int     `json:"errors"`
	Error     string  `json:"firstError,omitempty"`

	GatewayCPU  *float64 `json:"gatewayCpuMicros"`
	DatabaseCPU *float64 `json:"databaseCpuMicros"` // MariaDB's and Redis's; SQLite is in the gateway
	Statements  *float64 `json:"statements"`
	Allocated   *float64 `json:"allocatedBytes"`

	// Kinds are the requests of a load of several kinds, in the order of the load.
	Kinds []Kind `json:"kinds,omitempty"`
}

// Kind is the requests of one kind.
type Kind struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"` // of all good answers
	P50   float64 `json:"p50Ms"`
	P99   float64 `json:"p99Ms"`
	Slow  float64 `json:"slow"` // their share of the hundredth of all good answers that took longest
	Time  float64 `json:"time"` // their share of the time that all good answers took together
}

// FiguresOf makes figures of a result.
func FiguresOf(r bench.Result) Figures {
	each := func(total, times float64) *float64 {
		if math.IsNaN(total) || r.Requests == 0 {
			return nil
		}
		value := total * times / float64(r.Requests)
		return &value
	}
	const micros = 1e6
	f := Figures{
		PerSecond: r.PerSecond(), P50: millis(r.Latencies, 50), P99: millis(r.Latencies, 99), Max: millis(r.Latencies, 100),
		Requests: r.Requests, Errors: r.Errors,
		GatewayCPU: each(r.Gateway, micros), DatabaseCPU: each(r.Databases, micros),
		Statements: each(r.Statements, 1), Allocated: each(r.Allocated, 1),
	}
	if r.Error != nil {
		f.Error = r.Error.Error()
	}
	f.Kinds = kindsOf(r)
	return f
}

func kindsOf(r bench.Result) (kinds []Kind) {
	longest := r.Percentile(99)
	slow, time := r.Beyond(longest), r.Total()
	for _, name := range slices.Concat(bench.MixKinds(), bench.AppOperations()) {
		if l := r.Kinds[name]; len(l) > 0 {
			kinds = append(kinds, Kind{
				Name: name, Share: float64(len(l)) / float64(len(r.Latencies)), P50: millis(l, 50), P99: millis(l, 99),
				Slow: float64(l.Beyond(longest)) / float64(max(slow, 1)), Time: l.Total().Seconds() / time.Seconds(),
			})
		}
	}
	return kinds
}

func millis(l bench.Latencies, percent float64) float64 {
	return l.Percentile(percent).Seconds() * 1e3
}

// Find returns a cell, nil if it was not measured.
func (s *Size) Find(engine, state, question string) *Cell {
	for i := range s.Cells {
		if c := &s.Cells[i]; c.Engine == engine && c.State == state && c.Question == question {
			return c
		}
	}
	return nil
}

// Ratio is how many times as fast as the baseline on the same tables a cell is; 0 if there is no
// baseline. For MariaDB with Redis, the baseline is that of MariaDB.
func (s *Size) Ratio(c *Cell) float64 {
	engine := c.Engine
	if engine == MariaDBRedis {
		engine = MariaDB
	}
	baseline := s.Find(engine, Baseline, c.Question)
	if baseline == nil || baseline.PerSecond == 0 {
		return 0
	}
	return c.PerSecond / baseline.PerSecond
}

// Questions lists what was asked, in the order of asking.
func (s *Size) Questions() []string {
	var names []string
	for _, c := range s.Cells {
		if !slices.Contains(names, c.Question) {
			names = append(names, c.Question)
		}
	}
	return names
}
