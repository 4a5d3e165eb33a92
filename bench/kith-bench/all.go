package main

import (
	"context"
	"errors"
	"fmt"
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
	suite.Flags

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
	return suite.Config{Users: users, Follows: follows}, nil
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

// configured completes the configuration, and runs.
func (f *benchFlags) configured(k *kong.Context, config suite.Config, run func(suite.Config) error) (err error) {
	if f.Connections < 1 || f.Duration <= 0 || f.Rounds < 1 || f.Heat < 0 {
		return errors.New("--connections, --duration and --rounds must be greater than 0, --heat not less")
	}
	if config.Program, config.Baseline, err = f.programs(); err != nil {
		return err
	}
	config.Flags = f.Flags
	if config.Folder, err = os.MkdirTemp(f.Folder, "kith-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(config.Folder)) }()
	began := time.Now()
	config.Log = func(format string, args ...any) {
		fmt.Fprintf(k.Stderr, "%4.0fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	return run(config)
}

// measure measures and reports.
func (f *benchFlags) measure(
	ctx context.Context, k *kong.Context, kind string, config suite.Config, run func(context.Context, suite.Config) (report.Size, report.Machine, error),
) error {
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

// printed measures, and prints the figures as JSON, or as a table whose lines are of cells between tabs.
func printed[T any](f *benchFlags, k *kong.Context, config suite.Config, run func(suite.Config) ([]T, error), head string, line func(T) string) (all []T, err error) {
	err = f.configured(k, config, func(config suite.Config) (err error) {
		all, err = run(config)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case f.JSON():
		return all, cli.WriteJSON(k.Stdout, all)
	}
	w := tabwriter.NewWriter(k.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, head)
	for _, one := range all {
		fmt.Fprintln(w, line(one))
	}
	return all, w.Flush()
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
	for _, server := range []string{f.MariaDB, f.Redis} {
		if server != suite.Auto {
			text = strings.ReplaceAll(text, server, "…")
		}
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
