// Package apitest asks Kith's API in tests, through HTTP: the handler is put together over a store
// as the program does.
//
//	api := apitest.New(t, store, apitest.Options{})
//	answer := api.Ask(`query($id: ID!) { user(by: {id: $id}) { handle } }`, apitest.Vars{"id": "1"})
//	answer.Is(`{"user": {"handle": "u1"}}`)
package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/files/changes"
	"kith/gateway"
	"kith/gateway/quota"
	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/declared"
	"kith/graph/generated"
	"kith/graph/limits"
	"kith/graph/sdl"
	"kith/graph/selections"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/watch"
	"kith/replication"
	"kith/resolvers"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
)

// Options are the settings of the program that tests vary. The zero value is the
// program's defaults.
type Options struct {
	Budget         social.Budget
	RequestTimeout time.Duration
	WriteTimeout   time.Duration // of an answer over an open connection; 0: the default
	Limits         limits.Limits
	MayWrite       func(ctx context.Context, user storage.UserID, mutation string, objects int) error // nil: nothing is bounded
	MaxAnswer      int
	HideSchema     bool
	PublicURL      string
	Without        []string          // parts of the schema
	TypePrefix     selections.Prefix // of the schema
	Declared       *declared.File    // nil: nothing
	Passwords      bool              // users register and log in; their ids are those that follow the numbers of posts
	Log            io.Writer         // where the log goes; nil: nowhere

	MaxFollowing int64
	Redundancy   social.Redundancy // nil: in the call
	Hub          *events.Hub       // nil: a new one
	Feeds        *social.Feeds     // their recent posts get the posts that the API publishes; nil: those of the store
	Statuses     storage.Checkpoints

	RequestTTL   time.Duration    // 0: the default
	RequestPause time.Duration    // 0: the default
	Now          func() time.Time // the clock of what changes relations, and of who is hidden; nil: time.Now

	Context func(context.Context) context.Context // changes that of every request; nil: does not
}

// T is a test or, in a property, rapid's *T.
type T interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// API is the API over one store.
type API struct {
	t      T
	url    string
	header http.Header // of every request
	root   *resolvers.Resolver
}

// headerViewer is how tests sign in.
const (
	headerViewer = "X-Test-Viewer"
	headerScope  = "X-Test-Scope"
)

// Vars are the variables of a query.
type Vars map[string]any

// patience bounds one request. It is reached only if something is wrong.
const patience = 60 * time.Second

// A Cache answers from memory. Tokens ask the store beneath it, as it keeps no rows of edges that have ended.
type Cache interface{ Beneath() storage.Store }

