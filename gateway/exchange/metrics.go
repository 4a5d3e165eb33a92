package exchange

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway/traces"
	"kith/graph/apierr"
	"kith/storage/metrics"
)

// Metrics counts GraphQL requests by the type of their operation and how they
// ended. The names of operations in trusted documents are labels, too. Other names never become
// labels: their number is unbounded.
type Metrics struct {
	requests  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	inFlight  prometheus.Gauge
	Overload  *prometheus.CounterVec
	Turned    prometheus.Counter
	Untrusted *prometheus.CounterVec
	hurry     prometheus.Counter

	byName     *prometheus.CounterVec
	timeByName *prometheus.HistogramVec
	names      Firsts // that are labels

	Resting     prometheus.Gauge
	connections *prometheus.GaugeVec
	TooMany     *prometheus.CounterVec
	ended       *prometheus.CounterVec
	Running     prometheus.Gauge
	Answers     *prometheus.CounterVec
	Answering   prometheus.Histogram
	Unread      prometheus.Counter
}

// mostNames is how many names of operations are labels.
const mostNames = 500

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
		Overload: made.Counters("kith_graphql_requests_overload_total",
			"GraphQL requests rejected with 503, by the limit that was reached (requests, costly, reading, writing).", "reason"),
		Turned: made.Counter("kith_http_connections_refused_total",
			"Connections closed as soon as they came, and requests over HTTP/2 answered 503, because too many were open."),
		Untrusted: made.Counters("kith_graphql_untrusted_documents_total",
			"Operations whose document is not trusted, by what --only-trusted made of them (answered, refused).", "outcome"),
		hurry: made.Counter("kith_graphql_caller_timeouts_total",
			"Answers that lack something because the time was over that the caller had given, which was less than --request-timeout."),
		byName: made.Counters("kith_graphql_operations_total",
			"Requests with operations of trusted documents, by the operation's name (other: of more than 500) and outcome, as kith_graphql_requests_total.",
			"name", "outcome"),
		timeByName: made.Histograms("kith_graphql_operation_duration_seconds",
			"Duration of requests with operations of trusted documents, by the operation's name.", []float64{.001, .005, .025, .1, .5, 2.5, 10}, "name"),
		Resting:     made.Gauge("kith_http_connections_idle", "Connections that are open and wait for the next request."),
		connections: made.Gauges("kith_subscription_connections", "Connections that stay open, by transport (websocket, sse).", "transport"),
		TooMany: made.Counters("kith_subscription_connections_refused_total",
			"Such connections that were one too many, by transport and whose bound it was (all, address, user).", "transport", "bound"),
		ended: made.Counters("kith_subscription_connections_ended_total",
			"Connections that stayed open and have ended, by transport and reason (client, complete, expired, revoked, idle, slow, unresponsive, stopped, refused, violation, error).",
			"transport", "reason"),
		Running: made.Gauge("kith_subscription_operations", "Subscriptions that run on open connections."),
		Answers: made.Counters("kith_subscription_answers_total",
			"Answers made for such operations, by outcome (ok, partial, error, timeout, canceled).", "outcome"),
		Answering: made.Histogram("kith_subscription_answer_duration_seconds", "Time from an event, or a request, to the answer made of it.", fine...),
		Unread: made.Counter("kith_subscription_read_failures_total",
			"Attempts of subscriptions to read what an event is about that failed; most are repeated."),
	}
	for _, fault := range []apierr.Code{apierr.CodeInternal, apierr.CodeUnavailable, apierr.CodeTimeout} {
		m.failures.WithLabelValues(string(fault))
	}
	for _, reason := range []string{"requests", "costly", "reading", "writing"} {
		m.Overload.WithLabelValues(reason)
	}
	return m
}

// Counted counts the answers of a handler. Connections that stay open are not requests: their
// operations are counted one by one.
//
// Each request has a span, which lasts from before the caller is identified until the answer is written. Operations of WebSockets have
// spans of their own; subscriptions have none: they last for hours.
func (m *Metrics) Counted(t *traces.Traces, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := Of(r.Context())
		start := time.Now()
		m.inFlight.Inc()
		if t != nil && r.Method != http.MethodOptions && !Upgrades(r) {
			x.Span = t.Request(r.Header)
		}
		if x.Span != nil {
			w.Header().Set(HeaderTrace, x.Span.Response())
		}
		defer func() {
			switch { // whoever identifies the caller has refused it
			case x.Outcome == "" && x.Status >= http.StatusInternalServerError:
				x.Outcome = Error
			case x.Outcome == "" && x.Status >= http.StatusBadRequest:
				x.Outcome = Refused
			}
			if x.Span != nil {
				x.Span.HTTP(x.ID, r, x.Status)
				x.Span.End(string(x.Outcome), x.Outcome.IsFailure())
			}
			if x.Stream != nil {
				return // counted already
			}
			m.inFlight.Dec()
			if x.Outcome == "" {
				return // a preflight
			}
			took := time.Since(start).Seconds()
			m.Ran(x.Operation, x.Outcome)
			m.duration.WithLabelValues(cmp.Or(x.Operation, "unknown")).Observe(took)
			if x.IsTrusted && x.Name != "" {
				name := x.Name
				if is, _ := m.names.Among(name, mostNames); !is {
					name = "other"
				}
				m.byName.WithLabelValues(name, string(x.Outcome)).Inc()
				m.timeByName.WithLabelValues(name).Observe(took)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// OutcomeOf is the outcome of an answer, whose errors it counts. A caller that is hurried does not wait as long as the
// gateway works, so that it is not the gateway's fault if the time is over.
func (m *Metrics) OutcomeOf(ctx context.Context, response *graphql.Response, hurried bool) Outcome {
	how := outcomeOf(ctx, response)
	if how == Canceled {
		return how
	}
	if hurried && how == Timeout {
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

func outcomeOf(ctx context.Context, response *graphql.Response) Outcome {
	if len(response.Errors) == 0 {
		return OK
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return Canceled
	}
	for _, err := range response.Errors {
		if err.Extensions["code"] == string(apierr.CodeTimeout) {
			return Timeout
		}
	}
	if response.Data == nil || string(response.Data) == "null" {
		return Error
	}
	return Partial
}

// Ran counts an operation, whose type is "" if it is not known.
func (m *Metrics) Ran(operation string, how Outcome) {
	m.requests.WithLabelValues(cmp.Or(operation, "unknown"), string(how)).Inc()
}

// Connected counts a connection that turns out to stay open.
func (m *Metrics) Connected(x *Exchange, transport string) {
	x.Stream = &Stream{Transport: transport}
	m.inFlight.Dec()
	m.connections.WithLabelValues(transport).Inc()
}

// Disconnected counts its end, with the reason.
func (m *Metrics) Disconnected(x *Exchange, reason string) {
	x.Stream.Ended = reason
	m.connections.WithLabelValues(x.Stream.Transport).Dec()
	m.ended.WithLabelValues(x.Stream.Transport, reason).Inc()
}
