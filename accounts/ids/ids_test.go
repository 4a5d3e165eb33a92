package ids

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// leases is a [storage.Leaser] that can be made to fail.
type leases struct {
	mu     sync.Mutex
	slots  map[string]map[int]held // by kind
	down   error
	calls  int
	latest storage.Micros // the until of the last call
}

type held struct {
	owner string
	until storage.Micros
}

func newLeases() *leases { return &leases{slots: map[string]map[int]held{}} }

func (l *leases) Lease(_ context.Context, kind, owner string, slots int, now, until storage.Micros) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.down != nil {
		return 0, l.down
	}
	taken := l.slots[kind]
	if taken == nil {
		taken = map[int]held{}
		l.slots[kind] = taken
	}
	slot := -1
	for i := range slots {
		h, is := taken[i]
		if is && h.owner == owner {
			slot = i
			break
		}
		if slot < 0 && (!is || h.until <= now) {
			slot = i
		}
	}
	if slot < 0 {
		return 0, storage.ErrNoLease
	}
	taken[slot] = held{owner, until}
	l.latest = until
	return slot, nil
}

func (l *leases) Holders(context.Context, string, storage.Micros) (int, error) { return 0, nil }

func (l *leases) Release(_ context.Context, kind, owner string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for slot, h := range l.slots[kind] {
		if h.owner == owner {
			delete(l.slots[kind], slot)
		}
	}
	return l.down
}

func (l *leases) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = err
}

// steal gives all slots of a kind to somebody else.
func (l *leases) steal(kind string, until storage.Micros) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for slot := range l.slots[kind] {
		l.slots[kind][slot] = held{"somebody else", until}
	}
}

func (l *leases) until(kind string, slot int) storage.Micros {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots[kind][slot].until
}

func (l *leases) count(kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.slots[kind])
}