// New serves the API over a store until t ends.
func New(t T, store storage.Store, o Options) *API {
	t.Helper()
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Hub == nil {
		o.Hub = events.NewHub(nil)
	}
	if o.Context == nil {
		o.Context = func(ctx context.Context) context.Context { return ctx }
	}
	logger := slog.New(slog.NewTextHandler(o.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if o.Feeds == nil {
		o.Feeds = &social.Feeds{}
	}
	o.Feeds.Shards = store.Shards
	recent := o.Feeds.Recent
	watched := watch.Watch(store, func(_ context.Context, w storage.Change) {
		for _, p := range w.Posts {
			if recent != nil {
				recent.Apply(p)
			}
		}
		w.Rows = nil // the mode publishes them
		o.Hub.Publish(events.Of(w)...)
	})
	if o.Redundancy == nil {
		sync := replication.NewSynchronous(store, toHub{o.Hub}, prometheus.NewRegistry(), logger)
		t.Cleanup(sync.Close)
		o.Redundancy = sync
	}
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	hiddenUsers := accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), now)
	err := hiddenUsers.Refresh(context.Background())
	must.That(t, err == nil, "read who is hidden: %v", err)
	relations := social.NewRelations(social.Relations{
		Store: watched, Redundancy: o.Redundancy, HiddenUsers: hiddenUsers,
		Rules: social.NewRules(social.Rules{MaxFollowing: o.MaxFollowing, RequestTTL: o.RequestTTL, RequestPause: o.RequestPause}), Now: o.Now,
	})
	states := &accounts.States{Store: watched, Relations: relations, HiddenUsers: hiddenUsers, Now: now}
	itself := store
	if c, is := store.(Cache); is {
		itself = c.Beneath()
	}
	tokens := consistency.New(consistency.Tokens{Key: []byte("of all tests"), Store: itself, MaxWait: 200 * time.Millisecond})
	if o.Declared == nil {
		o.Declared = declared.Nothing
	}
	whole := generated.SchemaOf(o.Declared)
	public := sdl.Without(whole, append([]string{sdl.Operators}, o.Without...)...)
	root := &resolvers.Resolver{
		Budget:    o.Budget,
		Relations: relations,
		States:    states, HiddenUsers: hiddenUsers,
		Accounts: &accounts.Accounts{
			Store: store, Now: time.Now, Identities: accounts.NewIdentities(store, time.Now), Changed: func(storage.UserID, storage.Micros) {},
		},
		Posts: &social.Posts{Store: watched, IDs: new(numbers), HiddenUsers: hiddenUsers, Now: relations.Now},
		Feeds: o.Feeds,
		Reads: cacheOf{store, t}, Store: store, Tokens: tokens, Cursors: cursor.NewSealer([]byte("of all tests")),
		Hub: o.Hub, Statuses: o.Statuses, MayWrite: o.MayWrite,
		Writes: store, Popular: social.NewPopular(store, relations.Now, nil), HideSchema: o.HideSchema, PublicURL: o.PublicURL,
		Declared: o.Declared, Schema: public, Subgraph: func() (string, error) { return sdl.Subgraph(public, o.TypePrefix) },
	}
	if o.Passwords {
		tokens, err := identity.NewIssuer(identity.IssuerConfig{Secrets: identity.RandomSecret()})
		must.That(t, err == nil, "sign tokens: %v", err)
		root.Accounts.IDs, root.Accounts.Passwords, root.Accounts.Tokens, root.Accounts.Limits = root.Posts.IDs, identity.NewPasswords(), tokens, identity.NewLimits(identity.LimitsConfig{})
	}
	if s, ok := store.(changes.Store); ok {
		root.Changes = (&changes.Subscriptions{Store: s, Logger: logger}).Run
	}
	executable := func(schema *ast.Schema) graphql.ExecutableSchema {
		return sdl.Executable(schema, o.TypePrefix, func(shown *ast.Schema) graphql.ExecutableSchema {
			return generated.NewSchema(generated.Config{Resolvers: root, Schema: shown})
		})
	}
	server := httptest.NewServer(signedIn(gateway.New(gateway.Config{
		Schema:         executable(public),
		Operators:      executable(sdl.Without(whole, o.Without...)),
		PerRequest:     func(ctx context.Context) context.Context { return root.Attach(o.Context(ctx)) },
		Limits:         o.Limits,
		Subscriptions:  gateway.Subscriptions{Bounds: quota.Bounds{ConnectionCost: 1 << 50}, WriteTimeout: o.WriteTimeout},
		MaxAnswer:      o.MaxAnswer,
		HideSchema:     o.HideSchema,
		RequestTimeout: o.RequestTimeout,
		Store:          store,
		Consistency:    tokens,
		Logger:         logger,
		IsAdmin: func(ctx context.Context) bool {
			caller, _ := identity.Caller(ctx)
			return caller.Has(identity.ScopeAdmin)
		},
	})))
	t.Cleanup(server.Close)
	return &API{t: t, url: server.URL + "/graphql", root: root}
}

// cacheOf stands for the caches of a store. They hear of a change when subscriptions do, so these must not read from them.
type cacheOf struct {
	storage.Bundler
	t T
}

func (c cacheOf) Bundle(ctx context.Context, b *storage.Bundle) {
	if graphql.HasOperationContext(ctx) && graphql.GetOperationContext(ctx).Operation.Operation == ast.Subscription {
		c.t.Errorf("a subscription reads from caches: %s", graphql.GetOperationContext(ctx).RawQuery)
	}
	c.Bundler.Bundle(ctx, b)
}

