package sqlstore_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	if err != nil {
		g.t.Fatal(err)
	}
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
	if err != nil {
		g.t.Fatal(err)
	}
	next("")
	g.t.Logf("%+v", report)
}

// handlerReads are how many rows a server has read, and how many bytes it has sent, since it started.
func handlerReads(t *testing.T, dsn string) (keys, sent int64) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Handler_read%' OR Variable_name = 'Bytes_sent'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		if name == "Bytes_sent" {
			sent = n
			continue
		}
		keys += n
	}
	return keys, sent
}

// TestLongPackedListAfterAMove measures, for a user with a million followers, how long it takes to pack the
// list, to copy its packed rows from one database to another, and to move its bucket.
//
//	KITH_TEST_LONG=1 go test ./storage/sqlstore -run TestLongPackedListAfterAMove -v
func TestLongPackedListAfterAMove(t *testing.T) {
	testenv.Long(t)
	testenv.NotOn(t, "a store on TiDB is one shard", "tidb")
	const followers = 1_000_000
	owner := storage.UserID(1)
	dsns := testenv.SharedMariaDB(t, 2).FreshDatabases(t, 1)
	g := newGrower(t, "mysql:"+dsns[0], dsns[1], 1)
	ctx := t.Context()
	var edges []storage.Edge
	for from := range storage.UserID(followers) {
		edges = append(edges, storage.Edge{From: 10 + 7*from, To: owner, Type: storage.Following, UpdateTime: storage.Micros(1e15 + int64(from)*7919)})
	}
	for some := range slices.Chunk(edges, 5000) {
		for _, r := range g.mover.Apply(ctx, storage.Inverse, some, storage.IfAbsent) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	pack := func(when string) {
		began := time.Now()
		if err := g.mover.Pack(ctx, storage.Inverse, owner); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: packed in %s", when, time.Since(began).Round(time.Millisecond))
	}
	pack("before")
	to, err := g.mover.AddShard(ctx, g.add)
	if err != nil {
		t.Fatal(err)
	}
	chunks, bytes, took := g.copyChunks(dsns[0], dsns[1])
	t.Logf("%d chunks of %d bytes from one database to the other in %s", chunks, bytes, took.Round(time.Millisecond))
	bucket := owner.Bucket()
	report, err := g.mover.Move(ctx, sqlstore.Move{Buckets: storage.BucketRange{First: bucket, Last: bucket}, From: 0, To: to}, sqlstore.MoveConfig{Token: "test", Keep: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("moved %d rows in %s", report.Rows, report.Took.Round(time.Millisecond))
	pack("afterwards")
}

// copyChunks copies all chunks, 100 at a time, and deletes the copies.
func (g *grower) copyChunks(from, to string) (chunks, bytes int, took time.Duration) {
	g.t.Helper()
	var pools [2]*sql.DB
	for i, dsn := range []string{from, to} {
		var err error
		if pools[i], err = sql.Open("mysql", dsn); err != nil {
			g.t.Fatal(err)
		}
		defer pools[i].Close()
	}
	began := time.Now()
	for first := int64(-1); ; {
		rows, err := pools[0].QueryContext(g.t.Context(), "SELECT owner, side, first_peer, data FROM packed_chunk WHERE first_peer > ? ORDER BY owner, side, first_peer LIMIT 100", first)
		if err != nil {
			g.t.Fatal(err)
		}
		var args []any
		for rows.Next() {
			var owner, side int64
			var data []byte
			if err := rows.Scan(&owner, &side, &first, &data); err != nil {
				g.t.Fatal(err)
			}
			args = append(args, owner, side, first, data)
			bytes += len(data)
		}
		rows.Close()
		if len(args) == 0 {
			break
		}
		chunks += len(args) / 4
		text := "REPLACE INTO packed_chunk (owner, side, first_peer, data) VALUES (?, ?, ?, ?)" + strings.Repeat(", (?, ?, ?, ?)", len(args)/4-1)
		if _, err := pools[1].ExecContext(g.t.Context(), text, args...); err != nil {
			g.t.Fatal(err)
		}
	}
	took = time.Since(began)
	if _, err := pools[1].ExecContext(g.t.Context(), "DELETE FROM packed_chunk"); err != nil {
		g.t.Fatal(err)
	}
	return chunks, bytes, took
}
