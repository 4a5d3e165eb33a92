package cli

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/accounts/ids"
	"kith/cluster"
	"kith/examples"
	"kith/files/changes"
	"kith/files/importer/demo"
	"kith/gateway"
	"kith/gateway/documents"
	"kith/gateway/exchange"
	"kith/gateway/quota"
	"kith/gateway/traces"
	"kith/gateway/trusted"
	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/sdl"
	"kith/loaders"
	"kith/reconcile"
	"kith/resolvers"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/feed/inbox"
	"kith/storage/sqlstore"
	"kith/web"
)

// services are what a gateway consists of, besides its settings.
type services struct {
	root        resolvers.Resolver // the parts that answer requests
	takes       footprint
	store       *sqlstore.Store
	caches      *cluster.Caches
	redis       *cluster.Redis
	identity    *identity.Service
	ids         *ids.Generator
	redundancy  *cluster.Redundancy
	hiddenUsers *accounts.HiddenUsers
	documents   *trusted.Documents
	traces      *traces.Traces
	registry    *prometheus.Registry
	logger      *slog.Logger

	closers []func()
}

// close closes the parts that have been opened, the last first. The caller of open defers it
// before open, so that the parts of a failed open are closed as well.
func (p *services) close() {
	for _, close := range slices.Backward(p.closers) {
		close()
	}
}

// open opens the parts that have not been set yet, one after another.
func (c *ServeCmd) open(ctx context.Context, settings *Settings, p *services) (err error) {
	if p.ids, err = ids.New(ctx, p.store, ids.Config{Logger: p.logger}); err != nil {
		return Misset("store", err)
	}
	p.closers = append(p.closers, func() { p.ids.Close(context.WithoutCancel(ctx)) })

	metrics := events.NewMetrics(p.registry)
	reconcile.NewRuns(p.registry, p.store)
	p.root.Hub = events.NewHub(metrics)
	p.closers = append(p.closers, p.root.Hub.Close)
	bus := cluster.EventsOf(p.store, p.redis, p.root.Hub, metrics)
	p.caches = settings.cluster().OpenCaches(cluster.CacheConfig{
		Store: p.store, Bus: bus, Hub: p.root.Hub, Redis: p.redis, Bytes: p.takes.caches,
		FeedBytes: feedBytes, Replicates: c.Replicate, Registerer: p.registry, Logger: p.logger})
	p.closers = append(p.closers, p.caches.Close)
	key, err := p.store.Secret(ctx, "consistency tokens")
	if err != nil {
		return Misset("store", err)
	}
	p.root.Tokens = consistency.New(consistency.Tokens{Key: key, Store: p.store, Arrived: p.caches.Required})
	if key, err = p.store.Secret(ctx, "cursors"); err != nil {
		return Misset("store", err)
	}
	p.root.Cursors = cursor.NewSealer(key)
	p.redundancy = p.caches.OpenRedundancy()
	p.closers = append(p.closers, p.redundancy.Close)
	p.closers = append(p.closers, cluster.InBackground(func(ctx context.Context) { settings.watch(ctx, p.store, p.redis, p.logger, forAll, forGateways) }))
	p.startCaches()
	p.identity.Limits.CountAll = p.redis.CountAll(p.store)
	return c.openRelations(ctx, settings, p)
}

// startCaches returns when other gateways know of this one.
func (p *services) startCaches() {
	started := make(chan struct{})
	p.closers = append(p.closers, cluster.InBackground(func(ctx context.Context) {
		p.caches.Run(ctx, func() { close(started) })
	}))
	<-started
}

