package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"kith/bench/suite"
	"kith/cli"
)

// BenchCostCmd is `kith bench cost`.
type BenchCostCmd struct {
	Users  int    `default:"10000" placeholder:"N" help:"Users, at least 250; each follows 50 on average. Default: ${default}."`
	Field  string `placeholder:"TEXT" help:"Only fields whose names contain this, such as User.friends; ×100: all fields of 100 objects."`
	Random int    `placeholder:"N" help:"Measure N random valid queries instead of each field."`

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
		all, err = suite.RunCost(ctx, config, c.Field, c.Random)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON() {
		return cli.WriteJSON(k.Stdout, all)
	}
	w := tabwriter.NewWriter(k.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "state\tfield\tcost\tCPU, µs\tµs a unit\tkB\tbytes a unit\t")
	for _, one := range all {
		fmt.Fprintf(w, "%s\t%s\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t\n", one.State, one.Name, one.Cost, one.CPU, one.MicrosPerUnit(), one.Bytes/1e3, one.Bytes/one.Cost)
	}
	return w.Flush()
}
