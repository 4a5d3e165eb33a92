package replication_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/replication"
	"kith/storage"
	"kith/storage/sqlstore"
)

type collected chan storage.Row

func (c collected) Send(_ context.Context, change storage.Change) {
	for _, r := range change.Rows {
		c <- r
	}
}

// Rows that another program writes to the same file are published in order. Rows that existed before are not published.
func TestWritesBesideTheGatewayAreReported(t *testing.T) {
	path := "sqlite:" + filepath.Join(t.TempDir(), "kith.db")
	open := func() *sqlstore.Store {
		s := opened.Store(t, sqlstore.Config{Location: path, StatementTimeout: 30 * time.Second})
		return s
	}
	gateway, other := open(), open()
	write := func(side storage.Side, e storage.Edge) {
		must.OK(t, other.Apply(t.Context(), side, []storage.Edge{e}, storage.IfNewer)[0].Err)
	}
	edge := func(to int, at storage.Micros) storage.Edge {
		return storage.Edge{From: 1, To: storage.UserID(to), Type: storage.Following, UpdateTime: at}
	}
	write(storage.Forward, edge(2, 1))
	write(storage.Inverse, edge(2, 1))

	ctx, stop := context.WithCancel(t.Context())
	published := make(collected, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		replication.FollowLogs(ctx, gateway, published, slog.New(slog.DiscardHandler))
	}()
	defer func() { stop(); <-done }()

	// The tail follows from the end of the log at its first look, so the test writes until an event comes.
	var first storage.Row
	for at := storage.Micros(2); first == (storage.Row{}); at++ {
		write(storage.Inverse, edge(3, at))
		select {
		case first = <-published:
		case <-time.After(20 * time.Millisecond):
		}
	}
	var want []storage.Row
	for to := 10; to < 60; to++ {
		rows := []storage.Row{{Side: storage.Forward, Edge: edge(to, 5)}, {Side: storage.Inverse, Edge: edge(to, 5)}}
		if to%10 == 0 {
			rows = append(rows, storage.Row{Side: storage.Requests, Edge: edge(to, 6)}, storage.Row{Side: storage.Inbox, Edge: edge(to, 6)})
		}
		for _, r := range rows {
			write(r.Side, r.Edge)
		}
		want = append(want, rows...)
	}
	var got []storage.Row
	for len(got) < len(want) {
		select {
		case e := <-published:
			if e.Edge.To >= 10 {
				got = append(got, e)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%d of %d rows were published", len(got), len(want))
		}
	}
	check.That(t, slices.Equal(got, want), "got %v, want %v", got, want)
}

// counting counts how often the log of each shard is read.
type counting struct {
	*sqlstore.Store
	reads [2]atomic.Int64
}

func (c *counting) ReadLog(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
	c.reads[shard].Add(1)
	return c.Store.ReadLog(ctx, shard, after, limit)
}

// The log of a shard that is added meanwhile is followed, too.
func TestAnAddedShardIsFollowed(t *testing.T) {
	dir := t.TempDir()
	s := opened.Store(t, sqlstore.Config{Location: "sqlite:" + filepath.Join(dir, "a.db"), StatementTimeout: 30 * time.Second})
	log := &counting{Store: s}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		replication.FollowLogs(ctx, log, make(collected, 100), slog.New(slog.DiscardHandler))
	}()
	defer func() { stop(); <-done }()
	until := func(shard int) {
		t.Helper()
		for began := time.Now(); log.reads[shard].Load() < 3; time.Sleep(time.Millisecond) {
			must.That(t, time.Since(began) <= 30*time.Second, "the log of shard %d has been read %d times", shard, log.reads[shard].Load())
		}
	}
	until(0)
	_, err := s.AddShard(t.Context(), filepath.Join(dir, "b.db"))
	must.OK(t, err)
	until(1)
}
