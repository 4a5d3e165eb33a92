package sqlstore

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/must"
)

func TestMetricsCountStatements(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	m.Observe(t.Context(), Statement{Lookup: "users", Shard: 1, Keys: 20, Took: 2 * time.Second})
	m.Observe(t.Context(), Statement{Lookup: "users", Shard: 1, Keys: 10, Took: time.Second, Err: errors.New("gone")})
	families, err := registry.Gather()
	must.OK(t, err)
	want := map[string]struct {
		sum    float64
		labels int
	}{
		"kith_sql_statement_duration_seconds": {3, 2},
		"kith_sql_batch_keys":                 {30, 1},
		"kith_sql_statement_failures_total":   {1, 2},
	}
	for _, f := range families {
		one, metric := want[f.GetName()], f.GetMetric()[0]
		if sum := metric.GetHistogram().GetSampleSum() + metric.GetCounter().GetValue(); len(f.GetMetric()) != 1 || sum != one.sum {
			t.Errorf("%s: %v, want a sum of %v", f.GetName(), f.GetMetric(), one.sum)
		}
		labels := map[string]string{}
		for _, l := range metric.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if len(labels) != one.labels || labels["lookup"] != "users" || one.labels == 2 && labels["shard"] != "1" {
			t.Errorf("%s has labels %v", f.GetName(), labels)
		}
		delete(want, f.GetName())
	}
	check.That(t, len(want) == 0, "missing: %v", want)
}

// TestAnAddedShardHasMetricsOfItsPools: also in a process that runs when the shard is added.
func TestAnAddedShardHasMetricsOfItsPools(t *testing.T) {
	folder, registry := t.TempDir(), prometheus.NewRegistry()
	store, err := Open(t.Context(), Config{Location: "sqlite:" + filepath.Join(folder, "0.db")})
	must.OK(t, err)
	defer store.Close()
	NewMetrics(registry).RegisterPools(store)
	_, err = store.AddShard(t.Context(), filepath.Join(folder, "1.db"))
	must.OK(t, err)
	families, err := registry.Gather()
	must.OK(t, err)
	pools := map[string]bool{}
	for _, m := range families[0].GetMetric() {
		pools[m.GetLabel()[0].GetValue()] = true
	}
	must.Equal(t, "pools", len(pools), 4)
}
