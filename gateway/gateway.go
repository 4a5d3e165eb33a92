// Package gateway is Kith's HTTP surface: GraphQL over HTTP, the pages of the
// web folder, and, at an address of their own, health, readiness, metrics and profiles.
//
// GraphQL follows the GraphQL-over-HTTP specification; the public audit suite finds no violation
// (see audit_test.go). Errors of every kind, those of HTTP included, are GraphQL responses with
// `extensions.code` and `extensions.retryable`.
package gateway

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzhttp"
)

// minCompressed is the size from which an answer is compressed. Below it, at most one packet is
// saved.
const minCompressed = 1 << 10

// New makes the handler of the public surface:
//
//	/graphql   queries by POST and GET, subscriptions by WebSocket and server-sent events
//	/healthz   200 as long as the process serves
//	/          cfg.Web
//
// What operators need is in [Config.Admin].
//
// Connections that stay open end only with their clients or when their time is over. The program uses
// [Serve], which also ends them before it stops; New is for callers that have a server already, such
// as [net/http/httptest].
//
// It panics on a schema that the limits cannot cost, which is a mistake in the
// program.
func New(cfg Config) http.Handler {
	cfg = cfg.withDefaults()
	return newHandler(cfg, newConnections(cfg.Subscriptions))
}

// newHandler makes the handler. Its connections that stay open can be asked to
// end.
func newHandler(cfg Config, open *connections) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/graphql", endpoint(cfg, open))
	mux.HandleFunc("GET /healthz", serveHealth)
	if cfg.Web != nil {
		mux.Handle("/", cfg.Web)
	}

	var h http.Handler = mux
	h = compressed(h)
	h = sendingAway(cfg.stopping, h)
	h = recovering(cfg.Logger, h)
	h = logged(cfg.Logger, cfg.AccessLevel, h)
	return identified(h)
}

// endpoint is /graphql: the server behind the handlers that only its requests need.
func endpoint(cfg Config, open *connections) http.Handler {
	origins := newOrigins(cfg.CORSOrigins, cfg.CORSHeaders)
	var h http.Handler = newServer(cfg, origins, open)
	h = cfg.Identify(h)
	h = origins.handler(h)
	h = cfg.Metrics.counted(h)
	return traced(cfg.Traces, h)
}

// compressed compresses long answers, except for WebSockets, which take over the
// connection itself.
func compressed(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(minCompressed),
		gzhttp.CompressionLevel(1), // the higher levels save little more and take far longer
		gzhttp.EnableZstd(false),   // every client speaks gzip, with less memory held for each
	)
	if err != nil {
		panic(err) // only for options that contradict each other
	}
	compressing := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if upgrades(r) {
			next.ServeHTTP(w, r)
			return
		}
		compressing.ServeHTTP(w, r)
	})
}

// upgrades reports whether a request asks to become a WebSocket.
func upgrades(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// Once the gateway is stopping, sendingAway closes each connection after its next answer, so that its
// client connects to another gateway. Closing idle connections right away could cut a request that is
// already being sent: only the client knows whether there is one.
func sendingAway(stopping *atomic.Bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
