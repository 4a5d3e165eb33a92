package reconcile_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/reconcile"
	"kith/storage"
)

// gathered returns the values of all metrics of a registry, by name and by the values of labels in the
// order of the labels' names.
func gathered(t testing.TB, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	must.OK(t, err)
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := []string{family.GetName()}
			for _, label := range m.GetLabel() {
				name = append(name, label.GetValue())
			}
			values[strings.Join(name, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// A scan in many runs saves the totals of what all its runs have found and repaired, and any process can
// report them.
func TestAScansStatusCountsAllItsRuns(t *testing.T) {
	g := newGraph(t, 16, 3, 120, 2000)
	g.damage(8)
	cfg := quick(g)
	cfg.Repair, cfg.SliceRows, cfg.SaveEvery = true, 200, time.Nanosecond
	cfg.Logger = slog.New(slog.DiscardHandler)
	began := time.Now()
	var r reconcile.Report
	runs := 0
	for ended := false; !ended; runs++ {
		if runs > 1000 {
			t.Fatal("it does not come to its end")
		}
		ctx, cancel := context.WithCancel(t.Context())
		steps := 2 + g.r.IntN(6)
		cfg.OnProgress = func(reconcile.Progress) {
			if steps--; steps == 0 {
				cancel()
			}
		}
		var err error
		r, err = reconcile.Full(ctx, cfg)
		if ended = err == nil; !ended && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	if runs < 5 || r.Total() == 0 {
		t.Fatalf("%d runs, %d found", runs, r.Total())
	}
	statuses, err := reconcile.Statuses(t.Context(), g)
	if err != nil || len(statuses) != 1 {
		t.Fatal(statuses, err)
	}
	for _, kind := range reconcile.Kinds() {
		if found := statuses[0].Found[kind]; found != r.Found[kind] {
			t.Errorf("the status has found %d of %s, the report %d", found, kind, r.Found[kind])
		}
		if repaired := statuses[0].Repaired[kind]; repaired != r.Repaired[kind] {
			t.Errorf("the status has repaired %d of %s, the report %d", repaired, kind, r.Repaired[kind])
		}
	}

	registry := prometheus.NewRegistry()
	reconcile.NewRuns(registry, g)
	served := gathered(t, registry)
	for _, kind := range reconcile.Kinds() {
		if n := served["kith_reconcile_last_run_found "+string(kind)+" full"]; n != float64(r.Found[kind]) {
			t.Errorf("%g of %s are served, %d were found", n, kind, r.Found[kind])
		}
		if n := served["kith_reconcile_last_run_repaired "+string(kind)+" full"]; n != float64(r.Repaired[kind]) {
			t.Errorf("%g of %s are served, %d were repaired", n, kind, r.Repaired[kind])
		}
	}
	at := served["kith_reconcile_last_full_scan_timestamp_seconds"]
	if first := float64(began.UnixMicro()) / 1e6; at < first-1 || at > first+1 {
		t.Errorf("the scan began at %f, served is %f", first, at)
	}
	if ended := served["kith_reconcile_last_run_timestamp_seconds full"]; ended < at {
		t.Errorf("it began at %f and ended at %f", at, ended)
	}
}

func TestNoRunIsNoFigureButOfTheFullScan(t *testing.T) {
	registry := prometheus.NewRegistry()
	reconcile.NewRuns(registry, oracle.New())
	if served := gathered(t, registry); len(served) != 1 || served["kith_reconcile_last_full_scan_timestamp_seconds"] != 0 {
		t.Error(served)
	}
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
	if served := gathered(t, registry); len(served) != 0 {
		t.Error(served)
	}
	store.err = nil
	if served := gathered(t, registry); len(served) != 1 {
		t.Error(served)
	}
}
