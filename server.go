// Kith is a GraphQL gateway to a sharded social graph.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"kith/cli"
	"kith/demo"
	"kith/gateway"
	"kith/graph/generated"
	"kith/graph/limits"
	"kith/loaders"
	"kith/resolvers"
	"kith/social"
	"kith/storage"
	"kith/storage/sqlstore"
	"kith/web"
)

// program is the command line: settings for all commands, then the commands.
type program struct {
	cli.Settings

	Serve   ServeCmd       `cmd:"" default:"withargs" help:"Serve the graph over GraphQL. This is what the program does when no command is given."`
	Migrate cli.MigrateCmd `cmd:"" help:"Bring the tables of every shard up to date."`
	Import  cli.ImportCmd  `cmd:"" help:"Import follows and users from files."`
	Bench   cli.BenchCmd   `cmd:"" help:"Make large graphs and measure a gateway."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program: its exit code is 0, or 1 after one line on stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if err := runCommand(ctx, args, stdout, stderr); err != nil {
		line := strings.ReplaceAll(err.Error(), "\n", "; ")
		fmt.Fprintf(stderr, "kith: %s\n", line)
		return 1
	}
	return 0
}

// helped ends the program after --help, which has been printed.
type helped struct{}

func runCommand(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(helped); !ok {
				panic(r)
			}
		}
	}()
	var p program
	parser, err := kong.New(&p,
		kong.Name("kith"),
		kong.Description("A GraphQL gateway to a sharded social graph."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { panic(helped{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		cli.Vars,
	)
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	if err != nil {
		return named(err)
	}
	if err := p.Check(); err != nil {
		return err
	}
	command.BindTo(ctx, (*context.Context)(nil))
	command.Bind(&p.Settings)
	if name := command.Command(); name != "serve" && !strings.HasPrefix(name, "bench ") {
		store, err := p.OpenStore(ctx, nil)
		if err != nil {
			return err
		}
		defer store.Close()
		command.Bind(store)
		command.BindTo(store, (*storage.Store)(nil))
	}
	return command.Run()
}

// named adds to an error about a flag's value the variable of the environment that
// may hold it instead.
func named(err error) error {
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	for _, flag := range parse.Context.Flags() {
		reason, ok := strings.CutPrefix(err.Error(), "--"+flag.Name)
		if ok && len(flag.Envs) > 0 && strings.IndexAny(reason, ": ") == 0 {
			return cli.Misset(flag.Name, errors.New(strings.TrimLeft(reason, ": ")))
		}
	}
	return err
}

// ServeCmd is `kith serve`.
type ServeCmd struct {
	Addr           string        `default:"127.0.0.1:8080" env:"KITH_ADDR" placeholder:"HOST:PORT" help:"Where to listen. Default: ${default}."`
	CORSOrigin     []string      `name:"cors-origin" env:"KITH_CORS_ORIGIN" placeholder:"ORIGIN" help:"A front end of another origin that may ask, such as https://app.example.org. Repeat it or separate several by commas. Default: none."`
	RequestTimeout time.Duration `default:"10s" env:"KITH_REQUEST_TIMEOUT" help:"How long one request may take until what is missing becomes errors. Default: ${default}."`
	Drain          time.Duration `default:"15s" env:"KITH_DRAIN" help:"How long requests under way may go on after the signal to stop. Default: ${default}."`
	MaxCost        int           `default:"100000" env:"KITH_MAX_COST" placeholder:"N" help:"What one query may cost, lists multiplied by their length. Default: ${default}."`
	Budget         int           `default:"500000" env:"KITH_BUDGET" placeholder:"ROWS" help:"Rows that one set answer (common lists, friends, suggestions) may examine before it ends as incomplete. Default: ${default}."`
	HideSchema     bool          `env:"KITH_HIDE_SCHEMA" help:"Refuse introspection."`
	Demo           bool          `env:"KITH_DEMO" help:"Load a demo graph first if the store is empty."`
}

// Run opens everything, serves until the context is done, and drains.
func (c *ServeCmd) Run(ctx context.Context, settings *cli.Settings, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	slog.SetDefault(logger)
	if err := c.check(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return cli.Misset("addr", listenError(c.Addr, err))
	}
	defer listener.Close()

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	statements := sqlstore.NewMetrics(registry)
	store, err := settings.OpenStore(ctx, statements.Observe)
	if err != nil {
		return err
	}
	defer store.Close()
	statements.RegisterPools(store)

	redis, err := settings.OpenRedis(ctx)
	if err != nil {
		return err
	}
	defer redis.Close()

	if c.Demo {
		if err := demo.Load(ctx, store); err != nil {
			return err
		}
	}
	c.announce(k.Stdout, listener.Addr(), settings)
	return gateway.Serve(ctx, c.gateway(store, redis, registry, logger), listener, c.Drain)
}

// check refuses settings that cannot be meant, before anything is opened.
func (c *ServeCmd) check() error {
	positive := errors.New("it must be greater than 0")
	switch {
	case c.RequestTimeout <= 0:
		return cli.Misset("request-timeout", positive)
	case c.Drain < 0:
		return cli.Misset("drain", errors.New("it must not be negative"))
	case c.MaxCost <= 0:
		return cli.Misset("max-cost", positive)
	case c.Budget <= 0:
		return cli.Misset("budget", positive)
	}
	for _, origin := range c.CORSOrigin {
		if err := cli.CheckOrigin(origin); err != nil {
			return cli.Misset("cors-origin", err)
		}
	}
	return nil
}

// gateway wires the way of a request: HTTP, schema, resolvers, loaders, store.
func (c *ServeCmd) gateway(store storage.Store, redis *cli.Redis, registry *prometheus.Registry, logger *slog.Logger) gateway.Config {
	schema := generated.NewExecutableSchema(generated.Config{
		Resolvers: &resolvers.Resolver{Budget: social.Budget(c.Budget)},
	})
	return gateway.Config{
		Schema:         schema,
		PerRequest:     func(ctx context.Context) context.Context { return loaders.Attach(ctx, store) },
		Limits:         limits.Limits{Cost: c.MaxCost},
		HideSchema:     c.HideSchema,
		RequestTimeout: c.RequestTimeout,
		CORSOrigins:    c.CORSOrigin,
		Store:          store,
		Checks:         redis.Checks(),
		Metrics:        gateway.NewMetrics(registry),
		Gatherer:       registry,
		Web:            web.Handler(web.Config{}),
		Logger:         logger,
		AccessLevel:    slog.LevelDebug,
	}
}

// announce prints where to look.
func (c *ServeCmd) announce(out io.Writer, addr net.Addr, settings *cli.Settings) {
	base := "http://" + addr.String()
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		base = fmt.Sprintf("http://localhost:%d", tcp.Port)
	}
	page := "GraphiQL"
	if !web.HasGraphiQL(web.Assets()) {
		page = "query page; `make web` builds GraphiQL"
	}
	fmt.Fprintf(out, "kith serves %s\n", settings.StoreName())
	for _, line := range [][2]string{
		{"/", page}, {"/graphql", "the API"}, {"/healthz", "is it up"}, {"/readyz", "are its shards"}, {"/metrics", "Prometheus"},
	} {
		fmt.Fprintf(out, "  %-32s %s\n", base+line[0], line[1])
	}
}

func listenError(addr string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken by another program", addr)
	}
	return err
}
