package main

import (
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/alecthomas/kong"

	"kith/bench/suite"
)

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
	var all []suite.Fair
	err = c.configured(k, config, func(config suite.Config) (err error) {
		all, err = suite.RunFair(ctx, config, only, c.Random, c.Senders)
		return err
	})
	if err != nil {
		return err
	}
	return c.print(k, all, "cost\tp50 of others, times\tp99, times\ta second, alone\tbeside others\tMB before, at the end, later\twhat 16 clients ask for\t", func(w io.Writer) {
		for _, one := range all {
			fmt.Fprintf(w, "%.0f\t%.1f\t%.1f\t%.0f\t%.0f\t%.0f\t%s\t\n", one.Cost, one.Slower50, one.Slower99, one.Alone, one.Beside, one.Memory, one.Name)
		}
	})
}