func start(t *testing.T, l storage.Leaser, cfg Config) *Generator {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	g, err := New(t.Context(), l, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

func next(t *testing.T, g *Generator) storage.UserID {
	t.Helper()
	id, err := g.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestUnique makes a million ids on many generators at once, each of them used from
// several goroutines.
func TestUnique(t *testing.T) {
	t.Parallel()
	const generators, callers, each = 64, 4, 4000
	l := newLeases()
	made := make([][]storage.UserID, generators*callers)
	var running sync.WaitGroup
	for i := range generators {
		g := start(t, l, Config{})
		for j := range callers {
			running.Go(func() {
				ids := make([]storage.UserID, 0, each)
				for range each {
					id, err := g.Next(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					ids = append(ids, id)
				}
				made[i*callers+j] = ids
			})
		}
	}
	running.Wait()
	all := slices.Concat(made...)
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != generators*callers*each || n != len(all) {
		t.Fatalf("%d different ids of %d", n, len(all))
	}
	if all[0] < 1 {
		t.Fatalf("id %d is not positive", all[0])
	}
	for i, ids := range made {
		if !slices.IsSorted(ids) {
			t.Fatalf("caller %d got ids out of order", i)
		}
	}
}

// TestRestarts: generators that follow one another at once, on the same machine id,
// never meet.
func TestRestarts(t *testing.T) {
	t.Parallel()
	l, machine := newLeases(), 7
	seen := map[storage.UserID]bool{}
	for range 50 {
		g := start(t, l, Config{MachineID: &machine})
		for range 20 {
			id := next(t, g)
			if seen[id] {
				t.Fatalf("%d was made before", id)
			}
			seen[id] = true
		}
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMachineIDsDiffer: among those that are leased, and between these and those set.
func TestMachineIDsDiffer(t *testing.T) {
	t.Parallel()
	l := newLeases()
	seen := map[int]bool{}
	var mu sync.Mutex
	var running sync.WaitGroup
	for i := range 100 {
		running.Go(func() {
			cfg := Config{}
			if i%10 == 0 {
				cfg.MachineID = &i
			}
			g, err := New(t.Context(), l, cfg)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { g.Close(context.Background()) })
			machine := g.MachineID()
			id, err := g.Next(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[machine] || int(id&0xffff) != machine {
				t.Errorf("machine %d, known %t, in the id %d", machine, seen[machine], id&0xffff)
			}
			if (cfg.MachineID != nil) != (machine < setIDs) || cfg.MachineID != nil && machine != i {
				t.Errorf("machine %d for %d", machine, i)
			}
			seen[machine] = true
		})
	}
	running.Wait()
}

func TestSetTwice(t *testing.T) {
	t.Parallel()
	l, machine := newLeases(), 5
	start(t, l, Config{MachineID: &machine}) // a lease that a machine that stands still does not lose
	began := time.Now()
	_, err := New(t.Context(), l, Config{MachineID: &machine, Wait: 500 * time.Millisecond})
	if !errors.Is(err, storage.ErrNoLease) {
		t.Fatalf("a second gateway of the same machine id: %v", err)
	}
	if took := time.Since(began); took < 400*time.Millisecond || took > 10*time.Second {
		t.Errorf("it is told after %s", took)
	}
}

// TestSilentStore ends the start although the store does not answer.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), silent{}, Config{Wait: 50 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

type silent struct{ storage.Leaser }

func (silent) Lease(ctx context.Context, _, _ string, _ int, _, _ storage.Micros) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// TestSetAfterADeath waits for the lease of an owner that never gave it back, if that ends soon.
func TestSetAfterADeath(t *testing.T) {
	t.Parallel()
	l, machine := newLeases(), 5
	until := storage.MicrosOf(time.Now().Add(500 * time.Millisecond))
	if _, err := l.Lease(t.Context(), "machine 5", "dead", 1, 0, until); err != nil {
		t.Fatal(err)
	}
	g := start(t, l, Config{MachineID: &machine, Lease: 5 * time.Second})
	if now := storage.MicrosOf(time.Now()); now < until {
		t.Fatalf("taken %d µs before its end", until-now)
	}
	next(t, g)
}

func TestMachineIDRange(t *testing.T) {
	t.Parallel()
	for _, machine := range []int{-1, setIDs} {
		if _, err := New(t.Context(), newLeases(), Config{MachineID: &machine}); err == nil {
			t.Errorf("%d is taken", machine)
		}
	}
}

func TestNoSlot(t *testing.T) {
	t.Parallel()
	l := newLeases()
	l.fail(storage.ErrNoLease)
	if _, err := New(t.Context(), l, Config{}); !errors.Is(err, storage.ErrNoLease) {
		t.Fatal(err)
	}
}

// TestRenewed lives through several leases.
func TestRenewed(t *testing.T) {
	t.Parallel()
	l := newLeases()
	g := start(t, l, Config{Lease: 300 * time.Millisecond})
	machine, first := g.MachineID(), l.until(leaseKind, 0)
	eventually(t, "three leases later", func() bool { return l.until(leaseKind, 0) > first+900_000 })
	next(t, g)
	if g.MachineID() != machine {
		t.Errorf("machine %d became %d", machine, g.MachineID())
	}
}

// TestLeaseEnds: no ids when the lease cannot be renewed, and ids again when it can.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	l := newLeases()
	g := start(t, l, Config{Lease: 600 * time.Millisecond})
	next(t, g)
	if err := g.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.fail(errors.New("the store is down"))
	ended := l.until(leaseKind, 0)
	var err error
	eventually(t, "the lease ends", func() bool {
		var id storage.UserID
		id, err = g.Next(t.Context())
		if err == nil && madeAt(g, id)+unit > ended {
			t.Fatalf("an id of %d µs after the lease", madeAt(g, id)-ended)
		}
		return err != nil
	})
	if !errors.Is(err, ErrEnded) || !errors.Is(err, storage.ErrUnavailable) {
		t.Fatal(err)
	}
	eventually(t, "not ready", func() bool { return errors.Is(g.Ready(t.Context()), ErrEnded) }) // up to a unit later
	l.fail(nil)
	eventually(t, "ids again", func() bool { _, err := g.Next(t.Context()); return err == nil })
}

// TestSlotLost: somebody else has the slot when the store answers again.
func TestSlotLost(t *testing.T) {
	t.Parallel()
	l := newLeases()
	g := start(t, l, Config{Lease: 300 * time.Millisecond})
	machine := g.MachineID()
	l.steal(leaseKind, storage.MicrosOf(time.Now().Add(time.Hour)))
	eventually(t, "another machine id", func() bool { return g.MachineID() != machine })
	var id storage.UserID
	eventually(t, "ids again", func() bool { var err error; id, err = g.Next(t.Context()); return err == nil })
	if int(id&0xffff) != g.MachineID() {
		t.Errorf("an id of machine %d by machine %d", id&0xffff, g.MachineID())
	}
}

// TestClockSetBack: a little is waited for, more is an error at once.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	var back atomic.Int64
	clock := func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
	l := newLeases()
	g := start(t, l, Config{Now: clock, Lease: time.Hour})
	before := next(t, g)

	back.Store(int64(200 * time.Millisecond))
	began := time.Now()
	after := next(t, g)
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("200 ms back were not waited for: %s", took)
	}
	if after <= before {
		t.Errorf("%d after %d", after, before)
	}

	back.Store(int64(time.Hour))
	began = time.Now()
	if _, err := g.Next(t.Context()); !errors.Is(err, ErrClock) || !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("an hour back: %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("an hour back took %s", took)
	}

	// A renewal by the clock that was set back must not end the lease earlier.
	had := l.until(leaseKind, 0)
	if err := g.lease(t.Context()); err != nil || l.until(leaseKind, 0) < had {
		t.Errorf("the lease until %d ends at %d now, %v", had, l.until(leaseKind, 0), err)
	}
}

// TestClockRunsAhead, as after a pause of the machine: the lease is renewed at once
// and not when its third is over.
func TestClockRunsAhead(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	g := start(t, newLeases(), Config{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, Lease: time.Hour})
	next(t, g)
	ahead.Store(int64(2 * time.Hour))
	if _, err := g.Next(t.Context()); !errors.Is(err, ErrEnded) {
		t.Fatal(err)
	}
	eventually(t, "the lease is renewed", func() bool { return g.Ready(t.Context()) == nil })
}

func TestNextIsCancelled(t *testing.T) {
	t.Parallel()
	var back atomic.Int64
	g := start(t, newLeases(), Config{Now: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }})
	next(t, g)
	back.Store(int64(900 * time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// TestJudge: an id belongs to a lease by its own time, to the unit.
func TestJudge(t *testing.T) {
	t.Parallel()
	now := storage.MicrosOf(time.Now()) / unit * unit
	for name, c := range map[string]struct {
		from, until, made storage.Micros
		ok, wait          bool
	}{
		"within":                  {now - unit, now + 10*unit, now, true, false},
		"first unit":              {now, now + 10*unit, now, true, false},
		"in which the lease came": {now + 1, now + 10*unit, now, false, true},
		"before":                  {now + 5*unit, now + 10*unit, now, false, true},
		"last whole unit":         {now, now + unit, now, true, false},
		"in which the lease ends": {now, now + unit - 1, now, false, false},
		"behind":                  {now - 9*unit, now - unit, now, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := newFlake(3, c.from, c.until)
			if err != nil {
				t.Fatal(err)
			}
			number, err := f.maker.Compose(c.made.Time(), 9, 3)
			if err != nil {
				t.Fatal(err)
			}
			id, wait, err := f.judge(storage.UserID(number))
			if (id != 0) != c.ok || (wait > 0) != c.wait || (err != nil) == (c.ok || c.wait) {
				t.Errorf("id %d, wait %s, %v", id, wait, err)
			}
		})
	}
}

// TestClose: the lease ends with the last id that was made, and no sooner.
func TestClose(t *testing.T) {
	t.Parallel()
	l := newLeases()
	g := start(t, l, Config{})
	id := next(t, g)
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if until, want := l.until(leaseKind, 0), madeAt(g, id)+unit; until != want {
		t.Errorf("the lease ends at %d, the last id's time at %d", until, want)
	}
	if _, err := g.Next(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("an id after the end: %v", err)
	}
	if err := g.Ready(t.Context()); !errors.Is(err, ErrEnded) {
		t.Errorf("ready after the end: %v", err)
	}
	calls := l.calls
	if err := g.Close(t.Context()); err != nil || l.calls != calls {
		t.Errorf("closed again: %v, %d calls more", err, l.calls-calls)
	}

	unused := start(t, l, Config{})
	before := l.count(leaseKind)
	if err := unused.Close(t.Context()); err != nil || l.count(leaseKind) != before-1 {
		t.Errorf("without an id made the slot is free at once: %d of %d, %v", l.count(leaseKind), before, err)
	}
}

// TestRenew: a lease that had ended begins anew, for somebody else may have had it.
func TestRenew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ now, from storage.Micros }{{150, 100}, {199, 100}, {200, 200}, {250, 250}} {
		f := &flake{from: 100, until: 200}
		if f.renew(c.now, 300); f.from != c.from || f.until != 300 {
			t.Errorf("at %d it becomes %d to %d", c.now, f.from, f.until)
		}
	}
}

// TestOnAStore takes the leases of real ones, from several gateways at once.
func TestOnAStore(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		onAStore(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db"))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		onAStore(t, "mysql:"+testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0])
	})
}

func onAStore(t *testing.T, location string) {
	t.Helper()
	const gateways = 6
	var mu sync.Mutex
	var all []*Generator
	seen := map[int]bool{}
	var running sync.WaitGroup
	for range gateways {
		store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		running.Go(func() {
			for range 4 {
				g, err := New(t.Context(), store, Config{Lease: 3 * time.Second})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[g.MachineID()] {
					t.Errorf("machine %d twice", g.MachineID())
				}
				seen[g.MachineID()] = true
				all = append(all, g)
				mu.Unlock()
				if _, err := g.Next(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: location})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	machine := 9
	for range 2 { // the second time after the first was closed
		set, err := New(t.Context(), store, Config{MachineID: &machine, Lease: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		next(t, set)
		if _, err := New(t.Context(), store, Config{MachineID: &machine, Wait: 300 * time.Millisecond}); !errors.Is(err, storage.ErrNoLease) {
			t.Errorf("a second gateway of the same machine id: %v", err)
		}
		if err := set.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	for _, g := range all {
		next(t, g)
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func madeAt(g *Generator, id storage.UserID) storage.Micros {
	return storage.MicrosOf(g.flake.maker.ToTime(int64(id)))
}
