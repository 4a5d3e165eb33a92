// Package metrics makes Prometheus metrics and registers them, each in one call.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// A Maker registers what it makes. It panics if a name is taken.
type Maker struct{ promauto.Factory }

// In makes metrics of a registry; nil: of none.
func In(registerer prometheus.Registerer) Maker { return Maker{promauto.With(registerer)} }

// Counter makes a counter.
func (m Maker) Counter(name, help string) prometheus.Counter {
	return m.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// Counters makes a counter for each value of the labels.
func (m Maker) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return m.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// CounterOf makes a counter that is read when it is shown.
func (m Maker) CounterOf(name, help string, of func() float64) {
	m.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, of)
}

// Gauge makes a gauge.
func (m Maker) Gauge(name, help string) prometheus.Gauge {
	return m.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// Gauges makes a gauge for each value of the labels.
func (m Maker) Gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return m.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// GaugeOf makes a gauge that is read when it is shown.
func (m Maker) GaugeOf(name, help string, of func() float64) {
	m.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, of)
}

// Histogram makes a histogram of some upper bounds.
func (m Maker) Histogram(name, help string, bounds ...float64) prometheus.Histogram {
	return m.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds})
}

// Histograms makes a histogram for each value of the labels.
func (m Maker) Histograms(name, help string, bounds []float64, labels ...string) *prometheus.HistogramVec {
	return m.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds}, labels)
}
