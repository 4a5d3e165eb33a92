package localcache

import (
	"github.com/prometheus/client_golang/prometheus"

	"kith/storage/metrics"
)

// Metrics shows what a cache is worth. Each cache has its own.
type Metrics struct {
	hits, misses [kinds]prometheus.Counter
	forgotten    prometheus.Counter
	renewed      prometheus.Counter
	built        prometheus.Histogram
	unpacked     prometheus.Counter
	warming      prometheus.Gauge
	warmed       prometheus.Counter
	cache        *Cache // nil until there is one
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := metrics.In(registerer)
	hits := made.Counters("kith_cache_hits_total", "Keys found in the gateway's memory, by kind.", "kind")
	misses := made.Counters("kith_cache_misses_total",
		"Keys not in the gateway's memory, which were read from Redis or the databases, by kind.", "kind")
	m := &Metrics{
		forgotten: made.Counter("kith_cache_forgotten_total", "Times that the gateway emptied its memory, because changes may have been missed."),
		renewed: made.Counter("kith_cache_renewed_total",
			"Lists in memory that were kept longer because the version of their owner's counts had not changed."),
		built:    made.Histogram("kith_cache_long_list_seconds", "How long it took to read a long list into memory.", prometheus.ExponentialBuckets(0.001, 4, 8)...),
		unpacked: made.Counter("kith_cache_pack_failures_total", "Long lists that could not be packed in the store."),
		warming:  made.Gauge("kith_cache_warming", "1 while the gateway reads the users who are followed most into its memory, after its start."),
		warmed:   made.Counter("kith_cache_warmed_total", "Users who were read into the gateway's memory, with their lists, before anybody asked for them."),
	}
	for k := range kinds {
		m.hits[k], m.misses[k] = hits.WithLabelValues(k.String()), misses.WithLabelValues(k.String())
	}
	gauge := func(name, help string, of func(*Cache) float64) {
		made.GaugeOf(name, help, func() float64 {
			if m.cache == nil {
				return 0
			}
			return of(m.cache)
		})
	}
	gauge("kith_cache_bytes", "Bytes of the cache in the gateway's memory.", func(c *Cache) float64 { return float64(c.kept.taken()) })
	gauge("kith_cache_entries", "How many users, posts and lists are kept in the gateway's memory.", func(c *Cache) float64 { return float64(c.kept.flat.len() + c.kept.large.EstimatedSize()) })
	gauge("kith_cache_directory_bytes", "Bytes of the directory that numbers users for lists in memory.", func(c *Cache) float64 { return float64(c.directory.Load().Bytes()) })
	registerer.MustRegister(enabled{m})
	return m
}

// enabled is kith_cache_enabled, which a process that is to keep nothing does not have.
type enabled struct{ *Metrics }

var enabledDesc = prometheus.NewDesc("kith_cache_enabled", "1 while anything of every shard is kept. Without a value if nothing is to be kept.", nil, nil)

// Describe implements [prometheus.Collector].
func (e enabled) Describe(to chan<- *prometheus.Desc) { to <- enabledDesc }

// Collect implements [prometheus.Collector].
func (e enabled) Collect(to chan<- prometheus.Metric) {
	if e.cache == nil {
		return
	}
	value := 0.0
	if e.cache.IsOn() && e.cache.heard.Load() == nil {
		value = 1
	}
	to <- prometheus.MustNewConstMetric(enabledDesc, prometheus.GaugeValue, value)
}
