package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"kith/accounts/identity"
	"kith/cluster"
	"kith/files/importer/demo"
	"kith/gateway"
	"kith/gateway/documents"
	"kith/gateway/exchange"
	"kith/graph/declared"
	"kith/graph/limits"
	"kith/social"
	"kith/storage/sqlstore"
	"kith/web"
)

// ServeCmd is `kith serve`.
type ServeCmd struct {
	Addr           string        `basic:"" bound:"address" group:"requests" default:"127.0.0.1:8080" env:"KITH_ADDR" placeholder:"HOST:PORT" help:"Address to listen on. Default: ${default}."`
	AdminAddr      string        `basic:"" bound:"address" group:"requests" env:"KITH_ADMIN_ADDR" placeholder:"HOST:PORT" help:"Address for /metrics, /readyz, /debug/pprof/ and /schema.graphql. Default: none."`
	CORSOrigin     []string      `basic:"" bound:"origins" group:"requests" name:"cors-origin" env:"KITH_CORS_ORIGIN" placeholder:"ORIGIN" help:"CORS origins, such as https://app.example.org. Default: none."`
	CORSHeader     []string      `bound:"headers" group:"requests" name:"cors-header" env:"KITH_CORS_HEADER" placeholder:"NAME" help:"Extra request headers those origins may send, such as X-Tenant. Default: none."`
	PublicURL      string        `bound:"origin" group:"requests" name:"public-url" env:"KITH_PUBLIC_URL" placeholder:"ORIGIN" help:"Public origin, such as https://kith.example.org, put before the path of an avatarUrl. Default: none."`
	RequestTimeout time.Duration `bound:"positive" group:"requests" default:"10s" env:"KITH_REQUEST_TIMEOUT" help:"Time limit of a request; what is missing by then becomes errors. Default: ${default}."`
	StopDelay      time.Duration `basic:"" bound:"natural" group:"requests" default:"0s" env:"KITH_STOP_DELAY" help:"After a stop signal, keep serving this long with /readyz at 503. Default: ${default}."`
	Drain          time.Duration `bound:"natural" group:"requests" default:"15s" env:"KITH_DRAIN" help:"After that, time for requests in progress to finish. Default: ${default}."`
	MaxCost        int           `bound:"cost" group:"requests" default:"100000" env:"KITH_MAX_COST" placeholder:"N" help:"Highest cost of a query; lists multiply by their length. Default: ${default}."`
	MaxBody        Bytes         `bound:"size" group:"requests" default:"256KiB" env:"KITH_MAX_BODY" placeholder:"SIZE" help:"Largest request body. Default: ${default}."`
	MaxRequests    int           `bound:"positive" group:"requests" default:"512" env:"KITH_MAX_REQUESTS" placeholder:"N" help:"Requests processed at once; as many may queue, more get 503. Default: ${default}."`
	Replicate      bool          `basic:"" group:"process" default:"true" negatable:"" env:"KITH_REPLICATE" help:"Also run the replicator in this process. Default: ${default}."`
	SlowOperation  time.Duration `bound:"natural" group:"process" default:"500ms" env:"KITH_SLOW_OPERATION" help:"Log operations that run longer than this; 0: none. Default: ${default}."`
	CacheBytes     *Bytes        `basic:"" group:"process" env:"KITH_CACHE_BYTES" placeholder:"BYTES" help:"Cache size, such as 256MiB; 0: none. Default: 1/4 of the container's memory, else 1/8 of the machine's; 32 MiB to 2 GiB."`
	HideSchema     bool          `group:"schema" env:"KITH_HIDE_SCHEMA" help:"Refuse introspection."`
	Federation     bool          `group:"schema" env:"KITH_FEDERATION" help:"Be an Apollo Federation 2 subgraph, with _entities and _service."`
	Without        []string      `group:"schema" env:"KITH_WITHOUT" placeholder:"PART" help:"Parts to leave out: posts (with comments, favorites, feeds), accounts (with passwords, sessions). Default: none."`
	TypePrefix     string        `group:"schema" name:"type-prefix" env:"KITH_TYPE_PREFIX" placeholder:"PREFIX" help:"Prefix of types and root fields, such as Kith, to avoid collisions with other schemas. Default: none."`
	Relations      string        `group:"schema" env:"KITH_RELATIONS" placeholder:"FILE" help:"File that declares your product's own attributes and kinds of relations. Default: none."`
	Trusted        string        `group:"schema" name:"trusted-documents" env:"KITH_TRUSTED_DOCUMENTS" placeholder:"FOLDER" help:"Manifests (graphql-codegen, Relay, Apollo) or *.graphql files of documents that clients call by documentId. Reread every 5s. Default: none."`
	OnlyTrusted    string        `group:"schema" default:"off" enum:"off,log,on" env:"KITH_ONLY_TRUSTED" placeholder:"MODE" help:"Other documents: off answers them, log answers and logs them, on refuses them. Default: ${default}."`
	Demo           bool          `basic:"" group:"schema" env:"KITH_DEMO" help:"Load a demo graph if the store is empty. Visitors who open the pages on this machine may act as any of its users."`
	Pages          string        `group:"schema" default:"all" enum:"all,app,graphiql,none" env:"KITH_PAGES" placeholder:"WHICH" help:"Pages to serve: app (at /app), graphiql (at /), all or none. Default: ${default}."`

	MaxConnections int `bound:"positive" group:"connections" default:"20000" env:"KITH_MAX_CONNECTIONS" placeholder:"N" help:"Open connections; at most half may be WebSockets and event streams. Default: ${default}."`

	identity.Settings `group:"identity"`

	declared *declared.File // in the file Relations, once that is checked
}

