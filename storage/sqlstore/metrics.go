package sqlstore

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"kith/storage/metrics"
	"kith/storage/sqlstore/internal/db"
)

// Metrics counts statements: how many, how long, how many keys each.
type Metrics struct {
	registerer prometheus.Registerer
	duration   *prometheus.HistogramVec
	failures   *prometheus.CounterVec
	keys       *prometheus.HistogramVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	made := metrics.In(registerer)
	return &Metrics{
		registerer: registerer,
		duration: made.Histograms("kith_sql_statement_duration_seconds",
			"Time of an SQL statement, from the wait for a connection to its last row, by look-up and shard.",
			[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .05, .1, .5, 1, 2.5}, "lookup", "shard"),
		failures: made.Counters("kith_sql_statement_failures_total", "SQL statements that failed, by look-up and shard.", "lookup", "shard"),
		keys: made.Histograms("kith_sql_batch_keys", "Keys that one SQL statement asked for, or rows that it wrote, by look-up.",
			[]float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}, "lookup"),
	}
}

// Observe is what [Config.OnStatement] takes.
func (m *Metrics) Observe(_ context.Context, st Statement) {
	shard := strconv.Itoa(st.Shard)
	m.duration.WithLabelValues(st.Lookup, shard).Observe(st.Took.Seconds())
	m.keys.WithLabelValues(st.Lookup).Observe(float64(st.Keys))
	if st.Err != nil {
		m.failures.WithLabelValues(st.Lookup, shard).Inc()
	}
}

// RegisterPools adds the state of the store's connection pools, as
// `go_sql_…{db_name="shard0"}`.
func (m *Metrics) RegisterPools(s *Store) { m.registerer.MustRegister(pools{s.db}) }

// pools are those of the shards that there are when they are asked.
type pools struct{ *db.DB }

// Describe implements [prometheus.Collector]. It describes nothing in advance: more shards may be added.
func (pools) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (p pools) Collect(to chan<- prometheus.Metric) {
	for _, n := range p.All() {
		name := "shard" + strconv.Itoa(n.Ordinal)
		collectors.NewDBStatsCollector(n.Read, name).Collect(to)
		collectors.NewDBStatsCollector(n.Write, name+"_write").Collect(to)
	}
}
