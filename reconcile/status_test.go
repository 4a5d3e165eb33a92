package reconcile_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/reconcile"
	"kith/storage/sqlstore"
)

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
