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
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"kith/gateway/quota"
	"kith/gateway/traces"
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
	return newHandler(cfg, newAdmission(cfg))
}

// Serve answers on a listener until the context is done, and for [Config.StopDelay] after that.
// Then it accepts no more connections, ends the subscriptions, lets the requests under way finish
// for at most drain, and cuts the rest. It returns nil if everything ended by itself, and closes
// the listener in any case.
//
// Requests do not see that the context is done: they have their own deadlines.
func Serve(ctx context.Context, cfg Config, listener net.Listener, drain time.Duration) error {
	cfg = cfg.withDefaults()
	bounds := newAdmission(cfg)
	arriving := newArrivals(listener, cfg.MaxConnections, cfg.Metrics)
	server := arriving.server(newHandler(cfg, bounds), readTimeout+cfg.RequestTimeout+writeGrace, cfg.Logger)
	if cfg.H2C {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
		server.HTTP2 = boundsOfHTTP2()
		server.Handler = arriving.streams(server.Handler)
	}
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
	err := shutdown(server, bounds.Limiter, drain)
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
func newHandler(cfg Config, bounds *admission) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/graphql", endpoint(cfg, bounds))
	mux.HandleFunc("GET /healthz", serveHealth)
	if cfg.Web != nil {
		mux.Handle("/", cfg.Web)
	}
	return exchanging(cfg, recovering(cfg.Logger, mux))
}

// endpoint is /graphql: the server behind the handlers that only its requests need.
func endpoint(cfg Config, bounds *admission) http.Handler {
	s := newServer(cfg, bounds)
	ask := s.origins.handler(cfg.Identify(s))
	return traced(cfg.Traces, cfg.Metrics.counted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" {
			s.origins.watch(r)
		}
		ask.ServeHTTP(w, r)
	})))
}

// ownID matches request ids that are taken over from clients. Anything
// else must not get into a log.
var ownID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// exchanging gives every request its exchange, with an id: the client's, if the request has one. At its end the exchange is
// logged.
//
// Once the gateway is stopping, each connection is closed after its next answer, so that its client connects to another
// gateway. Closing idle connections right away could cut a request that is already being sent: only the client knows whether
// there is one.
func exchanging(cfg Config, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		x := &exchange{ResponseWriter: w, id: r.Header.Get(headerRequestID)}
		if !ownID.MatchString(x.id) {
			x.id = strconv.FormatUint(rand.Uint64()|1<<63, 16) // 16 digits: it distinguishes requests, and is no secret
		}
		w.Header().Set(headerRequestID, x.id)
		if cfg.stopping.Load() || r.TransferEncoding != nil { // net/http hides a Content-Length beside it, by which a proxy may find another end
			w.Header().Set("Connection", "close")
		}
		ctx := context.WithValue(r.Context(), exchangeKey{}, x)
		defer func() {
			if cfg.Logger.Enabled(ctx, cfg.AccessLevel) {
				cfg.Logger.LogAttrs(ctx, cfg.AccessLevel, "request", x.attrs(r, time.Since(start))...)
			}
		}()
		next.ServeHTTP(x, r.WithContext(ctx))
	})
}

// traced gives each request to /graphql a span, which lasts from before the caller is identified until the answer is
// written. Operations of WebSockets have spans of their own, see [server.runOnce]; subscriptions have none: they last for
// hours.
func traced(t *traces.Traces, next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		if r.Method != http.MethodOptions && !upgrades(r) {
			x.span = t.Request(r.Header)
		}
		if x.span != nil {
			w.Header().Set(headerTrace, x.span.Response())
		}
		defer func() {
			x.span.HTTP(x.id, r, x.status)
			x.span.End(string(x.outcome), x.outcome.isFailure())
		}()
		next.ServeHTTP(w, r)
	})
}

// recovering answers a request whose handler panicked outside of GraphQL.
func recovering(logger *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch reason := recover(); reason {
			case nil:
			case http.ErrAbortHandler: // the way to cut a connection on purpose
				panic(reason)
			default:
				logPanic(r.Context(), logger, reason)
				http.Error(w, masked, http.StatusInternalServerError)
			}
		}()
		next.ServeHTTP(w, r)
	})
}