// openRelations loads the hidden users, and makes the rules that need them. Background work
// ends before the mode that propagates its rows.
func (c *ServeCmd) openRelations(ctx context.Context, settings *Settings, p *services) error {
	p.hiddenUsers = accounts.NewHiddenUsers(p.store, accounts.NewMetrics(p.registry), time.Now)
	if err := p.hiddenUsers.Refresh(ctx); err != nil {
		return Misset("store", err)
	}
	p.root.HiddenUsers = p.hiddenUsers
	identities := accounts.NewIdentities(p.store, time.Now)
	p.identity.Verifier.UseRevocations(p.hiddenUsers.Passwords, identities)
	p.closers = append(p.closers, cluster.InBackground(func(ctx context.Context) { p.hiddenUsers.Run(ctx, p.root.Hub) }))
	p.root.Relations = social.NewRelations(social.Relations{
		Store: p.store, Redundancy: p.redundancy, HiddenUsers: p.hiddenUsers,
		Rules: &settings.rules,
	})
	p.root.States = &accounts.States{Store: p.store, Relations: p.root.Relations, HiddenUsers: p.hiddenUsers, Now: time.Now}
	p.root.Activity = accounts.NewActivity(p.store.MarkActive, p.logger, time.Now)
	p.closers = append(p.closers, cluster.InBackground(p.root.Activity.Run))
	p.root.Accounts = &accounts.Accounts{
		Store: p.store, IDs: p.ids, Passwords: p.identity.Passwords, Tokens: p.identity.Issuer,
		Limits: p.identity.Limits, Now: time.Now, Identities: identities, Reserved: accounts.Reserved(c.declared.ReservedHandles),
		Changed: p.hiddenUsers.Passwords.Note,
		Active:  p.signedIn,
	}
	p.root.Posts = &social.Posts{Store: p.store, IDs: p.ids, HiddenUsers: p.hiddenUsers, Now: time.Now}
	c.openFeeds(settings, p)
	if p.documents != nil {
		p.closers = append(p.closers, cluster.InBackground(func(ctx context.Context) { p.documents.Follow(ctx, trusted.CheckEvery, p.logger) }))
	}
	p.documents.Register(p.registry)
	return nil
}

// openFeeds makes the home feeds, and begins to copy posts in the modes that do so.
func (c *ServeCmd) openFeeds(settings *Settings, p *services) {
	p.root.Feeds = &social.Feeds{Shards: p.store.Shards, Recent: p.caches.RecentPosts()}
	if settings.Feed == inbox.Pull {
		return
	}
	config := inbox.Config{Logger: p.logger, Bounds: func() (hot int64, active time.Duration) {
		now := settings.now.Load()
		if settings.Feed == inbox.Hybrid {
			hot = now.FeedHot
		}
		return hot, time.Duration(now.FeedActiveDays) * 24 * time.Hour
	}}
	p.root.Feeds.Inboxes = p.caches.OpenInboxes(config, p.registry)
	graph := func(ctx context.Context) *social.Graph {
		return social.New(loaders.For(loaders.Attach(ctx, p.caches.Reader())).Reader(), c.budget(), nil)
	}
	p.closers = append(p.closers,
		cluster.InBackground(p.root.Feeds.Inboxes.Run),
		cluster.InBackground(func(ctx context.Context) { p.root.Feeds.BuildInboxes(ctx, graph) }))
}

// signedIn notes that a user has signed in.
func (p *services) signedIn(id storage.UserID) {
	p.root.Activity.Note(id)
	if p.root.Feeds.Inboxes != nil {
		p.root.Feeds.Inboxes.Ask(id)
	}
}