// Run opens everything, serves until the context is done, and drains.
func (c *ServeCmd) Run(ctx context.Context, settings *Settings, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	slog.SetDefault(logger)
	if err := cmp.Or(c.check(), c.Settings.Check()); err != nil {
		return unusable{err}
	}
	spans, err := openTraces(ctx, settings, logger)
	if err != nil {
		return unusable{err}
	}
	defer c.closeTraces(ctx, spans)()
	takes := c.footprint(settings)
	takes.tuneGC()
	go giveBack(ctx, 3*time.Second)
	addProcessors()
	documents, err := c.trustedDocuments()
	if err != nil {
		return unusable{err}
	}
	who, err := c.Settings.Open(ctx, logger)
	if err != nil {
		return err
	}
	defer who.Close()
	listener, err := Listen(ctx, "addr", c.Addr)
	if err != nil {
		return err
	}
	defer listener.Close()
	admin, err := Listen(ctx, "admin-addr", c.AdminAddr)
	if err != nil {
		return err
	}
	if admin != nil {
		defer admin.Close()
	}

	registry := newRegistry()
	statements := sqlstore.NewMetrics(registry)
	store, err := settings.OpenStore(ctx, sqlstore.Config{OnStatement: statements.Observe, RequestID: requestID(settings), PackShort: true})
	if err != nil {
		return err
	}
	defer store.Close()
	c.fitConnections(settings, store.Shards(), logger)
	defer cluster.InBackground(store.Watch)()
	statements.RegisterPools(store)
	redis, _, err := settings.joinRedis(ctx, store, logger)
	if err != nil {
		return err
	}
	defer redis.Close()
	if c.Demo {
		if err := demo.Load(ctx, store, time.Now()); err != nil {
			return Misset("store", fmt.Errorf("load the demo graph: %w", err))
		}
	}
	g := &services{takes: takes, traces: spans, store: store, redis: redis, identity: who, registry: registry, logger: logger, documents: documents}
	defer g.close()
	if err := c.open(ctx, settings, g); err != nil {
		return err
	}
	cfg := c.gateway(settings, g)
	defer serveAdmin(admin, cfg.Admin(ctx))()
	c.announce(k.Stdout, listener.Addr(), admin, settings, g)
	return gateway.Serve(ctx, cfg, listener, c.Drain)
}

