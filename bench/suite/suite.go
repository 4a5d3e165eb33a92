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
	Flags
	Program  string // kith's executable
	Baseline string // kith-bench's, which is the baseline

	Users, Follows int // of the graph; follows of a user, on average
	Questions      []*bench.Question
	MixedUsers     int // of the mixed load's graph; 0 means that there is no mixed load

	Log func(format string, args ...any) // reports what is being done
}

// Flags are what the commands that measure have in common.
type Flags struct {
	Engines     []string      `default:"${bench_engines}" placeholder:"E" enum:"sqlite,mariadb,mariadb+redis" help:"Stores to measure on: sqlite, mariadb, mariadb+redis."`
	States      []string      `default:"${bench_states}" enum:"baseline,cold,warm" placeholder:"S" help:"Variants to measure: the hand-written baseline, Kith without its caches (cold) and with them (warm). Default: ${default}."`
	MariaDB     string        `name:"mariadb" default:"auto" placeholder:"DSN" help:"Database server on which databases may be created and dropped; auto: start a private one. Default: ${default}."`
	Redis       string        `name:"redis-server" default:"auto" placeholder:"URL" help:"Redis that may be filled with test data; auto: start a private one. Default: ${default}."`
	CheckEvery  int           `default:"50" placeholder:"N" help:"Decode and fully check one answer in N: ids, order, counts, and in the mixed load names and follows against its own writes. The others are searched for errors, nulls and incomplete lists. Default: ${default}."`
	Seed        uint64        `default:"42" placeholder:"N" help:"Random seed of the graph and the requests. Default: ${default}."`
	Sonyflake   bool          `help:"63-bit ids as Sonyflake makes them, instead of 1, 2, 3 …"`
	Connections int           `default:"16" placeholder:"N" help:"Concurrent requests. Default: ${default}."`
	Rounds      int           `default:"${bench_rounds}" placeholder:"N" help:"Rounds of each question, alternating between the programs. Default: ${default}."`
	Duration    time.Duration `default:"${bench_duration}" help:"Time of each measurement. Default: ${default}."`
	Heat        time.Duration `default:"${bench_heat}" help:"Time to fill the caches of a warm gateway before measuring. Default: ${default}."`
	Draw        bench.Draw    `placeholder:"BY" default:"users" enum:"users,followers,followings,zipf" help:"How users are drawn: uniformly (users), in proportion to followers or followings, or by Zipf's law (zipf). Default: ${default}."`
	Folder      string        `placeholder:"PATH" help:"Folder for stores, in a subfolder removed at the end. Default: the system's temporary folder."`
}

// Auto starts a private server.
const Auto = "auto"

// Run measures everything.
func Run(ctx context.Context, c Config) (size report.Size, machine report.Machine, err error) {
	err = within(ctx, c, func(r *run) (err error) {
		size, err = r.measure(ctx)
		machine = r.machine
		return err
	})
	return size, machine, err
}

// within measures with the servers that it takes. It stops everything that it has started.
func within(ctx context.Context, c Config, measure func(*run) error) (err error) {
	r := &run{Config: c, machine: describeMachine()}
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.openServers(ctx); err != nil {
		return err
	}
	return measure(r)
}

// eachState measures on each engine, in each state of Kith.
func eachState[T any](ctx context.Context, c Config, measure func(r *run, engine, state string) ([]T, error)) (all []T, err error) {
	err = within(ctx, c, func(r *run) error {
		for _, engine := range c.Engines {
			for _, state := range c.States {
				if state == report.Baseline {
					continue
				}
				some, err := measure(r, engine, state)
				if err != nil {
					return fmt.Errorf("%s %s: %w", engine, state, err)
				}
				all = append(all, some...)
			}
		}
		return nil
	})
	return all, err
}

// graph is what questions are about.
func (c Config) graph() *bench.Graph {
	graph := bench.NewGraph(c.Users, c.Seed)
	graph.Degree, graph.Spread, graph.Draw = c.Follows, c.Sonyflake, c.Draw
	return graph
}

// mixedGraph is that of the mixed load.
func (c Config) mixedGraph() *bench.Graph {
	graph := bench.NewGraph(c.MixedUsers, c.Seed)
	graph.Degrees, graph.Spread = bench.PublishedDegrees, c.Sonyflake
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

// measure asks everything.
func (r *run) measure(ctx context.Context) (report.Size, error) {
	graph := r.graph()
	measured := report.Size{Users: graph.Users, Sonyflake: r.Sonyflake}
	for _, family := range [][]string{{report.SQLite}, {report.MariaDB, report.MariaDBRedis}} { // that share tables, and so the baseline
		family = slices.DeleteFunc(family, func(e string) bool { return !slices.Contains(r.Engines, e) })
		if len(family) > 0 && len(r.Questions) > 0 {
			if err := r.askQuestions(ctx, family, graph, &measured); err != nil {
				return measured, fmt.Errorf("%s: %w", family[0], err)
			}
		}
		if len(family) > 0 && r.MixedUsers > 0 {
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
	location := "" // of the latest store
	for _, s := range subjects {
		switch {
		case shared != "" && !s.wantsToBeAlone():
			s.location = shared
			continue
		case s.engine == report.SQLite && location != "":
			location, err = r.copyStore(location)
		default:
			location, into.Edges, err = r.makeStore(ctx, s.engine, graph)
		}
		if err != nil {
			return err
		}
		if s.location = location; !s.wantsToBeAlone() {
			shared = location
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
	graph := r.mixedGraph()
	subjects := r.subjectsOf(family)
	defer func() { err = errors.Join(err, stopAll(subjects)) }()
	for _, s := range subjects {
		location, edges, err := r.makeStore(ctx, s.engine, graph)
		if err != nil {
			return err
		}
		into.MixedUsers, into.MixedEdges = graph.Users, edges
		if s.mix, err = bench.NewMix(graph, []byte(r.secret)); err != nil {
			return err
		}
		if s.program, err = r.start(ctx, s, location); err != nil {
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
	load.Warmup, load.Duration = r.Duration/10, r.Duration
	if round == 0 { // pages are read, and plans are made
		load.Warmup = r.Duration / 4
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
