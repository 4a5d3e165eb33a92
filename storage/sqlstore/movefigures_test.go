package sqlstore_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestLongMoveAFewBuckets measures what the source of a move reads and sends, and how long its phases
// take, for 8 buckets and for half of them, of 20,000 users with 200,000 follows.
//
//	KITH_TEST_LONG=1 go test ./storage/sqlstore -run TestLongMoveAFewBuckets -v
func TestLongMoveAFewBuckets(t *testing.T) {
	testenv.Long(t)
	const users, degree = 20_000, 10
	for _, buckets := range []storage.BucketRange{{First: 100, Last: 107}, {First: 512, Last: 1023}} {
		t.Run("MariaDB", func(t *testing.T) {
			testenv.NotOn(t, "a store on TiDB is one shard", "tidb")
			dsns := testenv.SharedMariaDB(t, 2).FreshDatabases(t, 1)
			g := newGrower(t, "mysql:"+dsns[0], dsns[1], users)
			g.preload(degree)
			status := func() (keys, sent int64) {
				dsn := strings.TrimPrefix(g.location, "mysql:")
				return handlerReads(t, dsn)
			}
			g.measureMove(buckets, status)
		})
		t.Run("SQLite", func(t *testing.T) {
			g := newGrower(t, sqlite(t, 1), filepath.Join(t.TempDir(), "another.db"), users)
			g.preload(degree)
			g.measureMove(buckets, func() (int64, int64) { return 0, 0 })
		})
	}
}

// measureMove moves buckets, and logs how long each phase took and what it read.
func (g *grower) measureMove(buckets storage.BucketRange, status func() (keys, sent int64)) {
	g.t.Helper()
	to, err := g.mover.AddShard(g.t.Context(), g.add)
	must.OK(g.t, err)
	phase, began := "begin", time.Now()
	keys, sent := status()
	next := func(name string) {
		nowKeys, nowSent := status()
		g.t.Logf("%d buckets: %-10s %8s, %9d rows read, %9d bytes sent", buckets.Len(), phase, time.Since(began).Round(time.Millisecond), nowKeys-keys, nowSent-sent)
		phase, began, keys, sent = name, time.Now(), nowKeys, nowSent
	}
	names := []string{"copy users", "compare", "close", "keep", "remove"}
	report, err := g.mover.Move(g.t.Context(), sqlstore.Move{Buckets: buckets, From: 0, To: to}, sqlstore.MoveConfig{Token: "test", Keep: 2 * time.Second, Step: func(step string) {
		if slices.Contains(names, step) {
			next(step)
		}
	}})
	must.OK(g.t, err)
	next("")
	g.t.Logf("%+v", report)
}

// handlerReads are how many rows a server has read, and how many bytes it has sent, since it started.
func handlerReads(t *testing.T, dsn string) (keys, sent int64) {
	t.Helper()
	rows, err := connect(t, dsn).QueryContext(t.Context(), "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Handler_read%' OR Variable_name = 'Bytes_sent'")
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int64
		must.OK(t, rows.Scan(&name, &n))
		if name == "Bytes_sent" {
			sent = n
			continue
		}
		keys += n
	}
	return keys, sent
}
