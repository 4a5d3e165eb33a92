package events

import (
	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/metrics"
)

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

// NewMetrics makes the metrics and registers them; nil: nowhere.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := metrics.In(registerer)
	return &Metrics{
		subscribers: made.Gauge("kith_events_subscribers", "Subscriptions and caches of this gateway that get events."),
		delivered:   made.Counter("kith_events_delivered_total", "Events handed to subscribers, once for each."),
		merged:      made.Counter("kith_events_merged_total", "Events not handed over because one about the same waited for the subscriber."),
		slow:        made.Counter("kith_events_slow_subscribers_total", "Subscribers that were dropped because they did not take their events in time."),
		sent:        made.Counter("kith_events_sent_total", "Events sent to other gateways."),
		failures:    made.Counter("kith_events_send_failures_total", "Failed attempts to send events to other gateways; they are retried."),
		overflow:    made.Counter("kith_events_overflow_total", "Events dropped because more came than Redis took; other gateways empty their caches instead."),
		received:    made.Counter("kith_events_received_total", "Events received from other gateways."),
		gaps:        made.Counters("kith_events_gaps_total", "Gaps reported to all subscribers of this gateway, by reason (connected, missing, unreadable).", "reason"),
		queued:      made.Gauge("kith_events_queued", "Events waiting to be sent to other gateways."),
	}
}
