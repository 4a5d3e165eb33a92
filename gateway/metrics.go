package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"

	"kith/graph/apierr"
	"kith/storage/metrics"
)

// Metrics counts GraphQL requests by the type of their operation and how they
// ended. The names of operations in trusted documents are labels, too. Other names never become
// labels: their number is unbounded.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	failures *prometheus.CounterVec
	inFlight prometheus.Gauge
	overload *prometheus.CounterVec
	turned   prometheus.Counter
	foreign  *prometheus.CounterVec
	hurry    prometheus.Counter

	byName     *prometheus.CounterVec
	timeByName *prometheus.HistogramVec
	names      sync.Map     // those that are labels
	howMany    atomic.Int64 // how many there are

	resting     prometheus.Gauge
	connections *prometheus.GaugeVec
	tooMany     *prometheus.CounterVec
	ended       *prometheus.CounterVec
	running     prometheus.Gauge
	answers     *prometheus.CounterVec
	answering   prometheus.Histogram
	unread      prometheus.Counter
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := metrics.In(registerer)
	fine := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	m := &Metrics{
		requests: made.Counters("kith_graphql_requests_total",
			"GraphQL requests by type of operation (query, mutation, subscription, unknown) and outcome (ok, partial, error, timeout, refused, canceled).",
			"operation", "outcome"),
		duration: made.Histograms("kith_graphql_request_duration_seconds", "Time from the request's headers to the end of its answer.", fine, "operation"),
		failures: made.Counters("kith_graphql_errors_total", "Answers with errors, by their code; an answer with several codes counts for each.", "code"),
		inFlight: made.Gauge("kith_graphql_requests_in_flight", "GraphQL requests being answered."),
		overload: made.Counters("kith_graphql_requests_overload_total",
			"GraphQL requests rejected with 503, by the limit that was reached (requests, costly, writing).", "reason"),
		turned: made.Counter("kith_http_connections_refused_total",
			"Connections closed as soon as they came, and requests over HTTP/2 answered 503, because too many were open."),
		foreign: made.Counters("kith_graphql_untrusted_documents_total",
			"Operations whose document is not trusted, by what --only-trusted made of them (answered, refused).", "outcome"),
		hurry: made.Counter("kith_graphql_caller_timeouts_total",
			"Answers that lack something because the time was over that the caller had given, which was less than --request-timeout."),
		byName: made.Counters("kith_graphql_operations_total",
			"Requests with operations of trusted documents, by the operation's name (other: of more than 500) and outcome, as kith_graphql_requests_total.",
			"name", "outcome"),
		timeByName: made.Histograms("kith_graphql_operation_duration_seconds",
			"Duration of requests with operations of trusted documents, by the operation's name.", []float64{.001, .005, .025, .1, .5, 2.5, 10}, "name"),
		resting:     made.Gauge("kith_http_connections_idle", "Connections that are open and wait for the next request."),
		connections: made.Gauges("kith_subscription_connections", "Connections that stay open, by transport (websocket, sse).", "transport"),
		tooMany: made.Counters("kith_subscription_connections_refused_total",
			"Such connections that were one too many, by transport and whose bound it was (all, address, user).", "transport", "bound"),
		ended: made.Counters("kith_subscription_connections_ended_total",
			"Connections that stayed open and have ended, by transport and reason (client, complete, expired, idle, slow, unresponsive, stopped, refused, violation, error).",
			"transport", "reason"),
		running: made.Gauge("kith_subscription_operations", "Subscriptions that run on open connections."),
		answers: made.Counters("kith_subscription_answers_total",
			"Answers made for such operations, by outcome (ok, partial, error, timeout, canceled).", "outcome"),
		answering: made.Histogram("kith_subscription_answer_duration_seconds", "Time from an event, or a request, to the answer made of it.", fine...),
		unread: made.Counter("kith_subscription_read_failures_total",
			"Attempts of subscriptions to read what an event is about that failed; most are repeated."),
	}
	for _, fault := range []apierr.Code{apierr.CodeInternal, apierr.CodeUnavailable, apierr.CodeTimeout} {
		m.failures.WithLabelValues(string(fault))
	}
	for _, reason := range []string{"requests", "costly", "writing"} {
		m.overload.WithLabelValues(reason)
	}
	return m
}

// counted counts the answers of a handler. Connections that stay open are not requests: their
// operations are counted one by one.
func (m *Metrics) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		start := time.Now()
		m.inFlight.Inc()
		defer func() {
			if x.stream != nil {
				return // counted already
			}
			m.inFlight.Dec()
			if x.outcome == "" {
				return // a preflight
			}
			took := time.Since(start).Seconds()
			m.ran(x.operation, x.outcome)
			m.duration.WithLabelValues(cmp.Or(x.operation, "unknown")).Observe(took)
			if x.isTrusted && x.name != "" {
				name := m.label(x.name)
				m.byName.WithLabelValues(name, string(x.outcome)).Inc()
				m.timeByName.WithLabelValues(name).Observe(took)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// outcomeOf is the outcome of an answer, whose errors it counts. A caller that is hurried does not wait as long as the
// gateway works, so that it is not the gateway's fault if the time is over.
func (m *Metrics) outcomeOf(ctx context.Context, response *graphql.Response, hurried bool) outcome {
	how := outcomeOf(ctx, response)
	if how == outcomeCanceled {
		return how
	}
	if hurried && how == outcomeTimeout {
		m.hurry.Inc()
	}
	var counted []string
	for _, err := range response.Errors {
		code, _ := err.Extensions["code"].(string)
		if slices.Contains(counted, code) || hurried && code == string(apierr.CodeTimeout) {
			continue
		}
		counted = append(counted, code)
		m.failures.WithLabelValues(code).Inc()
	}
	return how
}

func outcomeOf(ctx context.Context, response *graphql.Response) outcome {
	if len(response.Errors) == 0 {
		return outcomeOK
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return outcomeCanceled
	}
	for _, err := range response.Errors {
		if err.Extensions["code"] == string(apierr.CodeTimeout) {
			return outcomeTimeout
		}
	}
	if response.Data == nil || string(response.Data) == "null" {
		return outcomeError
	}
	return outcomePartial
}

// ran counts an operation, whose type is "" if it is not known.
func (m *Metrics) ran(operation string, how outcome) {
	m.requests.WithLabelValues(cmp.Or(operation, "unknown"), string(how)).Inc()
}

// mostNames is how many names of operations are labels.
const mostNames = 500

// label is an operation's name, or "other" if it comes after too many others.
func (m *Metrics) label(name string) string {
	if _, ok := m.names.Load(name); ok {
		return name
	}
	if m.howMany.Load() >= mostNames {
		return "other"
	}
	if _, ok := m.names.LoadOrStore(name, true); !ok {
		m.howMany.Add(1)
	}
	return name
}

// connected counts a connection that turns out to stay open.
func (m *Metrics) connected(s *streamed) {
	m.inFlight.Dec()
	m.connections.WithLabelValues(s.transport).Inc()
}

func (m *Metrics) disconnected(s *streamed) {
	m.connections.WithLabelValues(s.transport).Dec()
	m.ended.WithLabelValues(s.transport, s.ended).Inc()
}
