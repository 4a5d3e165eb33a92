package program_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/storage"
)

// The metrics of a gateway show a full scan that ran in another process.
func TestAGatewayServesWhatAFullScanHasLeft(t *testing.T) {
	t.Parallel()
	store := kithtest.DemoStore(t, 2)
	g := kithtest.Start(t, kithtest.Args("--store", store))
	began := time.Now().Add(-time.Second)
	kithtest.Ends(t, 0, kithtest.Args("reconcile", "full", "--window=1ms", "--store", store))
	metrics := g.Metrics(t)
	m := regexp.MustCompile(`\nkith_reconcile_last_full_scan_timestamp_seconds (\S+)\n`).FindStringSubmatch(metrics)
	must.That(t, m != nil, "%v", metrics)
	if at, err := strconv.ParseFloat(m[1], 64); err != nil || time.UnixMicro(int64(at*1e6)).Before(began) {
		t.Errorf("the last full scan is said to be of %s, %v", m[1], err)
	}
	check.Has(t, "/metrics", metrics,
		"\nkith_reconcile_last_run_found{kind=\"missing\",mode=\"full\"} 0\n", "\nkith_reconcile_last_run_repaired{kind=\"wrong_count\",mode=\"full\"} 0\n")
}

// The metrics of a gateway show that a log did not go on from the checkpoint of a run elsewhere, and what realtime found last
// before it was stopped.
func TestAGatewayServesWhatTheOtherModesHaveLeft(t *testing.T) {
	t.Parallel()
	file := newSQLite(t, 1)
	importFew(t, location(file...))
	store := kithtest.Args("--store", location(file...))
	incremental := func() kithtest.End { return kithtest.Run(t, store, kithtest.Args("reconcile", "incremental")) }
	must.Equal(t, "the code", incremental().Code, 0)
	file[0].exec(t, `UPDATE kith_checkpoints SET value = '999999' WHERE name LIKE '%relation_log%'`)
	began := float64(time.Now().Unix())
	incremental().Fails(t, "without its place", 1, "run kith reconcile full")

	realtime := kithtest.Launch(t, store, kithtest.Args("reconcile", "realtime", "--dry-run", "--window=1ms"))
	s := opened(t, file)
	from, to := storage.UserID(1), storage.UserID(3)
	realtime.Until(t, "an edge is found whose other side is never written", func() bool {
		change := storage.EdgeChange{To: to, Type: storage.Following, At: storage.MicrosOf(time.Now())}
		must.Value(t, s.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{change}, storage.ChangeOptions{})[0])
		if to++; to > 16 {
			from, to = from%16+1, 1
		}
		if to == from {
			to++
		}
		return strings.Contains(realtime.Stderr(), "an edge disagrees")
	})
	end := realtime.Interrupt(t)
	found := strings.Count(end.Stderr, "an edge disagrees")
	check.That(t, end.Code == 0, "%+v", end)
	g := kithtest.Start(t, store)
	value := func(series string) (n float64) {
		metrics := g.Metrics(t)
		m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(metrics)
		must.That(t, m != nil, "no %s in\n%s", series, metrics)
		n, err := strconv.ParseFloat(m[1], 64)
		must.OK(t, err)
		return n
	}
	check.Least(t, "the time since when changes are said to be lost", value(`kith_reconcile_lost_timestamp_seconds{mode="incremental"}`), began)
	check.Equal(t, "missing edges in the last status, and in the log", value(`kith_reconcile_last_run_found{kind="missing",mode="realtime"}`), float64(found))
}
