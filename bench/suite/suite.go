// Package suite measures Kith on stores of its own making: the program itself, in processes of its own, on SQLite, on MariaDB and on
// MariaDB with Redis, without its caches and with them. Each question is asked in turn with the hand-written baseline over the same tables.
package suite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"kith/bench"
	"kith/bench/report"
)

// Config says what to measure.
type Config struct {
	Program  string   // kith's executable
	Baseline string   // kith-bench's, which is the baseline
	Folder   string   // for stores and logs, made by the caller
	Engines  []string // of report.Engines
	States   []string // of Cold, Warm and Baseline

	// MariaDB is the DSN of a server, with the right to create databases; Auto starts a private one.
	// Redis is the URL of a server; Auto starts a private one, too.
	MariaDB, Redis string

	Graphs    []Graph
	Sonyflake bool
	Seed      uint64

	Questions []*bench.Question
	// MixedUsers is how many users the mixed load's graph has; 0 means that there is no mixed load.
	MixedUsers int

	Connections int
	Rounds      int
	Duration    time.Duration // of each question and subject in each round

	// Warmup is how long is asked before each of these without counting; FirstWarmup is the same in
	// the first round, when pages are read and plans are made.
	Warmup, FirstWarmup time.Duration

	// Heat is how long all users may be asked about, to fill caches, before a question is asked of a
	// warm gateway for the first time: each once, or as Draw has it if that is not all alike.
	Heat time.Duration

	Draw bench.Draw // whom questions are about

	// CheckEvery is how many answers of a load there are to one that is checked in full; see [bench.Load].
	CheckEvery int

	// Log reports what is being done.
	Log func(format string, args ...any)
}

// Auto starts a private server.
const Auto = "auto"

// Graph is the size of a graph.
type Graph struct{ Users, Edges int }

// Run measures everything. It stops everything that it has started.
func Run(ctx context.Context, c Config) (size report.Size, machine report.Machine, err error) {
	r := &run{Config: c, machine: describeMachine()}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.openServers(ctx); err != nil {
		return size, r.machine, err
	}
	size, err = r.measure(ctx, c.Graphs[0])
	return size, r.machine, err
}

// graphOf is the graph of a size.
func (c Config) graphOf(size Graph) *bench.Graph {
	graph := bench.NewGraph(size.Users, c.Seed)
	graph.Degree, graph.Spread, graph.Draw = max(1, size.Edges/size.Users), c.Sonyflake, c.Draw
	return graph
}

// run is what is under way.
type run struct {
	Config
	servers
	machine report.Machine
	secret  string // signs the writers' tokens
	stores  int    // made so far
}

// subject is a program to which questions are put.
type subject struct {
	engine, state string
	build         string   // another build of kith; "": the one that is measured
	redundancy    string   // "": sync
	env           []string // further settings
	location      string
	program       *program
	mix           *bench.Mix // its own, because it knows what was written
	rounds        []bench.Result
}

func (s *subject) name() string { return s.engine + " " + s.state }

// families are the engines that share tables, and so the baseline: with Redis and without.
func (r *run) families() [][]string {
	var families [][]string
	for _, family := range [][]string{{report.SQLite}, {report.MariaDB, report.MariaDBRedis}} {
		family = slices.DeleteFunc(family, func(e string) bool { return !slices.Contains(r.Engines, e) })
		if len(family) > 0 {
			families = append(families, family)
		}
	}
	return families
}

// subjectsOf lists the subjects of one family of engines, the baseline first.
func (r *run) subjectsOf(family []string) []*subject {
	var all []*subject
	if slices.Contains(r.States, report.Baseline) {
		all = append(all, &subject{engine: family[0], state: report.Baseline})
		if all[0].engine == report.MariaDBRedis {
			all[0].engine = report.MariaDB
		}
	}
	for _, engine := range family {
		for _, state := range []string{report.Cold, report.Warm} {
			if slices.Contains(r.States, state) {
				all = append(all, &subject{engine: engine, state: state})
			}
		}
	}
	return all
}

// measure asks everything about graphs of one size.
func (r *run) measure(ctx context.Context, size Graph) (report.Size, error) {
	graph := r.graphOf(size)
	measured := report.Size{Users: graph.Users, Sonyflake: r.Sonyflake}
	for _, family := range r.families() {
		if len(r.Questions) > 0 {
			if err := r.askQuestions(ctx, family, graph, &measured); err != nil {
				return measured, fmt.Errorf("%s: %w", family[0], err)
			}
		}
		if r.MixedUsers > 0 {
			if err := r.askMix(ctx, family, &measured); err != nil {
				return measured, fmt.Errorf("%s, mixed: %w", family[0], err)
			}
		}
	}
	return measured, nil
}

