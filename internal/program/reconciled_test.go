package program_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"kith/internal/kithtest"
)

// The metrics of a gateway show a full scan that ran in another process.
func TestAGatewayServesWhatAFullScanHasLeft(t *testing.T) {
	t.Parallel()
	store := kithtest.DemoStore(t, 2)
	g := kithtest.Start(t, kithtest.Args("--store", store))
	began := time.Now().Add(-time.Second)
	if end := kithtest.Run(t, kithtest.Args("reconcile", "full", "--window=1ms", "--store", store)); end.Code != 0 {
		t.Fatal(end.Stderr)
	}
	_, metrics := g.Get(t, "/metrics")
	m := regexp.MustCompile(`\nkith_reconcile_last_full_scan_timestamp_seconds (\S+)\n`).FindStringSubmatch(metrics)
	if m == nil {
		t.Fatal(metrics)
	}
	if at, err := strconv.ParseFloat(m[1], 64); err != nil || time.UnixMicro(int64(at*1e6)).Before(began) {
		t.Errorf("the last full scan is said to be of %s, %v", m[1], err)
	}
	for _, want := range []string{
		`kith_reconcile_last_run_found{kind="missing",mode="full"} 0`,
		`kith_reconcile_last_run_repaired{kind="wrong_count",mode="full"} 0`,
	} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(want) + `$`).MatchString(metrics) {
			t.Errorf("/metrics has no %s", want)
		}
	}
}
