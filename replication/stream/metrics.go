package stream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "kith_stream_" + name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "kith_stream_" + name, Help: help})
	}
	m := &Metrics{
		added:       counter("added_edges_total", "Edges added to the stream."),
		addFailures: counter("add_failed_edges_total", "Edges that could not be added, as far as this gateway knows; they are left to reconcile."),
		applied:     counter("applied_edges_total", "Edges applied and acknowledged by this gateway."),
		failures:    counter("apply_failures_total", "Batches that were not applied in full; what is missing is tried again."),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kith_stream_batch_edges",
			Help:    "Edges of the stream that were applied in one transaction.",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000},
		}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "kith_stream_delay_seconds",
			Help:    "Time from the adding of an entry, by the clock of Redis, to its acknowledgement.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}),
		claimed: counter("claimed_entries_total", "Entries taken over because their consumer had not acknowledged them in time."),
		poison:  counter("dead_letters_total", "Entries that could not be decoded and were moved to the dead-letter stream."),
		backlog: gauge("backlog_entries", "Entries that no consumer has been given yet; -1 when Redis does not know."),
		pending: gauge("pending_entries", "Entries given to a consumer and not acknowledged yet."),
		age:     gauge("oldest_entry_seconds", "Age of the oldest entry that is not acknowledged."),
	}
	registerer.MustRegister(m.added, m.addFailures, m.applied, m.failures, m.batch, m.delay, m.claimed, m.poison, m.backlog, m.pending, m.age)
	return m
}

// orNone replaces nil by metrics that nobody reads.
func (m *Metrics) orNone() *Metrics {
	if m == nil {
		return NewMetrics(prometheus.NewRegistry())
	}
	return m
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
