package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/metered"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/reconcile"
	"kith/storage"
	"kith/storage/sqlstore"
)

// A scan in many runs saves the totals of what all its runs have found and repaired, and any process can
// report them.
func TestAScansStatusCountsAllItsRuns(t *testing.T) {
	g := newGraph(t, 16, 3, 80, 1200)
	g.damage(8)
	cfg := quick(g)
	cfg.Repair = true
	began := time.Now()
	r := g.scanInRuns(cfg, false)
	must.Least(t, "what was found", r.Total(), 1)
	statuses, err := reconcile.Statuses(t.Context(), g)
	must.OK(t, err)
	must.Equal(t, "statuses", len(statuses), 1)
	for _, kind := range reconcile.Kinds() {
		check.Equal(t, "what the status has found of "+string(kind), statuses[0].Found[kind], r.Found[kind])
		check.Equal(t, "what the status has repaired of "+string(kind), statuses[0].Repaired[kind], r.Repaired[kind])
	}

	registry := prometheus.NewRegistry()
	reconcile.NewRuns(registry, g)
	served := metered.All(t, registry)
	for _, kind := range reconcile.Kinds() {
		check.Equal(t, "what is served as found of "+string(kind), served["kith_reconcile_last_run_found "+string(kind)+" full"], float64(r.Found[kind]))
		check.Equal(t, "what is served as repaired of "+string(kind), served["kith_reconcile_last_run_repaired "+string(kind)+" full"], float64(r.Repaired[kind]))
	}
	at := served["kith_reconcile_last_full_scan_timestamp_seconds"]
	first := float64(began.UnixMicro()) / 1e6
	check.That(t, at >= first-1 && at <= first+1, "the scan began at %f, served is %f", first, at)
	check.Least(t, "when it ended", served["kith_reconcile_last_run_timestamp_seconds full"], at)
}

func TestNoRunIsNoFigureButOfTheFullScan(t *testing.T) {
	registry := prometheus.NewRegistry()
	reconcile.NewRuns(registry, oracle.New())
	check.Equal(t, "what is served", metered.All(t, registry), map[string]float64{"kith_reconcile_last_full_scan_timestamp_seconds": 0})
}

// away is a store that does not answer.
type away struct {
	storage.Checkpoints
	err error
}

func (a *away) LoadCheckpoint(context.Context, string) ([]byte, bool, error) {
	return nil, false, a.err
}

func TestAStoreThatIsAwayIsNoZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	store := &away{err: storage.ErrUnavailable}
	reconcile.NewRuns(registry, store)
	check.Equal(t, "what is served", metered.All(t, registry), nil)
	store.err = nil
	check.Equal(t, "how much is served", len(metered.All(t, registry)), 1)
}

func TestStatusesAreKeptInTheStore(t *testing.T) {
	store := opened.Store(t, sqlstore.Config{Location: "sqlite:" + t.TempDir() + "/kith.db"})
	list, err := reconcile.Statuses(t.Context(), store)
	must.That(t, err == nil && len(list) == 0, "nothing has run, but there is %v, %v", list, err)
	metrics := reconcile.NewMetrics(prometheus.NewRegistry())
	at := time.UnixMicro(1_790_000_000_000_000)
	for _, mode := range []reconcile.Mode{reconcile.ModeRealtime, reconcile.ModeFull} {
		must.OK(t, reconcile.SaveStatus(t.Context(), store, metrics.Status(mode, at)))
	}
	list, err = reconcile.Statuses(t.Context(), store)
	must.That(t, err == nil && len(list) == 2 && list[0].Mode == reconcile.ModeFull && list[1].Mode == reconcile.ModeRealtime, "got %v, %v", list, err)
	// When something was lost is still known after a run that lost nothing.
	metrics.Lost(reconcile.ModeRealtime)
	for _, m := range []*reconcile.Metrics{metrics, reconcile.NewMetrics(prometheus.NewRegistry())} {
		must.OK(t, reconcile.SaveStatus(t.Context(), store, m.Status(reconcile.ModeRealtime, at)))
		now, err := reconcile.Statuses(t.Context(), store)
		check.That(t, err == nil && now[1].LostAt >= float64(time.Now().Unix()-60), "got %+v, %v", now, err)
	}
	s := list[0]
	check.That(t, s.At.Time() == at.UTC() && len(s.Found) == len(reconcile.Kinds()) && s.Found[reconcile.Missing] == 0, "got %+v", s)
}
