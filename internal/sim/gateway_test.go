package sim

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/cluster"
	httpgateway "kith/gateway"
	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/declared"
	"kith/graph/generated"
	"kith/graph/sdl"
	"kith/loaders"
	"kith/resolvers"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/feed/inbox"
)

// deployment is what the gateways of a world agree in.
type deployment struct {
	cluster.Config
	feed string // how posts come into home feeds
	one  bool   // there is one database, with a relation_log
}

// deployments are chosen by the seed.
var deployments = []deployment{
	{Config: cluster.Config{Redis: "redis", Redundancy: cluster.Sync}, feed: inbox.Pull},
	{Config: cluster.Config{Redis: "redis", Redundancy: cluster.Stream}, feed: inbox.Pull},
	{Config: cluster.Config{Redis: "redis", Redundancy: cluster.Sync, RedisCache: true}, feed: inbox.Push},
	{Config: cluster.Config{Redis: "redis", Redundancy: cluster.Sync}, feed: inbox.Pull, one: true},
	{Config: cluster.Config{Redis: "redis", Redundancy: cluster.Binlog}, feed: inbox.Pull},
}

// gateway is the production code of a gateway, from GraphQL over HTTP down to the store.
type gateway struct {
	*world
	name    string
	ahead   atomic.Int64 // how far its clock is, in nanoseconds
	dead    atomic.Bool
	started time.Time

	store     *handle
	redis     *cluster.Redis
	caches    *cluster.Caches
	hidden    *accounts.HiddenUsers
	relations *social.Relations
	states    *accounts.States
	accounts  *accounts.Accounts
	posts     *social.Posts
	tokens    *consistency.Tokens
	api       http.Handler
	watchers  []*watcher
	writing   map[storage.Pair]int // how many writes of an edge are not known to have got to both sides

	closers []func()
}

func (g *gateway) now() time.Time { return time.Now().Add(time.Duration(g.ahead.Load())) }

// schema is what clients ask.
var schema = sync.OnceValue(func() *ast.Schema {
	return sdl.Without(generated.SchemaOf(declared.Nothing), sdl.Operators, sdl.Federation)
})

// writesAMinute is how often a user may call a mutation.
const writesAMinute = 20

// start opens a gateway in the order of cli/wiring.go, and returns once it serves.
func (w *world) start(name string, ahead time.Duration) *gateway {
	g := &gateway{world: w, name: name, writing: map[storage.Pair]int{}}
	g.ahead.Store(int64(ahead))
	g.store = &handle{Store: w.shards, of: g}
	g.redis = w.server.client(g)
	logger, registry := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	hub := events.NewHub(nil)
	bus := cluster.EventsOf(g.store, g.redis, hub, nil)
	g.caches = w.OpenCaches(cluster.CacheConfig{
		Store: g.store, Bus: bus, Redis: g.redis, Bytes: 1 << 20, FeedBytes: 1 << 20, Hub: hub, Logger: logger, Replicates: true, Registerer: registry, Follow: g.follow,
	})
	g.tokens = consistency.New(consistency.Tokens{Key: []byte("key"), Store: g.store, Arrived: g.caches.Required})
	redundancy := g.caches.OpenRedundancy()
	serves := make(chan struct{})
	stopCaches := cluster.InBackground(func(ctx context.Context) { g.caches.Run(ctx, func() { close(serves) }) })
	<-serves
	g.hidden = accounts.NewHiddenUsers(g.store, accounts.NewMetrics(registry), g.now)
	_ = g.hidden.Refresh(context.Background())
	stopHidden := cluster.InBackground(func(ctx context.Context) { g.hidden.Run(ctx, hub) })
	g.relations = social.NewRelations(social.Relations{Store: g.store, Redundancy: redundancy, HiddenUsers: g.hidden, Now: g.now})
	g.states = &accounts.States{Store: g.store, Relations: g.relations, HiddenUsers: g.hidden, Now: g.now}
	limits := identity.NewLimits(identity.LimitsConfig{PerUser: writesAMinute, Now: g.now})
	limits.CountAll = g.redis.CountAll(g.store)
	g.accounts = &accounts.Accounts{
		Store: g.store, IDs: w, Limits: limits, Now: g.now, Identities: accounts.NewIdentities(g.store, g.now), Changed: g.hidden.Passwords.Note,
	}
	g.posts = &social.Posts{Store: g.store, IDs: w, HiddenUsers: g.hidden, Now: g.now}
	feeds, stopFeeds := g.openFeeds(logger, registry)
	root := &resolvers.Resolver{
		Relations: g.relations, States: g.states, HiddenUsers: g.hidden, Accounts: g.accounts, Posts: g.posts, Feeds: feeds,
		Reads: g.caches.Reader(), Store: g.caches.Exact(), Tokens: g.tokens, Cursors: cursor.NewSealer([]byte("key")), Hub: hub,
		Writes: g.store, Popular: social.NewPopular(g.store, g.now, nil), Declared: declared.Nothing, Schema: schema(),
	}
	g.api = httpgateway.New(httpgateway.Config{
		Schema:     generated.NewSchema(generated.Config{Resolvers: root, Schema: schema()}),
		PerRequest: root.Attach, Store: g.store, Consistency: g.tokens, Logger: logger,
	})
	g.closers = []func(){stopFeeds, stopHidden, stopCaches, redundancy.Close, g.caches.Close, hub.Close, func() { g.redis.Close() }}
	g.started = time.Now()
	return g
}

// openFeeds makes the home feeds as cli/wiring.go does.
func (g *gateway) openFeeds(logger *slog.Logger, registry *prometheus.Registry) (feeds *social.Feeds, stop func()) {
	feeds = &social.Feeds{Shards: g.store.Shards, Recent: g.caches.RecentPosts()}
	if g.feed == inbox.Pull {
		return feeds, func() {}
	}
	bounds := func() (int64, time.Duration) { return 4, 24 * time.Hour }
	feeds.Inboxes = g.caches.OpenInboxes(inbox.Config{Logger: logger, Bounds: bounds}, registry)
	graph := func(ctx context.Context) *social.Graph { return social.New(g.reads(ctx), social.DefaultBudget, nil) }
	stopRun := cluster.InBackground(feeds.Inboxes.Run)
	stopBuild := cluster.InBackground(func(ctx context.Context) { feeds.BuildInboxes(ctx, graph) })
	return feeds, func() { stopBuild(); stopRun() }
}

// close stops the gateway. If it is dead, nobody hears of that.
func (g *gateway) close() {
	for _, close := range g.closers {
		close()
	}
}

// reads is what one request reads from.
func (g *gateway) reads(ctx context.Context) loaders.Reader {
	return loaders.For(loaders.Attach(ctx, g.caches.Reader())).Reader()
}
