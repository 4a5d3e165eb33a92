package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"

	"kith/bench"
)

// BenchCmd is `kith bench`.
type BenchCmd struct {
	All      BenchAllCmd      `cmd:"" default:"withargs" help:"Measure this build on private servers: six questions and a mixed load, cold and warm, next to a hand-written handler. This is the default."`
	Several  BenchSeveralCmd  `cmd:"" help:"Measure several gateways on one store before, during and after a restart of one, and when others see a write: with Redis as cache, with Redis for events only, and without Redis."`
	Guard    BenchGuardCmd    `cmd:"" help:"Compare this build with another one, alternately, and fail if it is slower."`
	App      BenchAppCmd      `cmd:"" help:"Measure what the web app asks for signed-in users, alternately with a hand-written handler: profiles, home feeds, posts, followings."`
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
	File      string `arg:"" help:"Output file, an edge list; gzipped if it ends in .gz; -: standard output."`
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
	n, err := writeGraph(g, file, strings.HasSuffix(c.File, ".gz"))
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", c.File, err)
	}
	fmt.Fprintf(k.Stdout, "%s: %s users, %s of edges\n", c.File, humanize.Comma(int64(c.Users)), humanize.Bytes(uint64(n)))
	return nil
}

func writeGraph(g *bench.Graph, out io.Writer, compressed bool) (int64, error) {
	if !compressed {
		return g.WriteTo(out)
	}
	zip := gzip.NewWriter(out)
	n, err := g.WriteTo(zip)
	return n, errors.Join(err, zip.Close())
}
