package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/dustin/go-humanize"
	"github.com/klauspost/compress/gzip"

	"kith/bench"
	"kith/cli"
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
	Run      BenchRunCmd      `cmd:"" help:"Load a running gateway that serves such a graph, and measure its rate and latency."`
	Baseline BenchBaselineCmd `cmd:"" help:"Serve the hand-written baseline: the same requests, answered from the same store."`
}

// graphFlags say which graph is meant; they are the same for writing the graph
// and for asking about it.
type graphFlags struct {
	Users     int    `default:"50000" placeholder:"N" help:"Users, at least 250. Default: ${default}."`
	Follows   int    `default:"50" placeholder:"N" help:"Average number of follows per user, 4 to 500. Default: ${default}."`
	Seed      uint64 `default:"42" placeholder:"N" help:"Random seed of the graph and the requests. Default: ${default}."`
	Sonyflake bool   `help:"63-bit ids as Sonyflake makes them, instead of 1, 2, 3 …"`
}

func (f graphFlags) graph() (*bench.Graph, error) {
	if f.Users < bench.Community {
		return nil, fmt.Errorf("--users: %d is less than one community, %d", f.Users, bench.Community)
	}
	if f.Follows < bench.Celebrities || f.Follows > 2*bench.Community {
		return nil, fmt.Errorf("--follows: %d is not between %d and %d", f.Follows, bench.Celebrities, 2*bench.Community)
	}
	g := bench.NewGraph(f.Users, f.Seed)
	g.Degree = f.Follows
	g.Spread = f.Sonyflake
	return g, nil
}

// BenchGenerateCmd is `kith bench generate FILE`.
type BenchGenerateCmd struct {
	graphFlags
	File string `arg:"" help:"Output file, an edge list; gzipped if it ends in .gz; -: standard output."`
}

// Run writes the file.
func (c *BenchGenerateCmd) Run(k *kong.Context) error {
	g, err := c.graph()
	if err != nil {
		return err
	}
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

// BenchRunCmd is `kith bench run`.
type BenchRunCmd struct {
	graphFlags
	URL         string        `name:"url" default:"http://127.0.0.1:8080/graphql" help:"URL of the gateway. Default: ${default}."`
	AdminURL    string        `name:"admin-url" placeholder:"URL" help:"URL of its --admin-addr, such as http://127.0.0.1:8081, to measure the CPU and memory it uses. Default: at --url."`
	Connections int           `default:"16" placeholder:"N" help:"Concurrent requests. Default: ${default}."`
	Duration    time.Duration `default:"10s" help:"Time to measure each question. Default: ${default}."`
	Warmup      time.Duration `default:"2s" help:"Warm-up of each question before it is measured. Default: ${default}."`
	Draw        bench.Draw    `placeholder:"BY" default:"users" help:"How users are drawn: uniformly (users), in proportion to followers or followings, or by Zipf's law. Default: ${default}."`
	Questions   []string      `placeholder:"Q" help:"Questions to measure: ${bench_questions}. Default: all."`
	checkFlags
	cli.Output
}

// Run asks the questions one after another. Wrong answers are an error that names the file with their history, after
// the results were printed.
func (c *BenchRunCmd) Run(ctx context.Context, k *kong.Context) (err error) {
	load, questions, err := c.load()
	if err != nil {
		return err
	}
	if load.Recorder, err = bench.NewRecorder(""); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, load.Recorder.Close()) }()
	var results []bench.Result
	var wrong error
	for _, q := range questions {
		r, err := load.Run(ctx, q)
		if err != nil {
			return fmt.Errorf("%s: %w", c.URL, err)
		}
		results = append(results, r)
		if r.Errors > 0 && wrong == nil {
			wrong = fmt.Errorf("%d of %d answers to %s were wrong, the first: %w", r.Errors, r.Requests, r.Question, r.Error)
		}
	}
	if wrong != nil {
		path, err := load.Recorder.History(c.Histories)
		wrong = errors.Join(fmt.Errorf("%w; the history of the users of wrong answers is in %s", wrong, path), err)
	}
	if c.JSON() {
		return errors.Join(cli.WriteJSON(k.Stdout, results), wrong)
	}
	return errors.Join(bench.WriteTable(k.Stdout, results), wrong)
}

func (c *BenchRunCmd) load() (bench.Load, []*bench.Question, error) {
	g, err := c.graph()
	if err != nil {
		return bench.Load{}, nil, err
	}
	if err := c.Draw.Validate(); err != nil {
		return bench.Load{}, nil, fmt.Errorf("--draw: %w", err)
	}
	g.Draw = c.Draw
	if c.Connections < 1 || c.Duration <= 0 || c.Warmup < 0 {
		return bench.Load{}, nil, errors.New("--connections and --duration must be greater than 0, --warmup not less")
	}
	questions := bench.Questions
	if len(c.Questions) > 0 {
		questions = nil
	}
	for _, name := range c.Questions {
		q := bench.QuestionByName(name)
		if q == nil {
			return bench.Load{}, nil, fmt.Errorf("--questions: %q is none of %s", name, strings.Join(bench.QuestionNames(), ", "))
		}
		questions = append(questions, q)
	}
	return bench.Load{
		URL:         c.URL,
		Admin:       c.AdminURL,
		Graph:       g,
		Connections: c.Connections,
		Warmup:      c.Warmup,
		Duration:    c.Duration,
		Seed:        c.Seed,
		CheckEvery:  c.CheckEvery,
	}, questions, nil
}
