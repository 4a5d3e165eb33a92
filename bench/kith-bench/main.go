// kith-bench is `kith bench`, a program beside kith, so that kith does not contain the code that measures a gateway.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/bench"
	"kith/bench/baseline"
	"kith/bench/report"
	"kith/cli"
)

// program is the part of kith's command line that measures, with the settings of all commands.
type program struct {
	cli.Settings

	Bench BenchCmd `cmd:"" help:"Generate large graphs and benchmark a gateway."`
}

var vars = kong.Vars{
	"bench_questions":  strings.Join(bench.QuestionNames(), ", "),
	"bench_operations": strings.Join(append([]string{bench.AppName}, bench.AppOperations()...), ","),
	"bench_engines":    strings.Join(report.Engines, ","),
	"bench_states":     "baseline,cold,warm", "bench_rounds": "2", "bench_heat": "30s", "bench_duration": "2s",
}

func main() {
	var p program
	os.Exit(cli.RunAs(untilStopped(), &p, &p.Settings, os.Args[1:], os.Stdout, os.Stderr, vars))
}

// untilStopped is done at the first signal, so that servers are ended and folders removed. A later one ends the program at once, unless
// it is the same Ctrl-C, which comes from the terminal, and from kith, which passes it on.
func untilStopped() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.Sleep(time.Second); stop() })
	return ctx
}

// BenchCmd is `kith bench`.
type BenchCmd struct {
	All      BenchAllCmd      `cmd:"" default:"withargs" help:"Measure this build on private servers: six questions and a mixed load, cold and warm, next to a hand-written handler. This is the default."`
	Several  BenchSeveralCmd  `cmd:"" help:"Measure several gateways on one store before, during and after a restart of one, and when others see a write: with Redis as cache, with Redis for events only, and without Redis."`
	Guard    BenchGuardCmd    `cmd:"" help:"Compare this build with another one, alternately, and fail if it is slower."`
	App      BenchAppCmd      `cmd:"" help:"Measure what the web app asks for signed-in users, alternately with a hand-written handler: profiles, home feeds, posts, followings."`
	Fair     BenchFairCmd     `cmd:"" help:"Measure how ordinary requests are answered beside 16 clients who ask for something expensive."`
	Cost     BenchCostCmd     `cmd:"" help:"Measure the time of each field and compare it with its cost for --max-cost."`
	Quality  BenchQualityCmd  `cmd:"" help:"Measure how many held-out follows of a graph each order of suggestions finds."`
	Generate BenchGenerateCmd `cmd:"" help:"Generate a large graph for kith import."`
	Baseline BenchBaselineCmd `cmd:"" help:"Serve the hand-written baseline: the same requests, answered from the same store."`
}

// BenchGenerateCmd is `kith bench generate FILE`.
type BenchGenerateCmd struct {
	Users     int    `default:"50000" placeholder:"N" help:"Users, at least 250. Default: ${default}."`
	Follows   int    `default:"50" placeholder:"N" help:"Average number of follows per user, 4 to 500. Default: ${default}."`
	Seed      uint64 `default:"42" placeholder:"N" help:"Random seed of the graph. Default: ${default}."`
	Sonyflake bool   `help:"63-bit ids as Sonyflake makes them, instead of 1, 2, 3 …"`
	File      string `arg:"" help:"Output file, an edge list; -: standard output."`
}

// Run writes the file.
func (c *BenchGenerateCmd) Run(k *kong.Context) error {
	if _, err := onGraph(c.Users, c.Follows); err != nil {
		return err
	}
	g := bench.NewGraph(c.Users, c.Seed)
	g.Degree, g.Spread = c.Follows, c.Sonyflake
	if c.File == "-" {
		_, err := g.WriteTo(k.Stdout)
		return err
	}
	file, err := os.Create(c.File)
	if err != nil {
		return err
	}
	n, err := g.WriteTo(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", c.File, err)
	}
	fmt.Fprintf(k.Stdout, "%s: %s users, %s of edges\n", c.File, humanize.Comma(int64(c.Users)), humanize.Bytes(uint64(n)))
	return nil
}

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
