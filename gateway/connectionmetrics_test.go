package gateway_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/must"
)

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

// value is the sum over the labels of a metric.
func value(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	must.OK(t, err)
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}
