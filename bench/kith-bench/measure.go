package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"kith/bench"
	"kith/bench/report"
	"kith/bench/suite"
	"kith/cli"
)

// BenchSeveralCmd is `kith bench several`.
type BenchSeveralCmd struct {
	Users      int           `default:"50000" placeholder:"N" help:"Users, at least 250. Default: ${default}."`
	Gateways   int           `default:"3" placeholder:"N" help:"Gateways on the store, 1 to 16. Default: ${default}."`
	CacheBytes string        `placeholder:"BYTES" help:"--cache-bytes of each gateway. Default: its own."`
	Late       time.Duration `default:"1s" placeholder:"TIME" help:"After what time at most a gateway has to show what was written through another. Default: ${default}."`

	benchFlags `kong:"set='bench_engines=mariadb+redis'"`
}

// Validate is called by kong.
func (c *BenchSeveralCmd) Validate() error {
	const fewest, most = 1, 16
	switch {
	case c.Users < bench.Community:
		return fmt.Errorf("--users: %d is less than one community, %d", c.Users, bench.Community)
	case c.Gateways < fewest || c.Gateways > most:
		return fmt.Errorf("--gateways: %d is not from %d to %d", c.Gateways, fewest, most)
	case !slices.Equal(c.Engines, []string{report.MariaDBRedis}):
		return errors.New("--engines: several gateways are measured on MariaDB with Redis")
	}
	return nil
}

// Run measures, and prints the table. If there were wrong answers, it returns an error after that. The gateways have the mode of
// --redundancy.
func (c *BenchSeveralCmd) Run(ctx context.Context, settings *cli.Settings, k *kong.Context) error {
	return c.measure(ctx, k, report.Several, suite.Config{MixedUsers: c.Users}, func(ctx context.Context, config suite.Config) (report.Size, report.Machine, error) {
		return suite.RunSeveral(ctx, suite.SeveralConfig{Config: config, Gateways: c.Gateways, Redundancy: settings.Redundancy, CacheBytes: c.CacheBytes, Late: c.Late})
	})
}

// BenchGuardCmd is `kith bench guard`.
type BenchGuardCmd struct {
	Before    string   `arg:"" help:"The other build of kith, such as the last release's."`
	Least     float64  `default:"0.93" placeholder:"RATIO" help:"Lowest acceptable ratio of rates, this build to the other. Default: ${default}."`
	Users     int      `default:"10000" placeholder:"N" help:"Users, at least 250; each follows 50 on average. Default: ${default}."`
	Questions []string `placeholder:"Q" help:"Questions to measure: ${bench_questions}, mixed. Default: all."`

	benchFlags `kong:"set='bench_engines=sqlite',set='bench_states=warm',set='bench_rounds=5',set='bench_heat=5s'"`
}

// Run compares, and prints the table. If a question is slower than allowed, it returns an error after that.
func (c *BenchGuardCmd) Run(ctx context.Context, k *kong.Context) error {
	config, err := asking(c.Users, 50, c.Users, c.Questions)
	if err != nil {
		return err
	}
	compared, err := printed(&c.benchFlags, k, config, func(config suite.Config) ([]suite.Compared, error) { return suite.RunGuard(ctx, config, c.Before) },
		"engine\tstate\tquestion\tbefore, 1/s\tafter, 1/s\trate\tCPU of a request\t", func(one suite.Compared) string {
			return fmt.Sprintf("%s\t%s\t%s\t%.0f\t%.0f\t%.3f\t%.3f\t", one.Engine, one.State, one.Question, one.Before, one.After, one.Rate, one.CPU)
		})
	for _, one := range compared {
		if one.Rate < c.Least {
			err = errors.Join(err, fmt.Errorf("%s %s, %s: %.3f of the rate before, at least %g is allowed", one.Engine, one.State, one.Question, one.Rate, c.Least))
		}
	}
	return err
}

// BenchAppCmd is `kith bench app`.
type BenchAppCmd struct {
	Users      int      `default:"10000" placeholder:"N" help:"Users, at least 250; each follows 50 on average and has 10 posts of the last 30 days. Default: ${default}."`
	Operations []string `default:"app" enum:"${bench_operations}" placeholder:"O" help:"Questions, one after another; app: all, in the app's proportions; ${enum}. Default: ${default}."`

	benchFlags `kong:"set='bench_engines=sqlite',set='bench_states=warm',set='bench_rounds=5',set='bench_heat=30s'"`
}

