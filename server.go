// Kith is a GraphQL gateway to a sharded social graph.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"kith/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(cli.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
