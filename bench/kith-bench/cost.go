package main

import (
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/alecthomas/kong"

	"kith/bench/suite"
)

// BenchCostCmd is `kith bench cost`.
type BenchCostCmd struct {
	Users  int    `default:"10000" placeholder:"N" help:"Users, at least 250; each follows 50 on average. Default: ${default}."`
	Field  string `placeholder:"TEXT" help:"Only fields whose names contain this, such as User.friends; ×100: all fields of 100 objects."`
	Random int    `placeholder:"N" help:"Measure N random valid queries instead of each field."`
	Dear   bool   `help:"Measure each field with arguments that make it dear, under as many aliases as the default limit allows, as a user who follows thousands; cold with --states cold."`

	benchFlags `kong:"set='bench_states=warm',set='bench_rounds=1',set='bench_heat=0s',set='bench_duration=200ms'"`
}

// Run measures, and prints the table.
func (c *BenchCostCmd) Run(ctx context.Context, k *kong.Context) error {
	config, err := onGraph(c.Users, 50)
	if err != nil {
		return err
	}
	var all []suite.Cost
	err = c.configured(k, config, func(config suite.Config) (err error) {
		if c.Dear {
			all, err = suite.RunDear(ctx, config, regexp.MustCompile(regexp.QuoteMeta(c.Field)))
			return err
		}
		all, err = suite.RunCost(ctx, config, c.Field, c.Random)
		return err
	})
	if err != nil {
		return err
	}
	return c.print(k, all, "state\tfield\tcost\tCPU, µs\tµs a unit\tkB\tbytes a unit\t", func(w io.Writer) {
		for _, one := range all {
			fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t\n", one.State, one.Name, one.Cost, one.CPU, one.MicrosPerUnit(), one.Bytes/1e3, one.Bytes/one.Cost)
		}
	})
}
