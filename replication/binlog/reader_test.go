package binlog_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
)

// openReader opens the binlogs of a store for reading, until t ends.
func (w *world) openReader(t testing.TB) []*binlog.Log {
	t.Helper()
	r, err := binlog.OpenReader(t.Context(), w.dsns, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r.Logs()
}

// Whoever gives up while one server is away leaves no connections to the others.
func TestGivingUpLeavesNoConnections(t *testing.T) {
	t.Parallel()
	testenv.NeedsBinlog(t)
	dsns := testenv.SharedMariaDB(t, 2).FreshDatabases(t, 2)
	must.OK(t, openStore(t, dsns).Close())
	watching, err := sql.Open("mysql", dsns[1])
	must.OK(t, err)
	t.Cleanup(func() { watching.Close() })
	connected := func(is bool) {
		t.Helper()
		for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			var n int
			must.OK(t, watching.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.processlist WHERE db = ?", databaseOf(t, dsns[0])).Scan(&n))
			if (n > 0) == is {
				return
			}
			must.That(t, time.Since(began) <= 15*time.Second, "there are %d connections", n)
		}
	}
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := binlog.OpenReader(ctx, []string{dsns[0], "root@tcp(127.0.0.1:1)/kith"}, slog.New(slog.DiscardHandler))
		ended <- err
	}()
	connected(true)
	giveUp()
	err = <-ended
	check.That(t, errors.Is(err, context.Canceled), "%v", err)
	connected(false)
}

func end(t testing.TB, l *binlog.Log) string {
	t.Helper()
	at, err := l.End(t.Context())
	must.OK(t, err)
	return at
}

// readTo reads a log up to its present end, and returns the changes and the position after them.
func readTo(t testing.TB, l *binlog.Log, after string) ([]storage.Row, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []storage.Row
	err := l.Read(ctx, nil, after, end(t, l), func(c replication.Changed) (err error) {
		all = append(all, c.Rows...)
		after, err = c.At()
		return err
	})
	return all, after, err
}

func TestReaderReportsChangesOfBothSides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	logs := w.openReader(t)
	positions := make([]string, len(logs))
	for i, l := range logs {
		positions[i] = end(t, l)
	}
	var want []storage.Row
	for to := range storage.UserID(20) {
		e := w.follow(1, 100+to)
		w.write(t, e)
		must.All(t, w.store.Apply(t.Context(), storage.Inverse, []storage.Edge{e, e}, storage.IfNewer))
		want = append(want, storage.Row{Side: storage.Forward, Edge: e}, storage.Row{Side: storage.Inverse, Edge: e})
	}
	gone := storage.Edge{From: 1, To: 110}
	shard := w.find(t, `SELECT 1 FROM follower WHERE from_user_id = 1 AND to_user_id = 110`)
	w.exec(t, shard,
		`DELETE FROM follower WHERE from_user_id = 1 AND to_user_id = 110`,
		`BEGIN`, `SAVEPOINT a`, `DELETE FROM follower WHERE from_user_id = 1`, `ROLLBACK TO a`, `COMMIT`,
	)
	want = append(want, storage.Row{Side: storage.Inverse, Edge: gone})

	var got []storage.Row
	for i, l := range logs {
		changes, at, err := readTo(t, l, positions[i])
		must.OK(t, err)
		got = append(got, changes...)
		positions[i] = at
	}
	for _, c := range want {
		n := len(slices.Collect(func(yield func(storage.Row) bool) {
			for _, g := range got {
				if g == c && !yield(g) {
					return
				}
			}
		}))
		check.That(t, n == 1, "%+v is reported %d times", c, n)
	}
	check.That(t, len(got) == len(want), "%d changes are reported of %d", len(got), len(want))

	// From the position of the last change, only new changes follow.
	e := w.follow(1, 500)
	w.write(t, e)
	got = nil
	for i, l := range logs {
		changes, _, err := readTo(t, l, positions[i])
		must.OK(t, err)
		got = append(got, changes...)
	}
	check.That(t, len(got) == 1 && got[0].Edge == e, "%+v instead of %+v", got, e)
}

func TestReaderFollowsWhatIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan storage.Edge, 100)
	for _, l := range w.openReader(t) {
		at := end(t, l)
		go func() {
			_ = l.Read(ctx, nil, at, "", func(c replication.Changed) error {
				for _, r := range c.Rows {
					seen <- r.Edge
				}
				return nil
			})
		}()
	}
	for to := range storage.UserID(5) {
		e := w.follow(1, 100+to)
		w.write(t, e)
		select {
		case got := <-seen:
			must.That(t, got == e, "%v, not %v", got, e)
		case <-time.After(patience):
			t.Fatal("nothing is reported")
		}
	}
}

func TestReaderReportsWhenItCannotKnow(t *testing.T) {
	t.Parallel()
	w, server := newPrivateWorld(t)
	log := w.openReader(t)[0]
	w.write(t, w.follow(1, 2))
	_, at, err := readTo(t, log, end(t, log))
	must.OK(t, err)
	w.exec(t, 0, `TRUNCATE TABLE follower`)
	var stop *binlog.StopError
	_, _, err = readTo(t, log, at)
	check.That(t, errors.As(err, &stop) && stop.GTID != "", "TRUNCATE: %v", err)
	w.write(t, w.follow(1, 3))
	at = end(t, log)
	server.ResetBinlog(t)
	w.write(t, w.follow(1, 4))
	_, _, err = readTo(t, log, at)
	check.Is(t, "a reset", err, replication.ErrLost)
	at = end(t, log)
	for to := range storage.UserID(3) {
		w.write(t, w.follow(1, 5+to))
		server.Exec(t, `FLUSH BINARY LOGS`)
	}
	must.OKSoon(t, func() error { // a file is not removed while it is being read
		purge(t, server)
		if _, _, err := readTo(t, log, at); !errors.Is(err, replication.ErrLost) {
			return fmt.Errorf("purged: %w", errors.Join(err, errNotYet))
		}
		return nil
	})
}
