package replication

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/metrics"
)

// Metrics counts what appliers do.
type Metrics struct {
	events   *prometheus.CounterVec
	delay    prometheus.Histogram
	rows     prometheus.Histogram
	failures *prometheus.CounterVec

	mu       sync.Mutex
	appliers []*Applier
}

// NewMetrics makes the metrics and registers them; nil: nowhere.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := metrics.In(registerer)
	m := &Metrics{
		events: made.Counters("kith_replication_events_total",
			"Forward rows applied to the inverse side, by source and by the shard that was written to.", "source", "shard"),
		delay: made.Histogram("kith_replication_delay_seconds", "Time from the commit of a forward row to that of its inverse row.",
			.0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 30, 300),
		rows:     made.Histogram("kith_replication_batch_rows", "Rows applied by one transaction.", 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
		failures: made.Counters("kith_replication_failures_total", "Batches that could not be applied and are tried again, by shard.", "shard"),
	}
	if registerer != nil {
		registerer.MustRegister(m)
	}
	return m
}

var (
	lagDesc = prometheus.NewDesc("kith_replication_lag_seconds",
		"How long ago the oldest row was committed that is not on the inverse side yet, or how long nobody has followed the log, by source. 0 when all is applied.",
		[]string{"source"}, nil)
	pendingDesc = prometheus.NewDesc("kith_replication_pending_rows",
		"Rows that wait or are being applied, by source.",
		[]string{"source"}, nil)
)

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- lagDesc
	ch <- pendingDesc
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.appliers {
		for _, s := range a.Status().Sources {
			ch <- prometheus.MustNewConstMetric(lagDesc, prometheus.GaugeValue, s.Lag.Seconds(), s.Source)
			ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(s.Pending), s.Source)
		}
	}
}

func (m *Metrics) watch(a *Applier) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.appliers = append(m.appliers, a)
}

// forget removes an applier that will not run again.
func (m *Metrics) forget(a *Applier) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.appliers = slices.DeleteFunc(m.appliers, func(b *Applier) bool { return a == b })
}

// applied counts a batch that one transaction has applied.
func (m *Metrics) applied(shard int, batch []row) {
	now := time.Now()
	label := strconv.Itoa(shard)
	m.rows.Observe(float64(len(batch)))
	for _, r := range batch {
		m.events.WithLabelValues(r.of.feed.source, label).Inc()
		if !r.of.known {
			m.delay.Observe(max(now.Sub(r.of.at), 0).Seconds())
		}
	}
}

func (m *Metrics) failed(shard int) {
	m.failures.WithLabelValues(strconv.Itoa(shard)).Inc()
}