// check refuses settings that cannot be right, before anything is opened.
func (c *ServeCmd) check() (err error) {
	c.declared, err = declared.Read(c.Relations)
	if err := cmp.Or(Misset("relations", err), c.shape().check()); err != nil {
		return err
	}
	switch {
	case c.Trusted == "" && c.OnlyTrusted != string(documents.TrustAll):
		return Misset("only-trusted", errors.New("it needs --trusted-documents"))
	case c.Pages == "app" && !c.servesApp():
		return Misset("pages", errors.New("the app needs the whole schema: leave out --without and --type-prefix"))
	case len(c.CORSHeader) > 0 && len(c.CORSOrigin) == 0:
		return Misset("cors-header", errors.New("it needs --cors-origin"))
	}
	return nil
}

// requestID finds the id for comments in statements, which are not prepared then and take longer; nil for none.
func requestID(settings *Settings) func(context.Context) string {
	if settings.LogLevel != "debug" {
		return nil
	}
	return exchange.RequestID
}

// servesApp reports whether the web app is served: it asks for everything, by our own names.
func (c *ServeCmd) servesApp() bool { return c.serves("app") && c.shape().isWhole() }

// serves reports whether a page is served.
func (c *ServeCmd) serves(page string) bool { return c.Pages == "all" || c.Pages == page }

// budget bounds the rows that one set answer examines, in proportion to what a query may cost.
func (c *ServeCmd) budget() social.Budget { return social.Budget(5 * c.MaxCost) }

func (c *ServeCmd) limits() limits.Limits { return limits.Limits{Cost: c.MaxCost} }

// announce prints where to look.
func (c *ServeCmd) announce(out io.Writer, addr net.Addr, admin net.Listener, settings *Settings, p *services) {
	base := baseURL(addr)
	page := "GraphiQL"
	if !web.HasGraphiQL(web.Assets()) {
		page = "query page; `make web` builds GraphiQL"
	}
	fmt.Fprintf(out, "kith serves %s\n", settings.StoreName(p.store.Shards()))
	var lines [][2]string
	if c.serves("graphiql") {
		lines = append(lines, [2]string{base + "/", page})
	}
	if c.servesApp() {
		app := "the app"
		if !web.HasApp(web.Assets()) {
			app = "a page that says how to build the app"
		}
		lines = append(lines, [2]string{base + "/app", app})
	}
	lines = append(lines, [][2]string{{base + "/graphql", "the API"}, {base + "/healthz", "liveness"}}...)
	if admin != nil {
		at := baseURL(admin.Addr())
		lines = append(lines, [][2]string{
			{at + "/readyz", "readiness"}, {at + "/metrics", "Prometheus"}, {at + "/schema.graphql", "the schema"}, {at + "/debug/pprof/", "profiles"},
		}...)
		if c.HideSchema {
			lines = slices.DeleteFunc(lines, func(l [2]string) bool { return l[1] == "the schema" })
		}
	}
	for _, line := range lines {
		fmt.Fprintf(out, "  %-40s %s\n", line[0], line[1])
	}
	fmt.Fprintln(out, p.takes)
	if admin == nil {
		fmt.Fprintln(out, "no --admin-addr is set: metrics, readiness and profiles are not served")
	}
	if p.identity.MadeSecret {
		fmt.Fprintln(out, "no --jwt-secret is set: tokens are valid only until this process exits")
	}
	if demo := c.demoUsers(p); demo.Token == nil {
		return
	} else if token, _, err := demo.Token(1); err == nil && onTerminal(out) {
		fmt.Fprintf(out, "a token of user 1:\n  Authorization: Bearer %s\n", token)
	} else { // what is printed is kept in a log, where a token must not stand
		fmt.Fprintf(out, "a token of user 1: curl -X POST '%s/demo/token?user=1'\n", base)
	}
}

func baseURL(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", tcp.Port)
	}
	return "http://" + addr.String()
}
