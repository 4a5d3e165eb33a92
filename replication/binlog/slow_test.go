package binlog_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
)

// slowly replaces the server in DSNs by a slow link to it. The transaction of largeNeighbour takes 25 s on it.
func slowly(t *testing.T, dsns []string, server *testenv.MariaDBServer) (slow []string) {
	t.Helper()
	addr := testenv.SlowLink(t, server.Addr(), 48<<10)
	for _, dsn := range dsns {
		slow = append(slow, strings.Replace(dsn, server.Addr(), addr, 1))
	}
	return slow
}

// largeNeighbour writes a large transaction into a database that is not the store's: half of it in small rows, half
// in one row.
func largeNeighbour(t *testing.T, server *testenv.MariaDBServer) {
	t.Helper()
	server.Exec(t, "CREATE DATABASE neighbour")
	db := server.Open(t, "neighbour")
	db.SetMaxOpenConns(1)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE files (id INT AUTO_INCREMENT PRIMARY KEY, content MEDIUMBLOB)")
	must.OK(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	must.OK(t, err)
	for range 150 {
		_, err := tx.ExecContext(t.Context(), "INSERT INTO files (content) VALUES (REPEAT('x', 4000))")
		must.OK(t, err)
	}
	_, err = tx.ExecContext(t.Context(), "INSERT INTO files (content) VALUES (REPEAT('y', 600000))")
	must.OK(t, err)
	must.OK(t, tx.Commit())
}

// A transaction that takes longer to read than nothing may arrive is read to its end, and the lag shows it.
func TestLargeTransactionOnASlowLink(t *testing.T) {
	t.Parallel()
	w, server := newPrivateWorld(t)
	direct := w.dsns
	w.dsns = slowly(t, direct, server)
	r := w.replicate(t)
	w.dsns = direct
	r.await(t, binlog.Tailing)
	largeNeighbour(t, server)
	began := time.Now()
	w.write(t, w.follow(1, 2))
	var longest time.Duration
	must.OKSoon(t, func() error {
		longest = max(longest, r.applier.Status().Lag)
		return w.agrees()
	})
	took := time.Since(began)
	check.That(t, longest >= took/2, "a follow took %s, and the lag was %s at most", took, longest)
	check.That(t, took >= 15*time.Second, "the transaction took %s: too little for this test", took)
	check.Lacks(t, "the log", w.log.String(), "interrupted")
	must.OKSoon(t, func() error {
		if lag := r.applier.Status().Lag; lag > 0 {
			return errNotYet
		}
		return nil
	})
}

// A reader may read slowly, and whoever takes its changes may take longer than nothing may arrive.
func TestReaderOnASlowLink(t *testing.T) {
	t.Parallel()
	w, server := newPrivateWorld(t)
	reader, err := binlog.OpenReader(t.Context(), slowly(t, w.dsns, server), slog.New(slog.DiscardHandler))
	must.OK(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	log := reader.Logs()[0]
	at := end(t, log)
	w.write(t, w.follow(1, 2))
	largeNeighbour(t, server)
	w.write(t, w.follow(1, 3))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var seen []storage.UserID
	err = log.Read(ctx, nil, at, end(t, log), func(c replication.Changed) error {
		for _, r := range c.Rows {
			if seen = append(seen, r.Edge.To); len(seen) == 1 {
				time.Sleep(14 * time.Second)
			}
		}
		return nil
	})
	check.That(t, err == nil && len(seen) == 2, "%v: %v", seen, err)
}

// While a transaction waits for a shard, the connection may end. It is taken as a whole then, and does not hold up what
// comes later.
func TestResetWhileAShardWaits(t *testing.T) {
	t.Parallel()
	testenv.NotOn(t, "its RESET waits for the transaction that waits", "mysql")
	w, server := newPrivateWorld(t)
	r := w.replicate(t, func(c *binlog.Config) {
		small := replication.New(replication.Config{Store: w.store, Shards: len(w.dsns), MaxPending: 2})
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		go small.Run(ctx)
		c.Applier = small
	})
	r.await(t, binlog.Tailing)
	w.write(t, w.follow(1, 2))
	w.settle(t)
	near := w.shardWith(t, 1)
	db := server.Open(t, databaseOf(t, w.dsns[1-near])) // where the other side of most of its follows is
	db.SetMaxOpenConns(1)
	_, err := db.ExecContext(t.Context(), "LOCK TABLES follower WRITE")
	must.OK(t, err)
	var edges []storage.Edge
	for to := range storage.UserID(60) {
		edges = append(edges, w.follow(1, 100+to))
	}
	w.write(t, edges...)
	time.Sleep(2 * time.Second) // its rows wait
	server.ResetBinlog(t)
	time.Sleep(6 * time.Second) // this is noticed
	must.OK(t, db.Close())
	w.settle(t)
	w.write(t, w.follow(2, 3))
	w.settle(t)
	must.OKSoon(t, func() error { // the checkpoint goes on, too: the copy is over
		if strings.Contains(w.checkpoints(t), `"copy":{`) {
			return errNotYet
		}
		return nil
	})
}

// If a link lets heartbeats through and nothing else, the lag grows although every connection begins well.
func TestOnlyHeartbeatsArrive(t *testing.T) {
	t.Parallel()
	w, server := newPrivateWorld(t)
	direct := w.dsns
	link := testenv.NarrowLink(t, server.Addr(), 64<<10) // the answer about all settings passes
	w.dsns = slices.Clone(direct)
	for i, dsn := range direct {
		w.dsns[i] = strings.Replace(dsn, server.Addr(), link, 1)
	}
	r := w.replicate(t)
	w.dsns = direct
	r.await(t, binlog.Tailing)
	largeNeighbour(t, server)
	began := time.Now()
	interrupted := false
	must.OKSoon(t, func() error {
		interrupted = interrupted || strings.Contains(w.log.String(), "interrupted")
		lag := r.applier.Status().Lag
		late := time.Since(began)
		must.That(t, !interrupted || lag >= late-10*time.Second, "after %s the lag is %s", late, lag)
		if lag < 25*time.Second {
			return errNotYet
		}
		return nil
	})
	check.That(t, interrupted, "the connection was not ended")
}
