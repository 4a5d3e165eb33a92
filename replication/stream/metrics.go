package stream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/metrics"
)

// Metrics counts what goes in and out of the stream.
type Metrics struct {
	added       prometheus.Counter
	addFailures prometheus.Counter
	applied     prometheus.Counter
	failures    prometheus.Counter
	batch       prometheus.Histogram
	delay       prometheus.Histogram
	claimed     prometheus.Counter
	poison      prometheus.Counter
	backlog     prometheus.Gauge
	pending     prometheus.Gauge
	age         prometheus.Gauge
}

// NewMetrics makes the metrics and registers them; nil: nowhere.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := metrics.In(registerer)
	return &Metrics{
		added:       made.Counter("kith_stream_added_edges_total", "Edges added to the stream."),
		addFailures: made.Counter("kith_stream_add_failed_edges_total", "Edges that could not be added, as far as this gateway knows; they are left to reconcile."),
		applied:     made.Counter("kith_stream_applied_edges_total", "Edges applied and acknowledged by this gateway."),
		failures:    made.Counter("kith_stream_apply_failures_total", "Batches that were not applied in full; what is missing is tried again."),
		batch: made.Histogram("kith_stream_batch_edges", "Edges of the stream that were applied in one transaction.",
			1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000),
		delay: made.Histogram("kith_stream_delay_seconds", "Time from the adding of an entry, by the clock of Redis, to its acknowledgement.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60),
		claimed: made.Counter("kith_stream_claimed_entries_total", "Entries taken over because their consumer had not acknowledged them in time."),
		poison:  made.Counter("kith_stream_dead_letters_total", "Entries that could not be decoded and were moved to the dead-letter stream."),
		backlog: made.Gauge("kith_stream_backlog_entries", "Entries that no consumer has been given yet; -1 when Redis does not know."),
		pending: made.Gauge("kith_stream_pending_entries", "Entries given to a consumer and not acknowledged yet."),
		age:     made.Gauge("kith_stream_oldest_entry_seconds", "Age of the oldest entry that is not acknowledged."),
	}
}

func (m *Metrics) observe(s State) {
	m.backlog.Set(float64(s.Backlog))
	m.pending.Set(float64(s.Pending))
	m.age.Set(s.Age.Seconds())
}

// State is how far the consumers of all gateways are behind.
type State struct {
	Backlog int64         // entries that no consumer has been given yet; -1 if Redis does not know
	Pending int64         // entries given to a consumer and not acknowledged yet
	Age     time.Duration // of the oldest of them, by the clock of Redis; 0 if there is none
	At      time.Time     // when this was measured; zero: never
}
