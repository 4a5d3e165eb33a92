package rediscache

import (
	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/metrics"
)

// Metrics counts what the cache does.
type Metrics struct {
	lookups *prometheus.CounterVec
	fills   *prometheus.CounterVec
	waits   *prometheus.CounterVec
	changes *prometheus.CounterVec
	errors  *prometheus.CounterVec
	epochs  prometheus.Counter
	late    prometheus.Gauge
	open    prometheus.Gauge
}

// NewMetrics makes the metrics and registers them; nil: nowhere.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := metrics.In(registerer)
	return &Metrics{
		lookups: made.Counters("kith_redis_cache_lookups_total", "Look-ups of users and lists in Redis, by how they ended.", "kind", "outcome"),
		fills:   made.Counters("kith_redis_cache_fills_total", "Values read from the store to be stored in Redis, by what became of them.", "kind", "outcome"),
		waits:   made.Counters("kith_redis_cache_waits_total", "Times that a look-up waited for another gateway's fill.", "kind"),
		changes: made.Counters("kith_redis_cache_changes_total", "Changed users that were reported to Redis, or could not be reported yet.", "outcome"),
		errors:  made.Counters("kith_redis_cache_errors_total", "Exchanges with Redis that failed, by what they were for.", "exchange"),
		epochs:  made.Counter("kith_redis_cache_epochs_total", "Times that this gateway found out the epoch of Redis."),
		late:    made.Gauge("kith_redis_cache_late_users", "Changed users that could not be reported to Redis yet."),
		open:    made.Gauge("kith_redis_cache_open", "1 while Redis is left alone because it does not answer."),
	}
}

func (m *Metrics) looked(kind, outcome string, n int) {
	if n > 0 {
		m.lookups.WithLabelValues(kind, outcome).Add(float64(n))
	}
}

func (m *Metrics) filled(kind, outcome string) { m.fills.WithLabelValues(kind, outcome).Inc() }
