package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/gateway/exchange"
	"kith/graph/apierr"
	"kith/internal/check"
	"kith/internal/must"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := serve(t, gateway.Config{
		Metrics:        exchange.NewMetrics(registry),
		Gatherer:       registry,
		RequestTimeout: 2 * time.Second,
		CORSOrigins:    []string{"https://app.example.org"},
	})
	s.query("query NameOfMine { hello }")
	s.query("{ hello }")
	s.query("mutation { touch }")
	s.query("{ hello fail }")
	s.query("{ wait }")
	s.query("{ nonsense }")
	s.post("not JSON")
	s.do(s.request("OPTIONS", "/graphql", "", "Origin", "https://app.example.org", "Access-Control-Request-Method", "POST"))

	text := s.operators("/metrics").text
	for _, want := range []string{
		`kith_graphql_requests_total{operation="query",outcome="ok"} 2`,
		`kith_graphql_requests_total{operation="mutation",outcome="ok"} 1`,
		`kith_graphql_requests_total{operation="query",outcome="partial"} 1`,
		`kith_graphql_requests_total{operation="query",outcome="timeout"} 1`,
		`kith_graphql_requests_total{operation="unknown",outcome="refused"} 2`,
		`kith_graphql_request_duration_seconds_count{operation="query"} 4`,
		`kith_graphql_errors_total{code="TIMEOUT"} 1`,
		`kith_graphql_errors_total{code="UNAVAILABLE"} 0`, // before the first
		`kith_graphql_errors_total{code="INTERNAL_SERVER_ERROR"} 1`,
		`kith_graphql_requests_overload_total{reason="costly"} 0`,
		`kith_graphql_requests_in_flight 0`,
	} {
		check.Has(t, "/metrics", text, want+"\n")
	}
	check.Lacks(t, "/metrics, with the name of an operation", text, "NameOfMine")
	serve(t, gateway.Config{}).operators("/metrics").is(t, "without a gatherer", 404, "")
}

// TestWhoIsNotIdentifiedIsRefused before the gateway has read the request, and counted.
func TestWhoIsNotIdentifiedIsRefused(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := serve(t, gateway.Config{Metrics: exchange.NewMetrics(registry), Gatherer: registry, Identify: func(answer http.Header, r *http.Request) (context.Context, error) {
		answer.Set("WWW-Authenticate", "Bearer")
		return r.Context(), map[string]error{
			"401": apierr.TokenInvalid.Error("the token is not valid"), "403": apierr.ScopeMissing.Error("it lacks a scope"),
			"400": apierr.IDMalformed.Error("no id"), "503": apierr.Unreachable.Error("a shard does not answer"), "500": errors.New("secret"),
		}[r.Header.Get("Authorization")]
	}})
	for status, code := range map[int]apierr.Code{
		401: apierr.CodeUnauthenticated, 403: apierr.CodeForbidden, 400: apierr.CodeBadInput, 503: apierr.CodeUnavailable, 500: apierr.CodeInternal,
	} {
		media := []string{"application/json", "application/graphql-response+json"}[status%2]
		got := s.raw(s.request("POST", "/graphql", `{"query": "{hello}"}`, "Authorization", strconv.Itoa(status), "Accept", media))
		check.Equal(t, "status", got.status, status)
		check.Equal(t, "media type", got.header.Get("Content-Type"), media+"; charset=utf-8")
		check.Equal(t, "challenge", got.header.Get("WWW-Authenticate"), "Bearer")
		check.Equal(t, "comes back", got.header.Get("Retry-After") != "", status == 503)
		check.Has(t, "the body", got.text, `"code":"`+string(code)+`"`)
		check.Lacks(t, "the body", got.text, `"data"`, "secret")
	}
	check.Has(t, "/metrics", s.operators("/metrics").text, `kith_graphql_requests_total{operation="unknown",outcome="error"} 2`+"\n",
		`kith_graphql_requests_total{operation="unknown",outcome="refused"} 3`+"\n", "kith_graphql_requests_in_flight 0\n")
	check.Has(t, "the log", s.log.String(), "outcome=refused", "outcome=error")
}

// TestStreamMetrics: connections that stay open are not counted as requests in flight, and are not
// in the durations of requests.
func TestStreamMetrics(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{}))
	c := s.joined()
	c.subscribe("a", followersQuery)
	must.Soon(t, "subscribed", func() bool { return l.began.Load() == 1 })
	l.publish(1)
	_, _ = c.read()
	for name, want := range map[string]float64{
		"kith_subscription_connections": 1, "kith_subscription_operations": 1, "kith_subscription_answers_total": 1, "kith_graphql_requests_in_flight": 0,
	} {
		check.Equal(t, name, s.value(name), want)
	}
	l.end()
	c.expect(`{"id":"a","type":"complete"}`)
	check.Equal(t, "operations", s.value("kith_graphql_requests_total"), 1)
}
