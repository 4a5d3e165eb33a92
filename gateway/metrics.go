package gateway

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"

	"kith/graph/apierr"
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
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kith_graphql_errors_total",
			Help: "Answers with errors, by their code; an answer with several codes counts for each.",
		}, []string{"code"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kith_graphql_requests_in_flight",
			Help: "GraphQL requests being answered.",
		}),
		overload: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kith_graphql_requests_overload_total",
			Help: "GraphQL requests answered 503, by what there was too much of (requests, costly, writing).",
		}, []string{"reason"}),
		turned: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kith_http_connections_refused_total",
			Help: "Connections closed as soon as they came, and requests over HTTP/2 answered 503, because too many were open.",
		}),
		resting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kith_http_connections_idle",
			Help: "Connections that are open and wait for the next request.",
		}),
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kith_subscription_connections",
			Help: "Connections that stay open, by transport (websocket, sse).",
		}, []string{"transport"}),
		tooMany: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kith_subscription_connections_refused_total",
			Help: "Such connections that were one too many, by transport and whose bound it was (all, address, user).",
		}, []string{"transport", "bound"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kith_subscription_connections_ended_total",
			Help: "Connections that stayed open and have ended, by transport and reason (client, complete, expired, idle, slow, unresponsive, stopped, refused, violation, error).",
		}, []string{"transport", "reason"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kith_subscription_operations",
			Help: "Operations that run on such connections.",
		}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kith_subscription_answers_total",
			Help: "Answers made for such operations, by outcome (ok, partial, error, timeout, canceled).",
		}, []string{"outcome"}),
		answering: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kith_subscription_answer_duration_seconds",
			Help:    "Time from an event, or a request, to the answer made of it.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
	}
	m.unread = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kith_subscription_read_failures_total",
		Help: "Attempts of subscriptions to read what an event is about that failed; most are repeated.",
	})
	m.hurry = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kith_graphql_caller_timeouts_total",
		Help: "Answers that lack something because the time was over that the caller had given, which was less than --request-timeout.",
	})
	m.foreign = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kith_graphql_untrusted_documents_total",
		Help: "Operations whose document is not trusted, by what --only-trusted made of them (answered, refused).",
	}, []string{"outcome"})
	m.byName = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kith_graphql_operations_total",
		Help: "Requests with operations of trusted documents, by the operation's name (other: of more than 500) and outcome, as kith_graphql_requests_total.",
	}, []string{"name", "outcome"})
	m.timeByName = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "kith_graphql_operation_duration_seconds",
		Help:    "Time of such requests, by the operation's name.",
		Buckets: []float64{.001, .005, .025, .1, .5, 2.5, 10},
	}, []string{"name"})
	for _, fault := range []apierr.Code{apierr.CodeInternal, apierr.CodeUnavailable, apierr.CodeTimeout} {
		m.failures.WithLabelValues(string(fault))
	}
	for _, reason := range []string{"requests", "costly", "writing"} {
		m.overload.WithLabelValues(reason)
	}
	registerer.MustRegister(m.failures, m.hurry, m.foreign, m.byName, m.timeByName, m.requests, m.duration, m.inFlight, m.overload, m.turned, m.resting, m.connections, m.tooMany, m.ended, m.running, m.answers, m.answering, m.unread)
	return m
}

// counted counts the answers of a handler. Nil metrics count nothing. Connections
// that stay open are not requests: their operations are counted one by one.
func (m *Metrics) counted(next http.Handler) http.Handler {
	if m == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		start := time.Now()
		m.inFlight.Inc()
		x.inFlight.Store(true)
		defer func() {
			m.notInFlight(x)
			if x.stream != nil || x.outcome == "" {
				return // counted already; or a preflight
			}
			took := time.Since(start)
			m.executed(executed{x.operation, x.name, x.isTrusted, x.outcome, took}, x.patience > 0)
			m.duration.WithLabelValues(named(x.operation)).Observe(took.Seconds())
		}()
		next.ServeHTTP(w, r)
	})
}

// outcomeOf is the outcome of an answer, whose errors it counts. A caller that is hurried does not wait as long as the
// gateway works, so that it is not the gateway's fault if the time is over.
func (m *Metrics) outcomeOf(ctx context.Context, response *graphql.Response, hurried bool) outcome {
	how := outcomeOf(ctx, response)
	if m == nil || how == outcomeCanceled {
		return how
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

// executed counts an operation. hurried means that its caller did not wait as long as the gateway
// works.
func (m *Metrics) executed(one executed, hurried bool) {
	m.counts(one.operation, one.outcome)
	if hurried {
		m.hurried(one.outcome)
	}
	if one.isTrusted && one.name != "" {
		name := m.label(one.name)
		m.byName.WithLabelValues(name, string(one.outcome)).Inc()
		m.timeByName.WithLabelValues(name).Observe(one.took.Seconds())
	}
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

// notInFlight takes a request off those in flight, once.
func (m *Metrics) notInFlight(x *exchange) {
	if x.inFlight.CompareAndSwap(true, false) {
		m.inFlight.Dec()
	}
}

// hurried counts an answer for which the caller did not wait as long as the gateway works.
func (m *Metrics) hurried(how outcome) {
	if m != nil && how == outcomeTimeout {
		m.hurry.Inc()
	}
}

func (m *Metrics) untrusted(outcome string) {
	if m != nil {
		m.foreign.WithLabelValues(outcome).Inc()
	}
}

func (m *Metrics) overloaded(reason string) {
	if m != nil {
		m.overload.WithLabelValues(reason).Inc()
	}
}

func (m *Metrics) counts(operation string, how outcome) {
	m.requests.WithLabelValues(named(operation), string(how)).Inc()
}

func named(operation string) string {
	if operation == "" {
		return "unknown"
	}
	return operation
}

// rests counts connections that wait for the next request.
func (m *Metrics) rests(change float64) {
	if m != nil {
		m.resting.Add(change)
	}
}

func (m *Metrics) turnedAway() {
	if m != nil {
		m.turned.Inc()
	}
}

// connected counts a connection that turns out to stay open.
func (m *Metrics) connected(x *exchange) {
	if m == nil {
		return
	}
	m.notInFlight(x)
	m.connections.WithLabelValues(x.stream.transport).Inc()
}

func (m *Metrics) disconnected(x *exchange) {
	if m == nil {
		return
	}
	m.connections.WithLabelValues(x.stream.transport).Dec()
	m.ended.WithLabelValues(x.stream.transport, x.stream.ended).Inc()
}

func (m *Metrics) connectionRefused(transport string, full *tooMany) {
	if m != nil {
		m.tooMany.WithLabelValues(transport, full.bound).Inc()
	}
}

func (m *Metrics) operationBegan() {
	if m != nil {
		m.running.Inc()
	}
}

func (m *Metrics) operationEnded(operation string, how outcome) {
	if m != nil {
		m.running.Dec()
		m.counts(operation, how)
	}
}

func (m *Metrics) operationRefused() {
	if m != nil {
		m.counts("", outcomeRefused)
	}
}

func (m *Metrics) answered(how outcome, took time.Duration) {
	if m != nil {
		m.answers.WithLabelValues(string(how)).Inc()
		m.answering.Observe(took.Seconds())
	}
}

func (m *Metrics) readFailed() {
	if m != nil {
		m.unread.Inc()
	}
}
