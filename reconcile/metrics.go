package reconcile

import (
	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/metrics"
)

// A Mode is one of the ways to look for disagreements.
type Mode string

// The modes.
const (
	ModeFull        Mode = "full"
	ModeIncremental Mode = "incremental"
	ModeRealtime    Mode = "realtime"
)

// Modes returns all modes, from the most thorough to the fastest.
func Modes() []Mode { return []Mode{ModeFull, ModeIncremental, ModeRealtime} }

// Metrics counts what the modes that read logs find and repair in this process. [Runs] reports what other processes and full scans have found.
type Metrics struct {
	found    *prometheus.CounterVec
	repaired *prometheus.CounterVec
	unpaired *prometheus.GaugeVec
	lost     *prometheus.CounterVec
	lostAt   *prometheus.GaugeVec // Unix seconds; [Runs] serves it, as a run that ends at once is never scraped
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := metrics.In(registerer)
	m := &Metrics{
		found: made.Counters("kith_reconcile_found_total",
			"Differences found between the two sides of edges, or between counts and rows, by mode and kind.", "mode", "kind"),
		repaired: made.Counters("kith_reconcile_repaired_total", "Differences that were repaired, by mode and kind.", "mode", "kind"),
		unpaired: made.Gauges("kith_reconcile_oldest_unpaired_seconds",
			"How long ago the oldest edge was written whose inverse row has not been seen yet, by mode. 0 when there is none.", "mode"),
		lost:   made.Counters("kith_reconcile_lost_total", "Times that a log no longer had the checkpoint, by mode: run kith reconcile full.", "mode"),
		lostAt: metrics.In(nil).Gauges("lost_at", "", "mode"),
	}
	for _, mode := range []Mode{ModeIncremental, ModeRealtime} {
		m.lost.WithLabelValues(string(mode))
		m.unpaired.WithLabelValues(string(mode))
		for _, kind := range Kinds() {
			m.found.WithLabelValues(string(mode), string(kind))
			m.repaired.WithLabelValues(string(mode), string(kind))
		}
	}
	return m
}

// Lost counts a log that could not be continued.
func (m *Metrics) Lost(mode Mode) {
	m.lost.WithLabelValues(string(mode)).Inc()
	m.lostAt.WithLabelValues(string(mode)).SetToCurrentTime()
}
