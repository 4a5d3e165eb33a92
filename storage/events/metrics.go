package events

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts events and subscribers.
type Metrics struct {
	subscribers prometheus.Gauge
	delivered   prometheus.Counter
	merged      prometheus.Counter
	slow        prometheus.Counter

	sent     prometheus.Counter
	failures prometheus.Counter
	overflow prometheus.Counter
	received prometheus.Counter
	gaps     *prometheus.CounterVec
	queued   prometheus.Gauge
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "kith_events_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "kith_events_" + name, Help: help})
	}
	m := &Metrics{
		subscribers: gauge("subscribers", "Subscriptions and caches of this gateway that get events."),
		delivered:   counter("delivered_total", "Events handed to subscribers, once for each."),
		merged:      counter("merged_total", "Events not handed over because one about the same waited for the subscriber."),
		slow:        counter("slow_subscribers_total", "Subscribers that were dropped because they did not take their events in time."),
		sent:        counter("sent_total", "Events sent to other gateways."),
		failures:    counter("send_failures_total", "Failed attempts to send events to other gateways; they are retried."),
		overflow:    counter("overflow_total", "Events dropped while other gateways could not be reached; those empty their caches instead."),
		received:    counter("received_total", "Events received from other gateways."),
		gaps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kith_events_gaps_total",
			Help: "Gaps reported to all subscribers of this gateway, by reason (connected, missing, unreadable).",
		}, []string{"reason"}),
		queued: gauge("queued", "Events waiting to be sent to other gateways."),
	}
	registerer.MustRegister(m.subscribers, m.delivered, m.merged, m.slow, m.sent, m.failures, m.overflow, m.received, m.gaps, m.queued)
	return m
}

// orNone replaces nil by metrics that are not shown.
func (m *Metrics) orNone() *Metrics {
	if m == nil {
		return NewMetrics(prometheus.NewRegistry())
	}
	return m
}
