package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"kith/gateway/exchange"
)

// Admin is what a process shows its operators, at an address of its own, because it needs no sign-in and a
// profile takes processor time.
//
//	/metrics       for Prometheus
//	/healthz       200 as long as the process serves
//	/readyz        200 if it should get requests, else 503; JSON
//	/schema.graphql   the schema as text
//	/debug/pprof/  profiles
type Admin struct {
	// Metrics is what /metrics shows. Defaults to none: the page is not found.
	Metrics prometheus.Gatherer

	// Ready answers /readyz. Defaults to none: the page is not found.
	Ready http.Handler

	// Schema answers /schema.graphql. Defaults to none.
	Schema http.Handler
}

// Admin is what a gateway shows, or a process that has only its Checks. It is not ready once the context is done.
func (c Config) Admin(serving context.Context) Admin {
	ready := &readiness{store: c.Store, checks: c.Checks, stopping: func() bool { return serving.Err() != nil }}
	a := Admin{Ready: ready}
	if c.Gatherer != nil {
		own := prometheus.NewRegistry()
		own.MustRegister(ready)
		a.Metrics = prometheus.Gatherers{c.Gatherer, own}
	}
	if !c.HideSchema {
		a.Schema = serveSchema(c.Schema)
	}
	return a
}

// Handler makes the pages.
func (a Admin) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", serveHealth)
	if a.Metrics != nil {
		mux.HandleFunc("GET /metrics", a.serveMetrics)
	}
	if a.Ready != nil {
		mux.Handle("GET /readyz", a.Ready)
	}
	if a.Schema != nil {
		mux.Handle("GET /schema.graphql", a.Schema)
	}
	mux.HandleFunc("GET /debug/pprof/", inBounds(pprof.Index))
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound) // it may hold passwords
	mux.HandleFunc("GET /debug/pprof/profile", inBounds(pprof.Profile))
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", inBounds(pprof.Trace))
	return mux
}

// serveMetrics answers in the form that Prometheus asks for. (client_golang's handler would bring a module of 40 MB for a compression that is not used.)
func (a Admin) serveMetrics(w http.ResponseWriter, r *http.Request) {
	families, err := a.Metrics.Gather()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultAcceptedFormats()...)
	w.Header().Set("Content-Type", string(format))
	encoder := expfmt.NewEncoder(w, format)
	for _, family := range families {
		if encoder.Encode(family) != nil {
			return // the client has disconnected
		}
	}
}

const (
	// mostAdmins is how many connections may be open: probes, Prometheus, and people.
	mostAdmins = 200

	// longestProfile is how many seconds a profile may take. The pages of pprof ignore the server's timeouts.
	longestProfile = 120
)

// inBounds refuses profiles that would take too long.
func inBounds(page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if text := r.FormValue("seconds"); text != "" {
			if seconds, err := strconv.ParseFloat(text, 64); err != nil || !(seconds > 0 && seconds <= longestProfile) { // false of NaN
				http.Error(w, fmt.Sprintf("seconds: it must be above 0 and at most %d", longestProfile), http.StatusBadRequest)
				return
			}
		}
		page(w, r)
	}
}

// Serve shows the pages until the context is done, and closes the listener.
func (a Admin) Serve(ctx context.Context, listener net.Listener) {
	arriving := newArrivals(listener, mostAdmins, 2*silence, exchange.NewMetrics(prometheus.NewRegistry()))
	server := arriving.server(a.Handler(), writeGrace, slog.Default()) // profiles extend the time by their own
	ended := context.AfterFunc(ctx, func() { server.Close() })
	defer ended()
	_ = server.Serve(arriving) // until it is closed
}
