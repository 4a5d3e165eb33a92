package main

import (
	"context"
	"errors"
	"fmt"
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
	benchFlags
}

// Validate is called by kong.
func (c *BenchSeveralCmd) Validate() error {
	const fewest, most = 1, 16
	switch {
	case c.Users < bench.Community:
		return fmt.Errorf("--users: %d is less than one community, %d", c.Users, bench.Community)
	case c.Gateways < fewest || c.Gateways > most:
		return fmt.Errorf("--gateways: %d is not from %d to %d", c.Gateways, fewest, most)
	case len(c.Engines) > 0:
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
