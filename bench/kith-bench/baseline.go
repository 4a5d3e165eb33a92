package main

import (
	"context"
	"fmt"
	"net"

	"github.com/alecthomas/kong"

	"kith/bench/baseline"
	"kith/cli"
)

// BenchBaselineCmd is `kith bench baseline`.
type BenchBaselineCmd struct {
	Addr string `default:"127.0.0.1:8090" placeholder:"HOST:PORT" help:"Address to listen on. Default: ${default}."`
}

// Run answers from the store of the settings until the context is done.
func (c *BenchBaselineCmd) Run(ctx context.Context, settings *cli.Settings, k *kong.Context) error {
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return cli.Misset("addr", err)
	}
	fmt.Fprintf(k.Stdout, "the baseline answers at http://%s/graphql\n", listener.Addr())
	return baseline.Serve(ctx, settings.Store, listener)
}
