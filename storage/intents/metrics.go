package intents

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts intents.
type Metrics struct {
	noted    *prometheus.CounterVec
	swept    *prometheus.CounterVec
	failures prometheus.Counter
	open     prometheus.Gauge
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := newMetrics()
	registerer.MustRegister(m.noted, m.swept, m.failures, m.open)
	return m
}

func newMetrics() *Metrics {
	counters := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kith_intents_" + name, Help: help}, []string{label})
	}
	return &Metrics{
		noted: counters("noted_total", "Intents that were written down in Redis before a write, or could not be.", "outcome"),
		swept: counters("swept_total", "Intents that were left behind, and so reported to all caches.", "how"),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "kith_intents_sweep_failures_total", Help: "Times that Redis could not be asked for intents that were left behind."}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kith_intents_open", Help: "Writes of this process that have not been reported to all caches yet."}),
	}
}
