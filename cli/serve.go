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
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"kith/accounts/identity"
	"kith/cluster"
	"kith/files/importer/demo"
	"kith/gateway"
	"kith/graph/declared"
	"kith/graph/limits"
	"kith/social"
	"kith/storage"
	"kith/storage/sqlstore"
	"kith/web"
)

// ServeCmd is `kith serve`.
type ServeCmd struct {
	Addr           string        `group:"requests" default:"127.0.0.1:8080" env:"KITH_ADDR" placeholder:"HOST:PORT" help:"Where to listen. Default: ${default}."`
	AdminAddr      string        `group:"requests" env:"KITH_ADMIN_ADDR" placeholder:"HOST:PORT" help:"Where to serve /metrics, /healthz, /readyz, /schema.graphql and /debug/pprof/, to your own network. Default: nowhere."`
	H2C            bool          `group:"requests" name:"h2c" env:"KITH_H2C" help:"Speak HTTP/2 without TLS as well, to proxies and backends that begin with it. WebSockets stay on HTTP/1.1."`
	CORSOrigin     []string      `group:"requests" name:"cors-origin" env:"KITH_CORS_ORIGIN" placeholder:"ORIGIN" help:"A front end of another origin that may ask, such as https://app.example.org. Repeat it or separate several by commas. Default: none."`
	CORSHeader     []string      `group:"requests" name:"cors-header" env:"KITH_CORS_HEADER" placeholder:"NAME" help:"A request header that pages of those origins may send besides the common ones, such as X-Tenant. Repeat it or separate several by commas. Default: none."`
	PublicURL      string        `group:"requests" name:"public-url" env:"KITH_PUBLIC_URL" placeholder:"ORIGIN" help:"Where browsers reach the gateways, such as https://kith.example.org: stands before the path of an avatarUrl. Default: none."`
	RequestTimeout time.Duration `bound:"positive" group:"requests" default:"10s" env:"KITH_REQUEST_TIMEOUT" help:"How long one request may take until what is missing becomes errors. Default: ${default}."`
	StopDelay      time.Duration `bound:"natural" group:"requests" default:"0s" env:"KITH_STOP_DELAY" help:"How long everything is still answered after the signal to stop, while /readyz answers 503, so that load balancers send requests elsewhere. Default: ${default}."`
	Drain          time.Duration `bound:"natural" group:"requests" default:"15s" env:"KITH_DRAIN" help:"How long requests under way may go on after that. Default: ${default}."`
	MaxCost        int           `bound:"positive" group:"requests" default:"100000" env:"KITH_MAX_COST" placeholder:"N" help:"What one query may cost, lists multiplied by their length. Default: ${default}."`
	MaxBody        int64         `bound:"positive" group:"requests" default:"262144" env:"KITH_MAX_BODY" placeholder:"BYTES" help:"How many bytes the body of a request may have. Default: ${default}."`
	MaxAnswer      int           `bound:"positive" group:"requests" default:"16777216" env:"KITH_MAX_ANSWER" placeholder:"BYTES" help:"How many bytes the data of an answer may have. Default: ${default}."`
	MaxRequests    int           `bound:"positive" group:"requests" default:"512" env:"KITH_MAX_REQUESTS" placeholder:"N" help:"How many requests may be in work at once; as many wait, the next are answered 503. Default: ${default}."`
	Budget         int           `bound:"positive" group:"requests" default:"500000" env:"KITH_BUDGET" placeholder:"ROWS" help:"Rows that one set answer (common lists, friends, suggestions) may examine before it ends as incomplete. Default: ${default}."`
	followRules
	ConsistencyWait time.Duration `bound:"positive" group:"requests" default:"500ms" env:"KITH_CONSISTENCY_WAIT" help:"How long a read waits for a write whose token it brings. Default: ${default}."`
	Replicate       bool          `group:"process" default:"true" negatable:"" env:"KITH_REPLICATE" help:"Run the replicator of the modes stream and binlog in this process as well. Default: ${default}."`
	GCPercent       int           `bound:"positive" group:"process" name:"gc-percent" default:"400" env:"KITH_GC_PERCENT" placeholder:"PERCENT" help:"GOGC for this process, up to the memory limit that follows from --cache-bytes; GOGC in the environment wins. Default: ${default}."`
	SlowOperation   time.Duration `bound:"natural" group:"process" default:"500ms" env:"KITH_SLOW_OPERATION" help:"How long the execution of an operation may take until a line of the log tells of it; 0 is no such log. Default: ${default}."`
	SQLComments     bool          `group:"process" name:"sql-comments" env:"KITH_SQL_COMMENTS" help:"Begin each statement that runs for a request with a comment that has the request's id. Such statements are not prepared, and take longer."`
	CacheBytes      *Bytes        `group:"process" env:"KITH_CACHE_BYTES" placeholder:"BYTES" help:"How much this process keeps in memory of users and lists; 0 keeps nothing. The process takes at most 1.3 × (this + 150 MB). Default: a quarter of what the container may use, else an eighth of the machine's memory; from 32 MiB to 2 GiB."`
	WarmUp          bool          `group:"process" name:"warm-up" default:"true" negatable:"" env:"KITH_WARM_UP" help:"After the start, read the users who are followed most into memory, with their lists, before anybody asks for them. Default: ${default}."`
	FeedMemory      Bytes         `group:"feeds" default:"67108864" env:"KITH_FEED_MEMORY" placeholder:"BYTES" help:"How much this process keeps in memory of when recent posts were published, for home feeds; 0 keeps nothing. Default: ${default}."`
	Feed            string        `group:"feeds" default:"pull" enum:"pull,push,hybrid" env:"KITH_FEED" placeholder:"MODE" help:"How home feeds are found: pull, or with a Redis push or hybrid, which copy posts for active users. Default: ${default}."`
	FeedHot         int64         `bound:"positive" group:"feeds" name:"feed-hot-followers" default:"10000" env:"KITH_FEED_HOT_FOLLOWERS" placeholder:"N" help:"With --feed=hybrid: how many followers an author has whose posts are not copied. Default: ${default}."`
	FeedActiveDays  int           `bound:"positive" group:"feeds" default:"7" env:"KITH_FEED_ACTIVE_DAYS" placeholder:"DAYS" help:"With --feed=push or hybrid: for how long after its last read of the feed posts are copied for a user. Default: ${default}."`
	Suggest         []int64       `group:"feeds" name:"suggest" env:"KITH_SUGGEST" placeholder:"ID" help:"Users who are suggested first to whoever follows nobody, in this order. Repeat it or separate several by commas. Default: none."`
	HideSchema      bool          `group:"schema" env:"KITH_HIDE_SCHEMA" help:"Refuse introspection."`
	Federation      bool          `group:"schema" env:"KITH_FEDERATION" help:"Be a subgraph of Apollo Federation 2: answer _entities and _service, by which routers ask."`
	Without         []string      `group:"schema" env:"KITH_WITHOUT" placeholder:"PART" help:"Leave a part out of the schema: posts, with comments, favorites and feeds, or accounts, with passwords and sessions. Repeat it or separate several by commas. Default: none."`
	TypePrefix      string        `group:"schema" name:"type-prefix" env:"KITH_TYPE_PREFIX" placeholder:"PREFIX" help:"Put a prefix, such as Kith, in front of the names of types and root fields, which then do not collide with those of other schemas. Default: none."`
	Relations       string        `group:"schema" env:"KITH_RELATIONS" placeholder:"FILE" help:"What this product keeps for itself, as a file declares it: attributes of users, follows and posts. Default: none."`
	Trusted         string        `group:"schema" name:"trusted-documents" env:"KITH_TRUSTED_DOCUMENTS" placeholder:"FOLDER" help:"Manifests of documents that clients may name by a documentId: of graphql-codegen, Relay or Apollo, or files *.graphql. They are looked at again every five seconds. Default: none."`
	OnlyTrusted     string        `group:"schema" default:"off" enum:"off,log,on" env:"KITH_ONLY_TRUSTED" placeholder:"MODE" help:"What to do with all other documents: off answers them, log answers and logs them, on refuses them. Default: ${default}."`
	Demo            bool          `group:"schema" env:"KITH_DEMO" help:"Load a demo graph first if the store is empty, and let visitors of the pages on this machine sign in as any of its users."`
	GraphiQL        bool          `group:"schema" name:"graphiql" default:"true" negatable:"" env:"KITH_GRAPHIQL" help:"Serve GraphiQL at /. Default: ${default}."`
	App             bool          `group:"schema" default:"true" negatable:"" env:"KITH_APP" help:"Serve the web app at /app. Default: ${default}."`

	MaxConnections        int `bound:"positive" group:"connections" default:"20000" env:"KITH_MAX_CONNECTIONS" placeholder:"N" help:"Connections that may be open at once; half of them may be WebSockets and event streams. Default: ${default}."`
	MaxAddressConnections int `bound:"positive" group:"connections" name:"max-connections-per-address" default:"1000" env:"KITH_MAX_CONNECTIONS_PER_ADDRESS" placeholder:"N" help:"WebSockets and event streams that one address may have open, backends that may act for others aside. Default: ${default}."`
	MaxUserConnections    int `bound:"positive" group:"connections" name:"max-connections-per-user" default:"200" env:"KITH_MAX_CONNECTIONS_PER_USER" placeholder:"N" help:"WebSockets and event streams that one user may have open. Default: ${default}."`
	MaxUserSubscriptions  int `bound:"positive" group:"connections" name:"max-subscriptions-per-user" default:"1000" env:"KITH_MAX_SUBSCRIPTIONS_PER_USER" placeholder:"N" help:"Subscriptions that one user may have, on all connections. Default: ${default}."`

	identity.Settings `group:"identity"`

	declared *declared.File // in the file Relations, once that is checked
}