// Run measures, and prints the table.
func (c *BenchAppCmd) Run(ctx context.Context, k *kong.Context) error {
	config, err := onGraph(c.Users, 50)
	if err != nil {
		return err
	}
	_, err = printed(&c.benchFlags, k, config, func(config suite.Config) ([]suite.AppRates, error) { return suite.RunApp(ctx, config, c.Operations) },
		"engine\tstate\toperation\tbaseline, 1/s\tKith, 1/s\tratio\tCPU of a request, baseline, µs\tKith, µs\tSQL statements of Kith\t", func(one suite.AppRates) string {
			return fmt.Sprintf("%s\t%s\t%s\t%.0f\t%.0f\t%.3f\t%s\t%s\t%s\t", one.Engine, one.State, one.Operation,
				one.Baseline.PerSecond, one.Kith.PerSecond, one.Ratio, known("%.0f", one.Baseline.GatewayCPU, one.Baseline.DatabaseCPU),
				known("%.0f", one.Kith.GatewayCPU, one.Kith.DatabaseCPU), known("%.3f", one.Kith.Statements, nil))
		})
	return err
}

// known writes the sum of two figures, of which the second may be unknown.
func known(format string, a, b *float64) string {
	if a == nil {
		return "?"
	}
	return fmt.Sprintf(format, *a+*cmp.Or(b, new(float64)))
}

// BenchFairCmd is `kith bench fair`.
type BenchFairCmd struct {
	Users  int    `default:"10000" placeholder:"N" help:"Users, at least 250; each follows 50 on average. Default: ${default}."`
	Fields string `default:"users.by: .ids: .m.. { followings.first: 1. { totalCount } } }|^. user.by: .id: .o.. { followers|relationship.from|users.by: .ids: .m.. { followings.first: 100|searchUsers|ids: .t.. { followings.first: 20. { nodes|viewer { user { friends.first: 1, filter|viewer { user { followSuggestions.first: .i. { nodes|relationships.from: .t|feed.first: 1, after|a new text" placeholder:"REGEXP" help:"Fields of kith bench cost --dear that the crowd asks for. Default: a page of users, searches, filters, suggestions, lists of lists, relationships, feeds, new texts."`

	Random  int `default:"0" placeholder:"N" help:"Also ask for the ten of N random legal queries that take most. Default: none."`
	Senders int `default:"1" placeholder:"N" help:"Users whose requests the 16 clients send. Default: ${default}."`

	benchFlags `kong:"set='bench_rounds=1',set='bench_heat=0s',set='bench_duration=3s'"`
}

// Run measures, and prints the table.
func (c *BenchFairCmd) Run(ctx context.Context, k *kong.Context) error {
	only, err := regexp.Compile(c.Fields)
	if err != nil {
		return fmt.Errorf("--fields: %w", err)
	}
	config, err := onGraph(c.Users, 50)
	if err != nil {
		return err
	}
	_, err = printed(&c.benchFlags, k, config, func(config suite.Config) ([]suite.Fair, error) {
		return suite.RunFair(ctx, config, only, c.Random, c.Senders)
	},
		"cost\tp50 of others, times\tp99, times\ta second, alone\tbeside others\tMB before, at the end, later\twhat 16 clients ask for\t", func(one suite.Fair) string {
			return fmt.Sprintf("%.0f\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t%s\t", one.Cost, one.Slower50, one.Slower99, one.Alone, one.Beside, one.Memory, one.Name)
		})
	return err
}

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
	only := regexp.MustCompile(regexp.QuoteMeta(c.Field))
	measure := func(config suite.Config) ([]suite.Cost, error) { return suite.RunCost(ctx, config, only, c.Random) }
	if c.Dear {
		measure = func(config suite.Config) ([]suite.Cost, error) {
			return suite.RunDear(ctx, config, only)
		}
	}
	_, err = printed(&c.benchFlags, k, config, measure, "state\tfield\tcost\tCPU, µs\tµs a unit\tkB\tbytes a unit\t", func(one suite.Cost) string {
		return fmt.Sprintf("%s\t%s\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t", one.State, one.Name, one.Cost, one.CPU, one.MicrosPerUnit(), one.Bytes/1e3, one.Bytes/one.Cost)
	})
	return err
}
