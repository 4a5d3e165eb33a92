package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/shard"
	"kith/storage/sqlstore"
)

// replacerEnv says what a process is to put in the place of shard 0, and before which step it is to die.
const replacerEnv = "KITH_TEST_REPLACER"

// TestReplacer is not a test by itself: it is the process that replaces in [TestShardZeroIsReplaced].
func TestReplacer(t *testing.T) {
	var address, step string
	if n, _ := fmt.Sscanf(os.Getenv(replacerEnv), "%q %q", &address, &step); n != 2 {
		t.Skip("runs in processes that TestShardZeroIsReplaced starts")
	}
	s := open(t, os.Getenv("KITH_TEST_LOCATION"))
	if err := s.ReplaceShard(t.Context(), 0, address, sqlstore.MoveConfig{Step: dieBefore(step)}); err != nil {
		t.Fatal(err)
	}
}

// A controller takes leases and keeps checkpoints, as every program on a store does.
type controller struct {
	t      *testing.T
	stores []*sqlstore.Store

	mu      sync.Mutex
	holders map[int]string // by slot
	until   map[int]time.Time
	renewed int
	saved   []int // the last value of each store's checkpoint
}

const leasesOf, leaseSlots, leaseTime = "machines", 4, 3 * time.Second

// work lets each store take or renew a lease, and count in a checkpoint, until the context ends.
func (c *controller) work(ctx context.Context) *sync.WaitGroup {
	c.holders, c.until, c.saved = map[int]string{}, map[int]time.Time{}, make([]int, len(c.stores))
	var wg sync.WaitGroup
	for i, s := range c.stores {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				c.lease(s, fmt.Sprintf("owner %d of life %d", i, n/40))
				c.count(s, i)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return &wg
}

// lease takes or renews a lease, and checks that no other owner has it.
func (c *controller) lease(s *sqlstore.Store, owner string) {
	asked := time.Now()
	until := asked.Add(leaseTime)
	slot, err := s.Lease(context.Background(), leasesOf, owner, leaseSlots, storage.MicrosOf(asked), storage.MicrosOf(until))
	if errors.Is(err, storage.ErrNoLease) {
		return
	}
	if err != nil {
		c.t.Errorf("a lease: %v", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holders[slot] != owner && asked.Before(c.until[slot]) {
		c.t.Errorf("slot %d was leased to %s until %s, and to %s at %s", slot, c.holders[slot], c.until[slot], owner, asked)
	}
	if c.holders[slot] == owner {
		c.renewed++
	}
	if c.holders[slot] != owner || until.After(c.until[slot]) {
		c.holders[slot], c.until[slot] = owner, until
	}
}

// count saves the next number, after it has found the last one.
func (c *controller) count(s *sqlstore.Store, i int) {
	name := fmt.Sprint("counter ", i)
	value, found, err := s.LoadCheckpoint(context.Background(), name)
	if err != nil || found != (c.saved[i] > 0) || found && string(value) != strconv.Itoa(c.saved[i]) {
		c.t.Errorf("%s is %q (%v), %d was saved", name, value, err, c.saved[i])
		return
	}
	if err := s.SaveCheckpoint(context.Background(), name, []byte(strconv.Itoa(c.saved[i]+1))); err != nil {
		c.t.Errorf("save %s: %v", name, err)
		return
	}
	c.saved[i]++
}

// The first server of a store is taken out of use: its buckets move to another shard, and another database
// takes the place of shard 0, with its leases and checkpoints, while programs write. The process that replaces it dies by
// kill -9 before each step; the next one continues. Then the old database is gone.
func TestShardZeroIsReplaced(t *testing.T) {
	t.Parallel()
	steps := []string{"prepare", "hand over", "decide", "open", "record"}
	for name, databases := range map[string]func() (location string, others []string, drop func()){
		"SQLite": func() (string, []string, func()) {
			dir := t.TempDir()
			first := filepath.Join(dir, "first.db")
			return "sqlite:" + first, []string{filepath.Join(dir, "second.db"), filepath.Join(dir, "third.db")}, func() {
				for _, tail := range []string{"", "-wal", "-shm"} {
					_ = os.Remove(first + tail)
				}
			}
		},
		"MariaDB": func() (string, []string, func()) {
			servers := testenv.SharedMariaDB(t, 2)
			dsns := servers.FreshDatabases(t, 2)
			return "mysql:" + dsns[0], []string{dsns[1], dsns[3]}, func() { dropDatabase(t, dsns[0]) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "SQLite" {
				testenv.Long(t) // the program replaces a shard: TestTheFirstServerIsTakenOutOfUse
			}
			if name == "MariaDB" {
				testenv.NotOn(t, "a store there is one shard", "tidb")
			}
			location, others, drop := databases()
			g := newGrower(t, location, others[0], 200)
			secret, err := g.mover.Secret(t.Context(), "tokens")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.mover.AddShard(t.Context(), others[0]); err != nil {
				t.Fatal(err)
			}
			writing, stop := context.WithCancel(t.Context())
			writers := g.write(writing, 5)
			c := &controller{t: t, stores: append(slices.Clone(g.writers), open(t, location))}
			working, end := context.WithCancel(t.Context())
			controllers := c.work(working)
			defer func() { stop(); end(); writers.Wait(); controllers.Wait() }()
			g.goOn(100)

			if err := g.mover.ReplaceShard(t.Context(), 0, others[1], sqlstore.MoveConfig{}); err == nil || !strings.Contains(err.Error(), "has buckets 0–1023") {
				t.Fatalf("a shard with buckets has been replaced: %v", err)
			}
			all := sqlstore.Move{Buckets: shard.Range{First: 0, Last: shard.Buckets - 1}, From: 0, To: 1}
			if _, err := g.mover.Move(t.Context(), all, sqlstore.MoveConfig{Token: "test", Keep: time.Second}); err != nil {
				t.Fatal(err)
			}
			chosen := steps
			if os.Getenv("KITH_TEST_LONG") != "1" {
				chosen = []string{steps[rand.IntN(2)], "decide", "open"}
			}
			for _, step := range chosen {
				g.replaceInAnotherProcess(others[1], step)
				g.goOn(50)
			}
			g.replaceInAnotherProcess(others[1], "")
			if err := g.mover.ReplaceShard(t.Context(), 0, others[0], sqlstore.MoveConfig{}); err == nil || !strings.Contains(err.Error(), "is shard 1 already") {
				t.Errorf("a shard takes the place of another one: %v", err)
			}
			for _, s := range append(slices.Clone(c.stores), g.mover) {
				if err := s.Refresh(t.Context()); err != nil { // as each program does within a second
					t.Fatal(err)
				}
			}
			drop()
			before := c.renewals()
			g.goOn(100)
			for began := time.Now(); c.renewals() < before+50; time.Sleep(time.Millisecond) {
				if time.Since(began) > generous {
					t.Fatalf("leases are renewed %d times only", c.renewals()-before)
				}
			}
			stop()
			end()
			writers.Wait()
			controllers.Wait()

			scheme, _, _ := strings.Cut(location, ":")
			now := scheme + ":" + strings.TrimPrefix(others[1], scheme+":")
			g.use(open(t, now), now)
			g.check()
			for i, n := range c.saved {
				value, _, err := g.mover.LoadCheckpoint(t.Context(), fmt.Sprint("counter ", i))
				if err != nil || string(value) != strconv.Itoa(n) {
					t.Errorf("checkpoint %d is %q (%v), want %d", i, value, err, n)
				}
			}
			if again, err := g.mover.Secret(t.Context(), "tokens"); err != nil || string(again) != string(secret) {
				t.Errorf("the secret is another one (%v)", err)
			}
			if got := g.mover.Shards(); got != 2 {
				t.Errorf("the store has %d shards, want 2", got)
			}
			t.Logf("replacers died before %q; %d writes, the slowest took %d ms; %v numbers saved", chosen, g.writes.Load(), g.slowest.Load(), c.saved)
		})
	}
}

func (c *controller) renewals() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed
}

func (g *grower) replaceInAnotherProcess(address, step string) {
	g.t.Helper()
	inAnotherProcess(g.t, "TestReplacer", step != "", fmt.Sprintf("%s=%q %q", replacerEnv, address, step), "KITH_TEST_LOCATION="+g.location)
}

func dropDatabase(t *testing.T, dsn string) {
	t.Helper()
	name := dsn[strings.LastIndex(dsn, "/")+1:]
	name, _, _ = strings.Cut(name, "?")
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("DROP DATABASE `" + name + "`"); err != nil {
		t.Fatal(err)
	}
}
