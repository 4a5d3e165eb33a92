package sqlstore_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// TestMovesAreNoticedWhileAShardIsSilent: a program that hears nothing of one shard reads no longer where users were that have moved between
// others. A mover that cannot reach it any more goes on.
func TestMovesAreNoticedWhileAShardIsSilent(t *testing.T) {
	t.Parallel()
	testenv.NotOn(t, "buckets do not move there", "tidb")
	servers := testenv.SharedMariaDB(t, 1)
	dsns := servers.FreshDatabases(t, 3)
	silent := testenv.NewLink(t, servers[0].Addr())
	lost := testenv.NewLink(t, servers[0].Addr())
	mover := open(t, mysql([]string{dsns[0], dsns[1], strings.Replace(dsns[2], servers[0].Addr(), lost.Addr, 1)}))
	reader := open(t, mysql([]string{dsns[0], dsns[1], strings.Replace(dsns[2], servers[0].Addr(), silent.Addr, 1)}))
	go reader.Watch(t.Context())
	defer silent.Silence()()

	user := storage.UserID(1)
	for mover.ShardOf(user) != 0 {
		user++
	}
	bucket := user.Bucket()
	plan := sqlstore.Move{Buckets: storage.BucketRange{First: bucket, Last: bucket}, From: 0, To: 1}
	_, err := mover.Move(t.Context(), plan, sqlstore.MoveConfig{Token: "mover", Keep: time.Millisecond, Step: func(step string) {
		if step == "close" {
			lost.Cut()
		}
	}})
	must.OK(t, err)
	ended := time.Now()
	for reader.ShardOf(user) != 1 {
		if time.Since(ended) > 2*time.Second { // it looks every second
			t.Fatalf("user %d has moved, and is read on shard %d after %s", user, reader.ShardOf(user), time.Since(ended))
		}
		time.Sleep(time.Millisecond)
	}
	t.Logf("noticed %s after the end", time.Since(ended))
}

// TestAllShardsAreLookedAtWhileTheFirstIsSilent: a mover waits as long as it takes until a program looks again at a shard that answers, also
// if that program does not hear from the shard that lists the others.
func TestAllShardsAreLookedAtWhileTheFirstIsSilent(t *testing.T) {
	t.Parallel()
	servers := testenv.SharedMariaDB(t, 1)
	dsns := servers.FreshDatabases(t, 2)
	silent := testenv.NewLink(t, servers[0].Addr())
	looks := make(chan time.Time, 1000)
	reader := opened.Store(t, sqlstore.Config{
		Location: mysql([]string{strings.Replace(dsns[0], servers[0].Addr(), silent.Addr, 1), dsns[1]}),
		OnStatement: func(_ context.Context, s sqlstore.Statement) {
			if s.Lookup == "buckets" && s.Shard == 1 {
				looks <- time.Now()
			}
		},
	})
	ctx, end := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer end()
	watching.Go(func() { reader.Watch(ctx) })
	last := <-looks
	defer silent.Silence()()
	gaps := make([]time.Duration, 5)
	for i := range gaps {
		now := <-looks
		gaps[i], last = now.Sub(last), now
	}
	slices.Sort(gaps) // a machine with other work may be late once
	check.That(t, gaps[2] <= 1700*time.Millisecond, "looked at after %v: it does so every second", gaps)
}

// TestWhatASilentShardIsNotAskedHasFailed: an alert compares how many statements fail with how many there are, and a shard that is not asked
// has none.
func TestWhatASilentShardIsNotAskedHasFailed(t *testing.T) {
	t.Parallel()
	servers := testenv.SharedMariaDB(t, 1)
	dsn := servers.FreshDatabases(t, 1)[0]
	silent := testenv.NewLink(t, servers[0].Addr())
	var failed sync.Map
	store := opened.Store(t, sqlstore.Config{
		Location: mysql([]string{strings.Replace(dsn, servers[0].Addr(), silent.Addr, 1)}), StatementTimeout: 200 * time.Millisecond,
		OnStatement: func(_ context.Context, s sqlstore.Statement) {
			if n, _ := failed.LoadOrStore(s.Lookup, new(atomic.Int32)); s.Err != nil {
				n.(*atomic.Int32).Add(1)
			}
		},
	})
	defer silent.Silence()()
	const asked = 20
	for range asked {
		storage.ProfileLookups.Read(t.Context(), store, 1)
	}
	for range asked {
		must.That(t, store.SaveCheckpoint(t.Context(), "c", nil) != nil, "a silent shard takes a checkpoint")
	}
	for _, what := range []string{"profiles", "checkpoints"} {
		n, known := failed.Load(what)
		must.That(t, known, "no statement of %s has failed", what)
		must.Least(t, "statements of "+what+" that failed", n.(*atomic.Int32).Load(), asked)
	}
}
