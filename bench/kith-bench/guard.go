package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"kith/bench/report"
	"kith/bench/suite"
)

// BenchGuardCmd is `kith bench guard`.
type BenchGuardCmd struct {
	Before    string   `arg:"" help:"The other build of kith, such as the last release's."`
	Least     float64  `default:"0.93" placeholder:"RATIO" help:"Lowest acceptable ratio of rates, this build to the other. Default: ${default}."`
	Users     int      `default:"10000" placeholder:"N" help:"Users, at least 250; each follows 50 on average. Default: ${default}."`
	Questions []string `placeholder:"Q" help:"Questions to measure: ${bench_questions}, mixed. Default: all."`

	benchFlags `kong:"set='bench_states=warm',set='bench_rounds=5',set='bench_heat=5s'"`
}

// Run compares, and prints the table. If a question is slower than allowed, it returns an error after that.
func (c *BenchGuardCmd) Run(ctx context.Context, k *kong.Context) error {
	config, err := asking(c.Users, 50, c.Users, c.Questions)
	if err != nil {
		return err
	}
	if len(c.Engines) == 0 {
		c.Engines = []string{report.SQLite}
	}
	var compared []suite.Compared
	err = c.configured(k, config, func(config suite.Config) (err error) {
		compared, err = suite.RunGuard(ctx, config, c.Before)
		return err
	})
	if err != nil {
		return err
	}
	err = c.print(k, compared, "engine\tstate\tquestion\tbefore, 1/s\tafter, 1/s\trate\tCPU of a request\t", func(w io.Writer) {
		for _, one := range compared {
			fmt.Fprintf(w, "%s\t%s\t%s\t%.0f\t%.0f\t%.3f\t%.3f\t\n", one.Engine, one.State, one.Question, one.Before, one.After, one.Rate, one.CPU)
		}
	})
	if err != nil {
		return err
	}
	var slow error
	for _, one := range compared {
		if one.Rate < c.Least {
			slow = errors.Join(slow, fmt.Errorf("%s %s, %s: %.3f of the rate before, at least %g is allowed", one.Engine, one.State, one.Question, one.Rate, c.Least))
		}
	}
	return slow
}
