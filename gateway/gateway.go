// Package gateway is Kith's HTTP surface: GraphQL over HTTP, the pages of the
// web folder, and, at an address of their own, health, readiness, metrics and profiles.
//
// GraphQL follows the GraphQL-over-HTTP specification; the public audit suite finds no violation
// (see audit_test.go). Errors of every kind, those of HTTP included, are GraphQL responses with
// `extensions.code` and `extensions.retryable`.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"kith/gateway/exchange"
	"kith/gateway/quota"
)

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
	return newHandler(cfg, newLimiter(cfg))
}

// Serve answers on a listener until the context is done, and for [Config.StopDelay] after that.
// Then it accepts no more connections, ends the subscriptions, lets the requests under way finish
// for at most drain, and cuts the rest. It returns nil if everything ended by itself, and closes
// the listener in any case.
//
// Requests do not see that the context is done: they have their own deadlines.
func Serve(ctx context.Context, cfg Config, listener net.Listener, drain time.Duration) error {
	cfg = cfg.withDefaults()
	bounds := newLimiter(cfg)
	arriving := newArrivals(listener, cfg.MaxConnections, 2*cfg.Subscriptions.PingInterval, cfg.Metrics)
	server := arriving.server(newHandler(cfg, bounds), readTimeout+cfg.RequestTimeout+writeGrace, cfg.Logger)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(arriving) }()

	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	cfg.stopping.Store(true)
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-time.After(cfg.StopDelay):
	}
	err := shutdown(server, bounds, drain)
	<-ended //nolint:errcheck // it says that the server was shut down
	return err
}

func shutdown(server *http.Server, open *quota.Limiter, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	open.Stop()
	err := server.Shutdown(ctx)
	if err == nil {
		err = open.Wait(ctx) // the server knows nothing of WebSockets
	}
	if err != nil {
		err = fmt.Errorf("requests were cut off after %s (--drain): %w", drain, err)
		return errors.Join(err, server.Close())
	}
	return nil
}

// newHandler makes the handler. Its connections that stay open can be asked to
// end.
func newHandler(cfg Config, bounds *quota.Limiter) http.Handler {
	mux := http.NewServeMux()
	s := newServer(cfg, bounds)
	mux.Handle("/graphql", s.endpoint(cfg))
	mux.HandleFunc("GET /healthz", serveHealth)
	if cfg.Web != nil {
		mux.Handle("/", cfg.Web)
		mux.Handle("/demo/", s.origins.handler(cfg.Web)) // pages of other origins sign in as demo users, too
	}
	return exchange.Handler(cfg.stopping, cfg.Logger, mux)
}

// endpoint is /graphql: the server behind the handlers that only its requests need.
func (s *server) endpoint(cfg Config) http.Handler {
	ask := s.origins.handler(s)
	return cfg.Metrics.Counted(cfg.Traces, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			s.origins.watch(r)
		}
		ask.ServeHTTP(w, r)
	}))
}

func newLimiter(cfg Config) *quota.Limiter {
	bounds := cfg.Subscriptions.Bounds
	bounds.Answer, bounds.Body, bounds.Requests = cfg.MaxAnswer, cfg.MaxBody, cfg.MaxRequests
	return quota.New(bounds, cfg.Subscriptions.Party, cfg.Metrics)
}
