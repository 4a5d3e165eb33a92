package sqlstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// copierEnv says where a process is to copy the store to, and before which step it is to die.
const copierEnv = "KITH_TEST_COPIER"

// TestCopier is not a test by itself: it is the process that copies in [TestCopiersAreKilled].
func TestCopier(t *testing.T) {
	var location, step string
	if n, _ := fmt.Sscanf(os.Getenv(copierEnv), "%q %q", &location, &step); n != 2 {
		t.Skip("runs in processes that TestCopiersAreKilled starts")
	}
	s := open(t, os.Getenv("KITH_TEST_LOCATION"))
	_, err := s.CopyTo(t.Context(), open(t, location), sqlstore.MoveConfig{Token: fmt.Sprint(os.Getpid()), Step: dieBefore(step)})
	must.OK(t, err)
}

// Copiers of a store with two shards die by kill -9 before each step. Writes continue to each shard
// whose copy has not been decided. The next copier continues, even while many writes wait for a shard
// that is being copied, and the finished copy equals the store.
func TestCopiersAreKilled(t *testing.T) {
	t.Parallel()
	steps := []string{"leave 0", "leave 1", "copy users", "copy handles", "copy following", "copy edge_marks", "close 0", "close 1", "last rows 0", "last rows 1", "secrets", "decide 0"}
	for name, from := range map[string]func() string{
		"SQLite":  func() string { return sqlite(t, 2) },
		"MariaDB": func() string { return mysql(testenv.SharedMariaDB(t, 2).FreshDatabases(t, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "SQLite" {
				testenv.Long(t) // TestAStoreIsCopiedUnderLoad copies a store
			}
			if name == "MariaDB" {
				testenv.NotOn(t, "TiDB is not copied from", "tidb")
			}
			g := newGrower(t, from(), "", 200)
			g.late.Store(true) // writes that come after the copy of a shard are refused
			writing, stop := context.WithCancel(t.Context())
			writers := g.write(writing, 4)
			defer writers.Wait()
			defer stop()
			target := sqlite(t, 3)
			chosen := steps
			if os.Getenv("KITH_TEST_LONG") != "1" {
				i := rand.IntN(len(steps) - 1)
				chosen = []string{steps[i], "decide 0"}
			}
			for _, step := range chosen {
				g.copyInAnotherProcess(target, step)
				g.goOn(100)
			}
			g.copyInAnotherProcess(target, "decide 1")
			g.follows(1)
			g.copyInAnotherProcess(target, "")
			stop()
			writers.Wait()
			_, err := g.mover.CopyTo(t.Context(), open(t, target), sqlstore.MoveConfig{})
			check.That(t, err != nil, "what has been copied is copied again")
			copied := open(t, target)
			got, want := rowsOf(t, copied.Addresses()), rowsOf(t, g.mover.Addresses())
			check.That(t, got == want, "the copy has %s, the store %s", got, want)
			g.use(copied, target)
			g.check()
			t.Logf("copiers died before %q and \"decide 1\"; %d writes", chosen, g.writes.Load())
		})
	}
}

func (g *grower) copyInAnotherProcess(to, step string) {
	g.t.Helper()
	inAnotherProcess(g.t, "TestCopier", step != "", fmt.Sprintf("%s=%q %q", copierEnv, to, step), "KITH_TEST_LOCATION="+g.location)
}

// goOn waits until a number of writes have succeeded.
func (g *grower) goOn(writes int64) {
	g.t.Helper()
	before := g.writes.Load()
	for began := time.Now(); g.writes.Load() < before+writes; time.Sleep(time.Millisecond) {
		must.That(g.t, time.Since(began) <= generous, "only %d writes have gone through", g.writes.Load()-before)
	}
}

// follows makes a user of a shard follow another one, whichever process has closed the shard.
func (g *grower) follows(shard int) {
	g.t.Helper()
	var of []storage.UserID
	for id := storage.UserID(g.users); len(of) < 2; id-- {
		if g.mover.ShardOf(id) == shard {
			of = append(of, id)
		}
	}
	pair := storage.Pair{From: of[0], To: of[1]}
	row := storage.Edge{From: pair.From, To: pair.To, Type: storage.Following, UpdateTime: storage.MicrosOf(time.Now().Add(time.Hour))}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		r := g.mover.Apply(g.t.Context(), side, []storage.Edge{row}, storage.IfNewer)[0]
		must.That(g.t, r.Err == nil, "with shard 0 copied, a write to shard %d: %v", shard, r.Err)
	}
	g.acknowledged.Store(pair, storage.Following)
}