// followRules are settings of gateways in which all on a store have to agree.
type followRules struct {
	MaxFollowing int64         `bound:"natural" group:"rules" default:"5000" env:"KITH_MAX_FOLLOWING" placeholder:"N" help:"How many users one may follow, and how many it may block; 0 is no limit. Default: ${default}."`
	RequestPause time.Duration `bound:"positive" group:"rules" name:"friend-request-pause" default:"168h" env:"KITH_FRIEND_REQUEST_PAUSE" help:"How long after a decline one may not ask again to be friends. Default: ${default}."`
}

// Run opens everything, serves until the context is done, and drains.
func (c *ServeCmd) Run(ctx context.Context, settings *Settings, k *kong.Context) error {
	logger := settings.Logger(k.Stderr)
	slog.SetDefault(logger)
	if err := cmp.Or(c.check(), c.checkFeed(settings), c.Settings.Check()); err != nil {
		return unusable{err}
	}
	spans, err := openTraces(ctx, settings, logger)
	if err != nil {
		return err
	}
	defer c.closeTraces(ctx, spans)()
	takes := c.footprint(settings)
	c.tuneGC(takes)
	addProcessors()
	documents, err := c.trustedDocuments()
	if err != nil {
		return err
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
	admin, err := listenAdmin(ctx, c.AdminAddr)
	if err != nil {
		return err
	}
	if admin != nil {
		defer admin.Close()
	}

	registry := newRegistry()
	statements := sqlstore.NewMetrics(registry)
	store, err := settings.OpenStore(ctx, sqlstore.Config{OnStatement: statements.Observe, RequestID: c.requestID(), PackShort: true})
	if err != nil {
		return err
	}
	defer store.Close()
	defer cluster.InBackground(store.Watch)()
	statements.RegisterPools(store)
	redis, _, err := settings.joinRedis(ctx, logger)
	if err != nil {
		return err
	}
	defer redis.Close()
	if err := agree(ctx, settings.agreedRules(c.followRules).WithRedis(ctx, redis), store, false); err != nil {
		return err
	}

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
	cfg := c.gateway(g)
	defer serveAdmin(admin, cfg.Admin(ctx))()
	c.announce(k.Stdout, listener.Addr(), admin, settings, g)
	return gateway.Serve(ctx, cfg, listener, c.Drain)
}

// check refuses settings that cannot be right, before anything is opened.
func (c *ServeCmd) check() (err error) {
	if c.declared, err = declared.Read(c.Relations); err != nil {
		return Misset("relations", err)
	}
	if err := c.shape().check(); err != nil {
		return err
	}
	if c.Trusted == "" && c.OnlyTrusted != string(gateway.TrustAll) {
		return Misset("only-trusted", errors.New("it needs --trusted-documents"))
	}
	if err := CheckAddress(c.Addr); err != nil {
		return Misset("addr", err)
	}
	if err := checkAdminAddr(c.AdminAddr); err != nil {
		return err
	}
	if len(c.Suggest) > social.MaxPinned {
		return Misset("suggest", fmt.Errorf("at most %d users can be pinned", social.MaxPinned))
	}
	if slices.ContainsFunc(c.Suggest, func(id int64) bool { return id < 1 }) {
		return Misset("suggest", errors.New("a user's id is greater than 0"))
	}
	for _, origin := range c.CORSOrigin {
		if err := CheckOrigin(origin); err != nil {
			return Misset("cors-origin", err)
		}
	}
	if err := CheckOrigin(c.PublicURL); c.PublicURL != "" && (err != nil || strings.Contains(c.PublicURL, "*")) {
		return Misset("public-url", cmp.Or(err, errors.New("it names one origin, without *")))
	}
	if err := checkHeaders(c.CORSHeader); err != nil {
		return Misset("cors-header", err)
	}
	if len(c.CORSHeader) > 0 && len(c.CORSOrigin) == 0 {
		return Misset("cors-header", errors.New("it needs --cors-origin"))
	}
	return nil
}

// requestID finds the id for comments in statements; nil for none.
func (c *ServeCmd) requestID() func(context.Context) string {
	if !c.SQLComments {
		return nil
	}
	return gateway.RequestID
}

// servesApp reports whether the web app is served: it asks for everything, by our own names.
func (c *ServeCmd) servesApp() bool { return c.App && c.shape().isWhole() }

func (c *ServeCmd) limits() limits.Limits { return limits.Limits{Cost: c.MaxCost} }

// checkFeed refuses settings of home feeds that cannot be right.
func (c *ServeCmd) checkFeed(settings *Settings) error {
	const mostDays = 365
	switch {
	case c.FeedActiveDays > mostDays:
		return Misset("feed-active-days", fmt.Errorf("it must be at most %d", mostDays))
	case c.Feed == cluster.Pull:
	case settings.Redis == "":
		return Misset("feed", fmt.Errorf("%s needs a Redis (--redis)", c.Feed))
	case !settings.RedisCache:
		return Misset("feed", fmt.Errorf("%s needs the cache in Redis (--redis-cache)", c.Feed))
	case c.FeedMemory == 0:
		return Misset("feed", fmt.Errorf("%s needs recent posts in memory (--feed-memory)", c.Feed))
	}
	return nil
}

// pinned are the users who are suggested first, each once.
func (c *ServeCmd) pinned() []storage.UserID {
	var ids []storage.UserID
	for _, id := range c.Suggest {
		if !slices.Contains(ids, storage.UserID(id)) {
			ids = append(ids, storage.UserID(id))
		}
	}
	return ids
}

// announce prints where to look.
func (c *ServeCmd) announce(out io.Writer, addr net.Addr, admin net.Listener, settings *Settings, p *services) {
	base := baseURL(addr)
	page := "GraphiQL"
	if !web.HasGraphiQL(web.Assets()) {
		page = "query page; `make web` builds GraphiQL"
	}
	fmt.Fprintf(out, "kith serves %s\n", settings.StoreName())
	var lines [][2]string
	if c.GraphiQL {
		lines = append(lines, [2]string{base + "/", page})
	}
	if c.servesApp() {
		app := "the app"
		if !web.HasApp(web.Assets()) {
			app = "a page that says how to build the app"
		}
		lines = append(lines, [2]string{base + "/app", app})
	}
	lines = append(lines, [][2]string{{base + "/graphql", "the API"}, {base + "/healthz", "is it up"}}...)
	if admin != nil {
		at := baseURL(admin.Addr())
		lines = append(lines, [][2]string{
			{at + "/readyz", "are its shards"}, {at + "/metrics", "Prometheus"}, {at + "/schema.graphql", "the schema"}, {at + "/debug/pprof/", "profiles"},
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
		fmt.Fprintln(out, "no --jwt-secret is set: tokens are good for this run only")
	}
	if token := c.demoToken(p); token != "" {
		fmt.Fprintf(out, "a token of user 1:\n  Authorization: Bearer %s\n", token)
	}
}

func baseURL(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d", tcp.Port)
	}
	return "http://" + addr.String()
}
