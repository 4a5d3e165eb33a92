package cli

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/cluster"
	"kith/internal/logged"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/reconcile"
	"kith/storage"
	"kith/storage/sleep"
	"kith/storage/sqlstore"
)

// The realtime mode reads the log of a shard that is added while it watches, and finds edges there that
// have lost a side.
func TestRealtimeWatchesAShardThatIsAdded(t *testing.T) {
	store := halved(t)
	var said logged.Text
	found := make(chan storage.Pair, 10_000)
	cfg := reconcile.ChangesConfig{
		Store: store, Checkpoints: store, Window: time.Millisecond, MaxPending: 100, Logger: slog.New(slog.NewTextHandler(&said, nil)),
		Metrics: reconcile.NewMetrics(prometheus.NewRegistry()), Found: func(f reconcile.Finding) { found <- f.Pair() },
	}
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			if err := watchChanges(ctx, store, &cluster.Repairs{}, cfg); err != nil {
				t.Error(err)
				return
			}
		}
	})
	watching.Go(func() { store.Watch(ctx) })
	defer watching.Wait()
	defer stop()
	// Edges lose a side again and again here: a log without a checkpoint is only watched from some time on.
	awaitFoundOf := func(s *sqlstore.Store, from storage.UserID) {
		t.Helper()
		for to, began := storage.UserID(100), time.Now(); ; to++ {
			edge := storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: 5}
			must.All(t, s.Apply(t.Context(), storage.Forward, []storage.Edge{edge}, storage.IfNewer))
			select {
			case is := <-found:
				if is.From == from {
					return
				}
			case <-time.After(50 * time.Millisecond):
			}
			must.That(t, time.Since(began) <= 30*time.Second, "nothing of user %d has been found", from)
		}
	}
	awaitFoundOf(store, 1)

	adder := openAnother(t, store)
	to, err := adder.AddShard(t.Context(), filepath.Join(t.TempDir(), "added.db"))
	must.OK(t, err)
	for began := time.Now(); !strings.Contains(said.String(), "watching begins again"); {
		must.That(t, time.Since(began) <= 30*time.Second && sleep.For(ctx, time.Millisecond) == nil, "it has not begun again")
	}
	from := storage.UserID(3)
	plan := sqlstore.Move{Buckets: storage.BucketRange{First: from.Bucket(), Last: from.Bucket()}, From: 0, To: to}
	_, err = adder.Move(t.Context(), plan, sqlstore.MoveConfig{Token: "test", Keep: time.Millisecond})
	must.OK(t, err)
	awaitFoundOf(adder, from)
}

// openAnother opens a store as another program does.
func openAnother(t *testing.T, store *sqlstore.Store) *sqlstore.Store {
	t.Helper()
	return opened.Store(t, sqlstore.Config{Location: "sqlite:" + store.Addresses()[0], StatementTimeout: 30 * time.Second})
}