// askQuestions puts the questions to all subjects in turn, with one store for those that may share it.
func (r *run) askQuestions(ctx context.Context, family []string, graph *bench.Graph, into *report.Size) (err error) {
	subjects := r.subjectsOf(family)
	defer func() { err = errors.Join(err, stopAll(subjects)) }()
	shared := ""
	var made madeStore
	for _, s := range subjects {
		switch {
		case shared != "" && !s.wantsToBeAlone():
			s.location = shared
			continue
		case s.engine == report.SQLite && made.location != "":
			made.location, err = r.copyStore(made.location)
		default:
			made, err = r.makeStore(ctx, s.engine, graph)
			into.Edges = made.edges
		}
		if err != nil {
			return err
		}
		if s.location = made.location; !s.wantsToBeAlone() {
			shared = made.location
		}
	}
	for _, s := range subjects {
		if s.program, err = r.start(ctx, s, s.location); err != nil {
			return err
		}
	}
	for _, q := range r.Questions {
		if err := r.heatAll(ctx, subjects, graph, q); err != nil {
			return err
		}
		if err := r.inRounds(ctx, subjects, graph, func(*subject) bench.Workload { return q }, into); err != nil {
			return err
		}
	}
	return nil
}

// wantsToBeAlone reports whether a subject must have its store to itself. A gateway that does not hear of others' writes keeps nothing in
// memory while there are others on its store, and gateways with a Redis do not run beside others without it.
func (s *subject) wantsToBeAlone() bool {
	return s.state == report.Warm || s.engine == report.MariaDBRedis
}

// heatAll lets the gateways that keep something in memory read it, one after another.
func (r *run) heatAll(ctx context.Context, subjects []*subject, graph *bench.Graph, q *bench.Question) error {
	for _, s := range subjects {
		if s.state != report.Warm || r.Heat == 0 {
			continue
		}
		load := r.load(s, graph)
		load.Duration = r.Heat
		load.EachOnce = !q.OfFamous() && (graph.Draw == "" || graph.Draw == bench.DrawUsers)
		result, err := load.Run(ctx, q)
		if err != nil {
			return err
		}
		r.Log("%s %s: %d asked in %s to heat it", s.name(), q.Name, result.Requests, result.Elapsed.Round(100*time.Millisecond))
	}
	return nil
}

// askMix puts the mixed load, which writes, to each subject, on a store of its own.
func (r *run) askMix(ctx context.Context, family []string, into *report.Size) (err error) {
	graph := bench.NewGraph(r.MixedUsers, r.Seed)
	graph.Degrees, graph.Spread = bench.PublishedDegrees, r.Sonyflake
	subjects := r.subjectsOf(family)
	defer func() { err = errors.Join(err, stopAll(subjects)) }()
	for _, s := range subjects {
		made, err := r.makeStore(ctx, s.engine, graph)
		if err != nil {
			return err
		}
		into.MixedUsers, into.MixedEdges = graph.Users, made.edges
		if s.mix, err = bench.NewMix(graph, []byte(r.secret)); err != nil {
			return err
		}
		if s.program, err = r.start(ctx, s, made.location); err != nil {
			return err
		}
	}
	if err := r.heatAll(ctx, subjects, graph, bench.QuestionByName("q2")); err != nil {
		return err
	}
	return r.inRounds(ctx, subjects, graph, func(s *subject) bench.Workload { return s.mix }, into)
}

// inRounds asks all subjects one after another, round by round, so that other load on the machine affects all of them.
func (r *run) inRounds(ctx context.Context, subjects []*subject, graph *bench.Graph, of func(*subject) bench.Workload, into *report.Size) (err error) {
	for round := range r.Rounds {
		for _, s := range subjects {
			result, err := r.round(ctx, round, s, graph, of(s))
			if err != nil {
				return err
			}
			s.rounds = append(s.rounds, result)
		}
	}
	for _, s := range subjects {
		all := bench.Merge(s.rounds)
		s.rounds = nil
		cell := report.Cell{Engine: s.engine, State: s.state, Question: all.Question, Figures: report.FiguresOf(all)}
		into.Cells = append(into.Cells, cell)
		r.Log("%s %s: %.0f/s, p99 %.1f ms, %d wrong", s.name(), cell.Question, cell.PerSecond, cell.P99, cell.Errors)
		if all.Error != nil {
			r.Log("%s %s: the first wrong answer: %v", s.name(), cell.Question, all.Error)
		}
	}
	return nil
}

// round asks a subject once.
func (r *run) round(ctx context.Context, round int, s *subject, graph *bench.Graph, what bench.Workload) (bench.Result, error) {
	load := r.load(s, graph)
	load.Seed += uint64(round) << 32
	load.Warmup, load.Duration = r.Warmup, r.Duration
	if round == 0 {
		load.Warmup = r.FirstWarmup
	}
	result, err := load.Run(ctx, what)
	if err != nil {
		err = fmt.Errorf("%s: %w", s.name(), err)
	}
	return result, err
}

func (r *run) load(s *subject, graph *bench.Graph) bench.Load {
	return bench.Load{
		URL: s.program.url, Admin: s.program.admin, Graph: graph, Connections: r.Connections, Seed: r.Seed, CheckEvery: r.CheckEvery, Databases: r.pidsOf(s.engine),
	}
}

func stopAll(subjects []*subject) error {
	var errs []error
	for _, s := range subjects {
		if s.program != nil {
			errs = append(errs, s.program.Stop())
		}
	}
	return errors.Join(errs...)
}

// path is the path of a file or folder of the run.
func (r *run) path(name string) string { return filepath.Join(r.Folder, name) }
