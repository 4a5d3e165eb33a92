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
	All      BenchAllCmd      `cmd:"" default:"withargs" help:"Measure this program on private servers: six questions and a mixed load, cold and warm, beside a hand-written handler. This is what bench does when nothing else is said."`
	Grow     BenchGrowCmd     `cmd:"" help:"Measure what a request costs on graphs of several sizes and numbers of databases, and what their stores take and do."`
	Feed     BenchFeedCmd     `cmd:"" help:"Measure home feeds: pages beside a join and beside inboxes in Redis, both written by hand, and when a post is seen through another gateway."`
	Several  BenchSeveralCmd  `cmd:"" help:"Measure several gateways on one store, before, while and after one of them is restarted, and when others see a write: with Redis as their cache, with Redis for events only, and without a Redis."`
	Guard    BenchGuardCmd    `cmd:"" help:"Compare this program with another build of it, in turn, and fail if it is slower."`
	App      BenchAppCmd      `cmd:"" help:"Measure what the web app asks for users who are signed in, in turn with a hand-written handler: profiles, home feeds, posts, followings."`
	Cost     BenchCostCmd     `cmd:"" help:"Measure what each field of a query takes, beside what it costs by --max-cost."`
	Quality  BenchQualityCmd  `cmd:"" help:"Measure how many held-out follows of a graph are suggested, by each order."`
	Simulate BenchSimulateCmd `cmd:"" help:"Draw a year of a growing graph from measured figures: bytes, servers, connections, moves."`
	Report   BenchReportCmd   `cmd:"" help:"Put what was measured into the tables and charts of a page."`
	Generate BenchGenerateCmd `cmd:"" help:"Write a large synthetic graph that kith import reads."`
	Run      BenchRunCmd      `cmd:"" help:"Ask a gateway that serves such a graph, and measure how fast it answers."`
	Baseline BenchBaselineCmd `cmd:"" help:"Answer the same requests by hand, from the same store: what Kith is measured beside."`
}

// graphFlags say which graph is meant; they are the same for writing the graph
// and for asking about it.
type graphFlags struct {
	Users     int    `default:"50000" placeholder:"N" help:"How many users, from 250 up. Default: ${default}."`
	Follows   int    `default:"50" placeholder:"N" help:"How many users each follows on average, from 4 to 500. Default: ${default}."`
	Seed      uint64 `default:"42" placeholder:"N" help:"Another seed is another graph, and other requests. Default: ${default}."`
	Sonyflake bool   `help:"Ids as Sonyflake makes them, 63 bits, instead of 1, 2, 3 …"`
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
	File string `arg:"" help:"Where to write the edge list; gzipped if it ends in .gz. - is standard output."`
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
	URL         string        `name:"url" default:"http://127.0.0.1:8080/graphql" help:"The gateway to ask. Default: ${default}."`
	AdminURL    string        `name:"admin-url" placeholder:"URL" help:"Where its metrics are (its --admin-addr), such as http://127.0.0.1:8081; without them it is not known what the gateway uses. Default: at --url."`
	Connections int           `default:"16" placeholder:"N" help:"How many requests are under way at once. Default: ${default}."`
	Duration    time.Duration `default:"10s" help:"How long each question is asked. Default: ${default}."`
	Warmup      time.Duration `default:"2s" help:"How long each is asked before that, uncounted. Default: ${default}."`
	Draw        bench.Draw    `placeholder:"BY" default:"users" help:"Whom the questions are about: users, all alike, in proportion to their followers or followings, or by Zipf's law. Default: ${default}."`
	Questions   []string      `placeholder:"Q,…" help:"Which: ${bench_questions}. Default: all."`
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
