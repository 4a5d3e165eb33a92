package main

import (
	"context"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"kith/bench/report"
	"kith/bench/suite"
)

// BenchAppCmd is `kith bench app`.
type BenchAppCmd struct {
	Users      int      `default:"10000" placeholder:"N" help:"Users, at least 250; each follows 50 on average and has 10 posts of the last 30 days. Default: ${default}."`
	Operations []string `default:"app" enum:"${bench_operations}" placeholder:"O" help:"Questions, one after another; app: all, in the app's proportions; ${enum}. Default: ${default}."`

	benchFlags `kong:"set='bench_states=warm',set='bench_rounds=5',set='bench_heat=30s'"`
}

// Run measures, and prints the table.
func (c *BenchAppCmd) Run(ctx context.Context, k *kong.Context) error {
	config, err := onGraph(c.Users, 50)
	if err != nil {
		return err
	}
	if len(c.Engines) == 0 {
		c.Engines = []string{report.SQLite}
	}
	var all []suite.AppRates
	err = c.configured(k, config, func(config suite.Config) (err error) {
		all, err = suite.RunApp(ctx, config, c.Operations)
		return err
	})
	if err != nil {
		return err
	}
	return c.print(k, all, "engine\tstate\toperation\tbaseline, 1/s\tKith, 1/s\tratio\tCPU of a request, baseline, µs\tKith, µs\tSQL statements of Kith\t", func(w io.Writer) {
		for _, one := range all {
			fmt.Fprintf(w, "%s\t%s\t%s\t%.0f\t%.0f\t%.3f\t%s\t%s\t%s\t\n", one.Engine, one.State, one.Operation,
				one.Baseline.PerSecond, one.Kith.PerSecond, one.Ratio, known("%.0f", one.Baseline.GatewayCPU, one.Baseline.DatabaseCPU),
				known("%.0f", one.Kith.GatewayCPU, one.Kith.DatabaseCPU), known("%.3f", one.Kith.Statements, nil))
		}
	})
}

// known writes the sum of two figures, of which the second may be unknown.
func known(format string, a, b *float64) string {
	switch {
	case a == nil:
		return "?"
	case b == nil:
		return fmt.Sprintf(format, *a)
	}
	return fmt.Sprintf(format, *a+*b)
}
