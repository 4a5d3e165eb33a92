package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"kith/bench"
	"kith/bench/report"
	"kith/bench/suite"
	"kith/cli"
)

// benchFlags say what is measured, and how long.
type benchFlags struct {
	cli.Output
	Engines     []string      `placeholder:"E" enum:"sqlite,mariadb,mariadb+redis" help:"Stores to measure on: sqlite, mariadb, mariadb+redis."`
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

	program string // the program that is measured; empty: kith, beside this one
	self    string // the program that has the baseline; empty: this one
}

// BenchAllCmd is `kith bench` and `kith bench all`.
type BenchAllCmd struct {
	Users      int      `default:"50000" placeholder:"N" help:"Users, at least 250. Default: ${default}."`
	Follows    int      `default:"50" placeholder:"N" help:"Average number of follows per user. Default: ${default}."`
	MixedUsers int      `default:"50000" placeholder:"N" help:"Users in the mixed load's own graph. Default: ${default}."`
	Questions  []string `placeholder:"Q" help:"Questions to measure: ${bench_questions}, mixed. Default: all."`
	benchFlags
}

// Run measures, prints the tables and writes the figures. If there were wrong answers, it returns an error after that.
func (c *BenchAllCmd) Run(ctx context.Context, k *kong.Context) error {
	config, err := asking(c.Users, c.Follows, c.MixedUsers, c.Questions)
	if err != nil {
		return err
	}
	if len(c.Engines) == 0 {
		c.Engines = report.Engines
	}
	return c.measure(ctx, k, report.Standard, config, suite.Run)
}

// onGraph is a run on a graph.
func onGraph(users, follows int) (suite.Config, error) {
	if users < bench.Community {
		return suite.Config{}, fmt.Errorf("--users: %d is less than one community, %d", users, bench.Community)
	}
	if follows < bench.Celebrities || follows > 2*bench.Community {
		return suite.Config{}, fmt.Errorf("--follows: %d is not between %d and %d", follows, bench.Celebrities, 2*bench.Community)
	}
	return suite.Config{Graphs: []suite.Graph{{Users: users, Edges: follows * users}}}, nil
}

// asking is a run of the named questions, or of all and the mixed load, which has a graph of its own.
func asking(users, follows, mixedUsers int, names []string) (config suite.Config, err error) {
	if config, err = onGraph(users, follows); err != nil {
		return config, err
	}
	if mixedUsers < bench.Community {
		return config, fmt.Errorf("--mixed-users: %d is less than one community, %d", mixedUsers, bench.Community)
	}
	if len(names) == 0 {
		config.Questions, config.MixedUsers = bench.Questions, mixedUsers
	}
	for _, name := range names {
		q := bench.QuestionByName(name)
		switch {
		case name == bench.MixName:
			config.MixedUsers = mixedUsers
		case q == nil:
			return config, fmt.Errorf("--questions: %q is none of %s", name, strings.Join(bench.QuestionNames(), ", "))
		default:
			config.Questions = append(config.Questions, q)
		}
	}
	return config, nil
}

// measuring is [suite.Run], or a function of the same kind.
type measuring func(context.Context, suite.Config) (report.Size, report.Machine, error)

// configured completes the configuration, and runs.
func (f *benchFlags) configured(k *kong.Context, config suite.Config, run func(suite.Config) error) (err error) {
	if f.Connections < 1 || f.Duration <= 0 || f.Rounds < 1 || f.Heat < 0 {
		return errors.New("--connections, --duration and --rounds must be greater than 0, --heat not less")
	}
	if config.Program, config.Baseline, err = f.programs(); err != nil {
		return err
	}
	if config.Folder, err = os.MkdirTemp(f.Folder, "kith-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(config.Folder)) }()
	config.Engines, config.States, config.MariaDB, config.Redis = f.Engines, f.States, f.MariaDB, f.Redis
	config.CheckEvery = f.CheckEvery
	config.Seed, config.Sonyflake, config.Draw = f.Seed, f.Sonyflake, f.Draw
	config.Connections, config.Rounds, config.Duration, config.Heat = f.Connections, f.Rounds, f.Duration, f.Heat
	config.FirstWarmup, config.Warmup = f.Duration/4, f.Duration/10
	began := time.Now()
	config.Log = func(format string, args ...any) {
		fmt.Fprintf(k.Stderr, "%4.0fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	return run(config)
}

// measure measures and reports.
func (f *benchFlags) measure(ctx context.Context, k *kong.Context, kind string, config suite.Config, run measuring) error {
	r := report.Report{
		Kind: kind, Command: f.command(k), Date: time.Now().UTC().Format(time.DateOnly),
		Connections: f.Connections, Rounds: f.Rounds, Seconds: f.Duration.Seconds(),
	}
	err := f.configured(k, config, func(config suite.Config) (err error) {
		r.Sizes = make([]report.Size, 1)
		r.Sizes[0], r.Machine, err = run(ctx, config)
		return err
	})
	if err != nil {
		return err
	}
	if !f.JSON() {
		r.WriteTables(k.Stdout)
	} else if err := cli.WriteJSON(k.Stdout, &r); err != nil {
		return err
	}
	return wrongAnswers(&r)
}

// print prints figures as JSON, or as a table whose lines are of cells between tabs.
func (f *benchFlags) print(k *kong.Context, figures any, head string, lines func(w io.Writer)) error {
	if f.JSON() {
		return cli.WriteJSON(k.Stdout, figures)
	}
	w := tabwriter.NewWriter(k.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, head)
	lines(w)
	return w.Flush()
}

// programs returns the paths of kith and of this program.
func (f *benchFlags) programs() (kith, self string, err error) {
	if f.program != "" {
		return f.program, f.self, nil
	}
	if self, err = os.Executable(); err != nil {
		return "", "", err
	}
	kith = filepath.Join(filepath.Dir(self), "kith")
	if _, err := os.Stat(kith); err != nil {
		return "", "", fmt.Errorf("there is no kith next to %s to measure: go build -o %s . makes it", self, kith)
	}
	return kith, self, nil
}

// command is how the program was called, without arguments that may hold a password.
func (f *benchFlags) command(k *kong.Context) string {
	text := "kith " + strings.Join(k.Args, " ")
	if f.MariaDB != suite.Auto {
		text = strings.ReplaceAll(text, f.MariaDB, "DSN")
	}
	if f.Redis != suite.Auto {
		text = strings.ReplaceAll(text, f.Redis, "URL")
	}
	return text
}

// wrongAnswers returns an error if there were any.
func wrongAnswers(r *report.Report) error {
	for _, s := range r.Sizes {
		for _, c := range s.Cells {
			if c.Errors > 0 {
				return fmt.Errorf("%s %s, %s: %d of %d answers were wrong, the first: %s", c.Engine, c.State, c.Question, c.Errors, c.Requests, c.Error)
			}
		}
	}
	return nil
}
