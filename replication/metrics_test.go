package replication_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/metered"
	"kith/internal/must"
	"kith/replication"
	"kith/storage"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	g := newGate()
	a, _ := start(t, g, func(c *replication.Config) { c.Metrics = replication.NewMetrics(registry) })
	f := a.Feed("test")
	defer f.Close()
	must.OK(t, applyAll(t.Context(), f, rowsOf(follow(1, of(2, 1)[0], 1))))
	families, err := registry.Gather()
	must.OK(t, err)
	got := map[string]string{}
	for _, family := range families {
		got[family.GetName()] = family.GetMetric()[0].String()
	}
	for name, want := range map[string]string{
		"kith_replication_events_total": `label:{name:"shard" value:"2"} label:{name:"source" value:"test"} counter:{value:1`,
		"kith_replication_lag_seconds":  `label:{name:"source" value:"test"} gauge:{value:0}`,
		"kith_replication_pending_rows": `label:{name:"source" value:"test"} gauge:{value:0}`,
		"kith_replication_batch_rows":   `sample_count:1`,
	} {
		check.Has(t, name, strings.Join(strings.Fields(got[name]), " "), want)
	}
	f.Silent(time.Now().Add(-time.Minute))
	check.Least(t, "the lag of a silent source", a.Status().Lag, time.Minute)
}

// Lag is counted from the commit, if the source knows it, or else from the time of the first row; a
// time in the future counts as now.
func TestLagIsCountedFromTheCommit(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) storage.Micros { return storage.MicrosOf(now.Add(-d)) }
	for name, c := range map[string]struct {
		committed, row storage.Micros
		want           time.Duration
	}{
		"committed":           {committed: ago(time.Hour), row: ago(time.Minute), want: time.Hour},
		"only the row's time": {row: ago(time.Minute), want: time.Minute},
		"in the future":       {row: ago(-time.Hour)},
	} {
		g := newGate()
		g.set(2, true)
		a, _ := start(t, g, nil)
		f := a.Feed("test")
		must.OK(t, f.Submit(t.Context(), replication.Batch{Rows: rowsOf(follow(1, of(2, 1)[0], c.row)), Committed: c.committed}))
		lag := a.Status().Lag
		check.That(t, lag >= c.want && lag <= c.want+30*time.Second, "%s: a lag of %s, want %s", name, lag, c.want)
		f.Close()
	}
}

// Rows of several sources that are applied in one transaction are counted by source.
func TestRowsAreCountedBySource(t *testing.T) {
	registry := prometheus.NewRegistry()
	g := newGate()
	hold := make(chan struct{})
	g.hold = hold
	a, _ := start(t, g, func(c *replication.Config) { c.Metrics = replication.NewMetrics(registry) })
	to := of(2, 6)
	rows := map[string]int{"busy": 1, "a": 2, "b": 3}
	for _, source := range []string{"busy", "a", "b"} { // the first keeps the lane busy
		f := a.Feed(source)
		defer f.Close()
		for range rows[source] {
			must.OK(t, f.Submit(t.Context(), replication.Batch{Rows: rowsOf(follow(1, to[0], 1))}))
			to = to[1:]
		}
	}
	close(hold)
	must.Soon(t, "all rows are applied", func() bool { return a.Status().Pending == 0 })
	for of, n := range metered.All(t, registry) {
		if name := strings.Fields(of); name[0] == "kith_replication_events_total" {
			source := name[2]
			check.Equal(t, fmt.Sprint("rows of ", source), int(n), rows[source])
			delete(rows, source)
		}
	}
	check.That(t, len(rows) == 0, "nothing is counted of %v", rows)
}