// numbers are those of posts and comments, from 1 on.
type numbers struct{ last atomic.Int64 }

func (n *numbers) Next(context.Context) (storage.UserID, error) {
	return storage.UserID(n.last.Add(1)), nil
}

// toHub publishes within the program.
type toHub struct{ hub *events.Hub }

func (p toHub) Publish(_ context.Context, rows []storage.Row) {
	for _, row := range rows {
		p.hub.Publish(events.Event{Row: storage.Row{Side: row.Side.Replica(), Edge: row.Edge}})
	}
}

// signedIn takes a test's word for who asks.
func signedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, _ := strconv.ParseInt(r.Header.Get(headerViewer), 10, 64)
		if scopes := strings.Fields(r.Header.Get(headerScope)); id > 0 || len(scopes) > 0 {
			r = r.WithContext(identity.With(r.Context(), identity.Viewer{ID: storage.UserID(max(0, id)), Scopes: scopes, Subject: storage.Identity{Subject: r.Header.Get(headerViewer)}}))
		}
		next.ServeHTTP(w, r)
	})
}

// As is the same API, asked by a user who is signed in.
func (a *API) As(id storage.UserID) *API { return a.With(headerViewer, id.String()) }

// Admin is the same API, asked by user 1 with the scope admin.
func (a *API) Admin() *API { return a.As(1).With(headerScope, identity.ScopeAdmin) }

// CountingReads is the same API, asked with the scope admin how many rows an answer takes.
func (a *API) CountingReads() *API {
	return a.With(headerScope, identity.ScopeAdmin).With("Kith-Cost", "1")
}

// With is the same API, asked with a header.
func (a *API) With(name, value string) *API {
	header := a.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(name, value)
	return &API{a.t, a.url, header, a.root}
}

// For is the same API, but its failures are those of another test.
func (a *API) For(t T) *API { return &API{t, a.url, a.header, a.root} }

// WorkOnImports does what is due of imports of accounts.
func (a *API) WorkOnImports() {
	a.t.Helper()
	for shard := range a.root.Writes.(storage.ShardAnswerer).Shards() {
		err := a.root.WorkOnImports(context.Background(), shard, func() bool { return true })
		check.That(a.t, err == nil, "imports of shard %d: %v", shard, err)
	}
}

// Ask sends a query. A response that is not a GraphQL answer fails the test; errors in the answer
// do not.
func (a *API) Ask(query string, vars Vars) Answer {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := a.ask(ctx, query, vars)
	must.That(a.t, err == nil, "%s: %v", query, err)
	return answer
}

// AskWithin is Ask for a request that the client gives up after some time. Giving up fails the
// test.
func (a *API) AskWithin(d time.Duration, query string, vars Vars) Answer {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	answer, err := a.ask(ctx, query, vars)
	must.That(a.t, err == nil, "%s\nwith %v: no answer within %s: %v", query, vars, d, err)
	return answer
}

// Abandon sends a query and gives it up after some time.
func (a *API) Abandon(after time.Duration, query string, vars Vars) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), after)
	defer cancel()
	_, err := a.ask(ctx, query, vars)
	must.That(a.t, err != nil, "%s was answered within %s", query, after)
}

func (a *API) ask(ctx context.Context, query string, vars Vars) (Answer, error) {
	body, err := json.Marshal(map[string]any{"query": query, "variables": vars})
	if err != nil {
		return Answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	for name, values := range a.header {
		request.Header[name] = values
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, err
	}
	return parseAnswer(a.t, response.Header, text)
}

// Call is a mutation's field on a user. Of one that takes a kind of request, the field has it behind its name, as in "acceptRequest FOLLOW".
func Call(field, user string) string {
	name, kind, has := strings.Cut(field, " ")
	if has {
		kind = "kind: " + kind + ", "
	}
	return name + "(" + kind + "userId: " + user + ")"
}
