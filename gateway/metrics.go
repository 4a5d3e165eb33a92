package gateway

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts GraphQL requests by the type of their operation and how they
// ended. The names that clients give their operations never become labels: there
// is no end of them.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kith_graphql_requests_total",
			Help: "GraphQL requests by type of operation (query, mutation, subscription, unknown) and outcome (ok, partial, error, timeout, refused, canceled).",
		}, []string{"operation", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kith_graphql_request_duration_seconds",
			Help:    "Time from the request's headers to the end of its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"operation"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kith_graphql_requests_in_flight",
			Help: "GraphQL requests being answered.",
		}),
	}
	registerer.MustRegister(m.requests, m.duration, m.inFlight)
	return m
}

// counted counts what a handler answers. Nil metrics count nothing.
func (m *Metrics) counted(next http.Handler) http.Handler {
	if m == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		m.inFlight.Inc()
		defer func() {
			m.inFlight.Dec()
			x := exchangeOf(r.Context())
			if x.outcome == "" {
				return // a preflight
			}
			operation := x.operation
			if operation == "" {
				operation = "unknown"
			}
			m.requests.WithLabelValues(operation, string(x.outcome)).Inc()
			m.duration.WithLabelValues(operation).Observe(time.Since(start).Seconds())
		}()
		next.ServeHTTP(w, r)
	})
}