// gateway wires the way of a request: HTTP, schema, resolvers, loaders, store.
func (c *ServeCmd) gateway(settings *Settings, p *services) gateway.Config {
	public := c.shape().schema(false)
	root := &p.root
	root.Budget = c.budget()
	root.MayWrite = p.identity.Limits.Write
	root.Reads, root.Store = p.caches.Reader(), p.caches.Exact()
	root.Writes, root.Statuses = p.store, p.store
	root.Popular = social.NewPopular(p.store, root.Relations.Now, settings.pinnedNow)
	root.Changes = (&changes.Subscriptions{Store: p.store, Logger: p.logger}).Run
	root.Declared, root.Schema = c.declared, public
	root.HideSchema = c.HideSchema
	root.PublicURL = c.PublicURL
	root.Subgraph = sync.OnceValues(func() (string, error) { return sdl.Subgraph(public, c.shape().prefix) })
	sweeper := &accounts.Sweeper{States: root.States, Leaser: p.store, Shards: p.store.Shards, Logger: p.logger}
	sweeper.Due = append(sweeper.Due, root.Relations.EndDue, root.WorkOnImports)
	p.closers = append(p.closers, cluster.InBackground(sweeper.Run))
	schemas := c.shape().schemas(root)
	return gateway.Config{
		Schema:         schemas.Schema,
		Operators:      schemas.Operators,
		PerRequest:     root.Attach,
		Identify:       identity.Identify(p.identity.Verifier, p.identity.Proxies),
		MayAsk:         identity.MayAsk,
		MaxConnections: c.MaxConnections,
		Subscriptions: gateway.Subscriptions{
			Init: p.identity.Verifier.FromInit, Expires: identity.Expires, Revoked: p.identity.Verifier.Watch, Party: party,
			Bounds: quota.Bounds{
				Connections: max(1, c.MaxConnections/2), AddressConnections: max(1, c.MaxConnections/20),
				UserConnections: max(1, c.MaxConnections/100), UserSubscriptions: max(1, c.MaxConnections/20),
			},
		},
		Limits:         c.limits(),
		MaxBody:        int64(c.MaxBody),
		MaxRequests:    c.MaxRequests,
		Trusted:        p.documents,
		OnlyTrusted:    documents.OnlyTrusted(c.OnlyTrusted),
		HideSchema:     c.HideSchema,
		RequestTimeout: c.RequestTimeout,
		StopDelay:      c.StopDelay,
		CORSOrigins:    c.CORSOrigin,
		CORSHeaders:    c.CORSHeader,
		Store:          p.store,
		Consistency:    root.Tokens,
		Checks:         p.checks(settings),
		Metrics:        exchange.NewMetrics(p.registry),
		Traces:         p.traces,
		SlowOperation:  c.SlowOperation,
		IsAdmin:        identity.IsAdmin,
		Gatherer:       p.registry,
		Web:            web.Handler(c.pages(p, public.Description)),
		Logger:         p.logger,
	}
}

// checks are what /readyz asks.
func (p *services) checks(settings *Settings) (list []gateway.Check) {
	if p.redis.Client() != nil {
		list = append(list, gateway.Check{Name: "redis", Ask: p.redis.Ready})
	}
	if r := p.redundancy.Replication; r != nil {
		list = append(list, gateway.Check{Name: "replication", Ask: r.Ready, Details: r.Report})
	}
	if p.documents != nil {
		list = append(list, gateway.Check{Name: "trusted-documents", Ask: p.documents.Ready})
	}
	return append(list,
		gateway.Check{Name: "settings", Ask: func(ctx context.Context) error { return settings.agrees(ctx, p.store, p.redis) }},
		gateway.Check{Name: "machine-id", Ask: p.ids.Ready},
		gateway.Check{Name: "hidden-users", Ask: p.hiddenUsers.Ready})
}

// party is the party that a connection counts for. A backend that may act for others opens
// connections for many users from one address, so these connections count only for the users.
func party(ctx context.Context) quota.Party {
	caller, known := identity.Caller(ctx)
	who := quota.Party{User: int64(caller.ID), Anonymous: !known}
	if !caller.Has(identity.ScopeActAs) {
		who.Address = identity.AddressKey(identity.AddressOf(ctx))
	}
	return who
}

// pages are the query page and the app. Without --demo they contain nothing of the demo graph.
func (c *ServeCmd) pages(p *services, schema string) web.Config {
	pages := web.Config{Greeting: schema, Host: c.Addr, Demo: c.demoUsers(p), WithoutGraphiQL: !c.serves("graphiql"), WithoutApp: !c.servesApp(), WithoutPasswords: p.identity.Issuer == nil}
	for _, at := range p.identity.Providers {
		if at.App != nil {
			pages.SignIns = append(pages.SignIns, web.SignIn{Issuer: at.Issuer, ClientID: at.App.ClientID, Scopes: at.App.Scopes})
		}
	}
	if c.Demo && c.shape().isWhole() {
		pages.Examples = examples.All()
	}
	return pages
}

// demoUsers are the users that a visitor of the pages may be. A user who has a password, or has
// signed out everywhere, cannot be signed in in this way.
func (c *ServeCmd) demoUsers(p *services) web.Demo {
	if !c.Demo || p.identity.Issuer == nil {
		return web.Demo{}
	}
	return web.Demo{Users: demo.Users, IsLocal: identity.IsLocal, Token: func(user int64) (string, time.Time, error) {
		return p.identity.Issuer.Issue(storage.UserID(user), 0)
	}}
}
