package bench_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/bench"
	"kith/gateway"
	"kith/gateway/exchange"
	"kith/gateway/traces"
	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/declared"
	"kith/graph/generated"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/resolvers"
	"kith/social"
	"kith/storage"
	"kith/storage/cache/localcache"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// BenchmarkHandler measures what a question costs apart from SQL and the network. It calls the gateway's handler, as the
// program assembles it, over the store in memory, without a connection. Use it for profiles:
//
//	go test ./bench -run '^$' -bench Handler -benchmem -cpuprofile cpu.out -memprofile mem.out -memprofilerate 1
//
// The question q0 asks for nothing, so its cost is part of every request.
func BenchmarkHandler(b *testing.B) {
	graph := bench.NewGraph(2_000, 42)
	askAll(b, handlerOver(b, fill(b, oracle.New(), graph), nil), graph)
}

// BenchmarkHandlerWarm is [BenchmarkHandler] with everything that is asked for in the gateway's memory.
func BenchmarkHandlerWarm(b *testing.B) {
	graph := bench.NewGraph(2_000, 42)
	store := fill(b, oracle.New(), graph)
	cache := localcache.New(localcache.Config{Store: store, Bytes: 256 << 20})
	b.Cleanup(cache.Close)
	askAll(b, handlerOver(b, store, cache), graph)
}

// BenchmarkHandlerTraced is [BenchmarkHandlerWarm] with traces of one request in a hundred, and of all requests. A collector
// receives them.
func BenchmarkHandlerTraced(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(collector.Close)
	graph := bench.NewGraph(2_000, 42)
	store := fill(b, oracle.New(), graph)
	for name, ratio := range map[string]float64{"ratio=0.01": .01, "ratio=1": 1} {
		b.Run(name, func(b *testing.B) {
			cache := localcache.New(localcache.Config{Store: store, Bytes: 256 << 20})
			b.Cleanup(cache.Close)
			settings := traces.Settings{Endpoint: collector.URL, Ratio: ratio}
			cfg := configOf(b, store, cache)
			var err error
			cfg.Traces, err = traces.Open(b.Context(), traces.Config{Settings: settings, Logger: cfg.Logger})
			must.OK(b, err)
			b.Cleanup(func() { cfg.Traces.Close(context.WithoutCancel(b.Context())) })
			askAll(b, gateway.New(cfg), graph)
		})
	}
}

// BenchmarkHandlerSlowLog is [BenchmarkHandlerWarm] without and with the log of slow operations, while no operation is slow.
func BenchmarkHandlerSlowLog(b *testing.B) {
	graph := bench.NewGraph(2_000, 42)
	store := fill(b, oracle.New(), graph)
	for name, from := range map[string]time.Duration{"off": 0, "on": time.Minute} {
		b.Run(name, func(b *testing.B) {
			cache := localcache.New(localcache.Config{Store: store, Bytes: 256 << 20})
			b.Cleanup(cache.Close)
			cfg := configOf(b, store, cache)
			cfg.SlowOperation = from
			askAll(b, gateway.New(cfg), graph)
		})
	}
}

// BenchmarkHandlerSQLite is [BenchmarkHandler] over a store of SQL.
func BenchmarkHandlerSQLite(b *testing.B) {
	graph := bench.NewGraph(2_000, 42)
	store, err := sqlstore.Open(b.Context(), sqlstore.Config{Location: "sqlite:" + filepath.Join(b.TempDir(), "kith.db")})
	must.OK(b, err)
	b.Cleanup(func() { _ = store.Close() })
	askAll(b, handlerOver(b, fill(b, store, graph), nil), graph)
}

func askAll(b *testing.B, h http.Handler, graph *bench.Graph) {
	b.Run("q0", func(b *testing.B) {
		askHandler(b, h, func(body []byte) []byte { return append(body, `{"query":"query Q0 { __typename }"}`...) })
	})
	for _, q := range bench.Questions {
		b.Run(q.Name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(7, 7))
			askHandler(b, h, func(body []byte) []byte { return q.AppendBody(body, q.Draw(graph, random)) })
		})
	}
}

// askHandler asks one question after another, each with a new body.
func askHandler(b *testing.B, h http.Handler, appendBody func([]byte) []byte) {
	b.ReportAllocs()
	var body []byte
	var content bytes.Reader
	request := httptest.NewRequest(http.MethodPost, "/graphql", nil)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	answer := discarding{header: http.Header{}}
	for b.Loop() {
		body = appendBody(body[:0])
		content.Reset(body)
		request.Body, request.ContentLength = io.NopCloser(&content), int64(len(body))
		clear(answer.header)
		answer.status = 0
		h.ServeHTTP(&answer, request)
		if answer.status != http.StatusOK || answer.failed {
			b.Fatalf("%s is answered with %d", body, answer.status)
		}
	}
}

// discarding is an answer that keeps only its status, and whether there are errors.
type discarding struct {
	header http.Header
	status int
	failed bool
}

func (d *discarding) Header() http.Header    { return d.header }
func (d *discarding) WriteHeader(status int) { d.status = status }

func (d *discarding) Write(b []byte) (int, error) {
	d.failed = d.failed || bytes.HasPrefix(b, []byte(`{"errors"`))
	return len(b), nil
}

// handlerOver assembles the handler as `kith serve` does, with nobody signed in. If cache is not nil, it is in front of the store.
func handlerOver(b *testing.B, store storage.Store, cache *localcache.Cache) http.Handler {
	b.Helper()
	return gateway.New(configOf(b, store, cache))
}

// configOf is the configuration of the gateway that handlerOver makes.
func configOf(b *testing.B, store storage.Store, cache *localcache.Cache) gateway.Config {
	b.Helper()
	registry := prometheus.NewRegistry()
	hiddenUsers := accounts.NewHiddenUsers(store, accounts.NewMetrics(registry), time.Now)
	must.OK(b, hiddenUsers.Refresh(b.Context()))
	relations := social.NewRelations(social.Relations{Store: store, HiddenUsers: hiddenUsers})
	root := &resolvers.Resolver{
		Declared:  declared.Nothing,
		Relations: relations, HiddenUsers: hiddenUsers, Store: store,
		Feeds:   &social.Feeds{Shards: store.Shards},
		Cursors: cursor.NewSealer([]byte("of a benchmark")),
		Hub:     events.NewHub(nil), Popular: social.NewPopular(store, time.Now, nil),
	}
	if cache != nil {
		root.Reads = cache
	}
	return gateway.Config{
		Schema:     generated.NewSchema(generated.Config{Resolvers: root}),
		PerRequest: root.Attach,
		Identify:   identity.Identify(nil, identity.Proxies{}), // no request brings a token to verify
		Store:      store, Consistency: consistency.New(consistency.Tokens{Store: store}),
		Metrics: exchange.NewMetrics(registry),
		Logger:  slog.New(slog.DiscardHandler),
	}
}

// fill puts a graph into a store.
func fill(b *testing.B, store storage.Store, graph *bench.Graph) storage.Store {
	b.Helper()
	users := make([]storage.User, graph.Users)
	for i := range users {
		id := graph.ID(i + 1)
		users[i] = storage.User{ID: id, Handle: "u" + id.String(), Name: "u" + id.String(), CreatedAt: 1, UpdatedAt: 1}
	}
	for _, r := range store.CreateUsers(b.Context(), users) {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
	edges := slices.Collect(graph.Edges())
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for _, r := range store.Apply(b.Context(), side, edges, storage.IfNewer) {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	}
	return store
}
