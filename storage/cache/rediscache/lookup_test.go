package rediscache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// A value that is read again, by any gateway, is not read from the store.
func TestWhatIsKeptIsNotReadAgain(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2, 3)
	s.write(t, 1, 2, storage.Following)
	s.write(t, 1, 3, storage.Blocking)
	s.write(t, 2, 3, storage.Following)
	s.write(t, 2, 3, storage.None)
	s.write(t, 1, 9, storage.Following) // 9 has counts, but no user
	_, a, b := pair(t, s)
	ids := []storage.UserID{3, 1, 2, 9, 77, 1}
	a.agrees(t, s, ids...)
	a.idle(t)
	calls := s.calls()
	check.That(t, calls == 3, "%d calls fill users and two kinds of lists, want 3", calls)
	for range 3 {
		a.agrees(t, s, ids...)
		b.agrees(t, s, ids...)
		a.idle(t)
		b.idle(t)
	}
	check.That(t, s.calls() == calls, "%d more calls", s.calls()-calls)
	check.Equal(t, "users hit", b.looked("user", "hit"), 3*6)
}

// Asking for a user who does not exist, however often, costs one look-up.
func TestNothingThereIsKept(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	_, a, b := pair(t, s)
	a.profile(t, 404)
	a.list(t, storage.Inverse, whole(404))
	a.idle(t)
	var asking sync.WaitGroup
	for i := range 200 {
		asking.Go(func() {
			p := []*Cache{a, b}[i%2].profile(t, 404)
			check.That(t, !p.Exists && !p.Counted, "%v", p)
			l := []*Cache{a, b}[i%2].list(t, storage.Inverse, whole(404))
			check.That(t, len(l.Edges) == 0 && !l.Long, "%v", l)
		})
	}
	asking.Wait()
	check.That(t, s.profiles.Load() == 1 && s.lists.Load() == 1, "%d look-ups of the user, %d of the list, want 1 each", s.profiles.Load(), s.lists.Load())
}

// A celebrity that is not in any cache is read once by each gateway at most, even if many callers ask eight at once: the memory of
// each gateway joins its callers. One of them stores it.
func TestColdCelebrityIsReadOnce(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	for follower := range 1000 {
		s.write(t, storage.UserID(follower+10), 1, storage.Following)
	}
	servers := []*testenv.RedisServer{testenv.Redis(t)}
	var gateways [8]*localcache.Cache
	for i := range gateways {
		shared := connect(t, s, servers)
		shared.profile(t, 2) // connected
		gateways[i] = localcache.New(localcache.Config{Source: shared, Store: s.Store, Bytes: 1 << 20})
		defer gateways[i].Close()
	}
	var asking sync.WaitGroup
	for i := range 400 {
		asking.Go(func() {
			r := storage.NeighbourLookups[storage.Inverse].Read(t.Context(), gateways[i%8], 1)[0]
			check.That(t, r.Err == nil && len(r.Value) == 1000, "%d followers: %v", len(r.Value), r.Err)
		})
	}
	asking.Wait()
	n := s.lists.Load()
	check.That(t, n >= 1 && n <= 8, "read %d times, want once to eight times", n)
}

// A look-up of what another gateway is filling reads the store, and stores nothing.
func TestNobodyWaitsForAnother(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	_, a, b := pair(t, s)
	b.profile(t, 2)
	held, read := make(chan struct{}), make(chan struct{}, 2)
	s.set(func() { s.after = func() { read <- struct{}{}; <-held } })
	var filling sync.WaitGroup
	filling.Go(func() { a.profile(t, 1) })
	filling.Go(func() { a.list(t, storage.Inverse, whole(1)) })
	<-read
	<-read
	s.set(func() { s.after = nil })
	p, l := b.profile(t, 1), b.list(t, storage.Inverse, whole(1))
	check.That(t, p.Exists && !l.Long, "it has nothing")
	for _, kind := range []string{"user", "follower"} {
		check.Equal(t, kind, b.looked(kind, "busy"), 1)
	}
	close(held)
	filling.Wait()
	a.idle(t)
	check.That(t, a.stores(t, "user", 1) && a.stores(t, "follower", 1), "the first gateway has not filled them")
}

// Queries that ask for more than is kept read the store, and those that ask for less do not.
func TestListsOfDifferentQueries(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2, 3, 4, 5, 6)
	for peer := range storage.UserID(5) {
		s.write(t, 1, peer+2, storage.Following)
	}
	const hour = 3_600_000_000
	s.set(func() { s.time = hour })
	s.write(t, 1, 3, storage.None)
	s.set(func() { s.time = 3 * hour })
	s.write(t, 1, 4, storage.None) // 3 follows are left
	_, a, b := pair(t, s)
	for i, step := range []struct {
		longest int
		ended   storage.Micros
		edges   int
		long    bool
		read    bool
		forgets bool
	}{
		{longest: 3, ended: 2 * hour, edges: 4, read: true},
		{longest: 1000, ended: 4 * hour, edges: 3},
		{longest: 3, ended: 2*hour + 60_000_000, edges: 4}, // the next minute
		{longest: 2, ended: 2 * hour, long: true},
		{longest: 0, ended: 4 * hour, long: true},
		{longest: 3, ended: hour, edges: 5, read: true}, // tombstones that are older than the kept ones
		{longest: 3, ended: 2 * hour, edges: 4},
		{longest: 2, long: true, read: true, forgets: true},
		{longest: 1, long: true},
		{longest: 3, ended: 2 * hour, edges: 4, read: true}, // longer than what is kept
	} {
		if step.forgets {
			err := a.Empty(t.Context())
			_, unknown := b.clock.Now(t.Context())
			must.That(t, err == nil && unknown == nil, "%v %v", err, unknown)
		}
		before := s.lists.Load()
		c := []*Cache{a, b}[i%2]
		list := c.list(t, storage.Forward, storage.ListQuery{Owner: 1, Longest: step.longest, EndedSince: step.ended})
		if len(list.Edges) != step.edges || list.Long != step.long || list.Version != 7 {
			t.Errorf("step %d: %d edges, long %v, version %d", i, len(list.Edges), list.Long, list.Version)
		}
		check.Equal(t, fmt.Sprintf("step %d reads the store", i), s.lists.Load() > before, step.read)
		c.idle(t)
	}
}

// Callers get the error of a failed look-up, and the next one tries again.
func TestFailuresAreNotKept(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	_, a, b := pair(t, s)
	down := errors.New("down")
	s.set(func() { s.fail = down })
	for _, c := range []*Cache{a, b} {
		r := storage.ProfileLookups.Read(t.Context(), c, 1)[0]
		check.That(t, errors.Is(r.Err, down) && !r.Found, "%v", r)
		if r := storage.SnapshotLookups[storage.Forward].Read(t.Context(), c, whole(1))[0]; !errors.Is(r.Err, down) || r.Found {
			t.Error(r)
		}
		c.idle(t)
	}
	check.Equal(t, "leases are still held", b.looked("user", "busy")+b.looked("following", "busy"), 0)
	s.set(func() { s.fail = nil })
	a.agrees(t, s, 1)
	a.idle(t)
	calls := s.calls()
	b.agrees(t, s, 1)
	check.That(t, s.calls() == calls, "it was not kept after the failure")
}

// If a caller gives up, its leases are given back, so that nobody waits for them.
func TestLeavingGivesTheLeasesBack(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1)
	_, a, b := pair(t, s)
	ctx, leave := context.WithCancel(t.Context())
	s.set(func() { s.after = leave })
	r := storage.ProfileLookups.Read(ctx, a, 1)[0]
	check.That(t, errors.Is(r.Err, context.Canceled), "%v", r)
	a.idle(t)
	p := b.profile(t, 1)
	check.That(t, p.Exists && b.looked("user", "busy") <= 0, "%+v, after a wait", p)
	b.idle(t)
	check.That(t, b.stores(t, "user", 1), "the next one has no lease")
}

// Values that are stored together do not expire together, and missing values expire soon.
func TestLifetimesDiffer(t *testing.T) {
	t.Parallel()
	var ids []storage.UserID
	for id := range storage.UserID(200) {
		ids = append(ids, id+1)
	}
	s := newSource(t, ids[:100]...)
	server, a, _ := pair(t, s)
	began := time.Now()
	storage.ProfileLookups.Read(t.Context(), a, ids...)
	a.idle(t)
	client := admin(t, server)
	e := a.epoch(t)
	least, most := map[bool]time.Duration{}, map[bool]time.Duration{}
	for _, id := range ids {
		life, err := client.PTTL(t.Context(), key(e, "user", id)).Result()
		must.OK(t, err)
		there := id <= 100
		if whole := life + time.Since(began); least[there] == 0 || whole < least[there] {
			least[there] = whole
		}
		most[there] = max(most[there], life)
	}
	for there, life := range map[bool]time.Duration{true: 10 * time.Minute, false: time.Minute} {
		if least[there] < life*79/100 || most[there] > life*121/100 || most[there]-least[there] < life*30/100-time.Since(began) {
			t.Errorf("there %v: from %s to %s, want %s ± 20 %%", there, least[there], most[there], life)
		}
	}
}

// A value that cannot be decoded is read from the store.
func TestMalformedValues(t *testing.T) {
	t.Parallel()
	s := newSource(t, 1, 2)
	s.write(t, 1, 2, storage.Following)
	server, a, b := pair(t, s)
	a.agrees(t, s, 1, 2)
	a.idle(t)
	for _, kind := range []string{"user", "following"} {
		must.OK(t, admin(t, server).HSet(t.Context(), key(a.epoch(t), kind, 1), "d"+form, "\xff").Err())
	}
	b.agrees(t, s, 1, 2)
	check.That(t, b.looked("user", "unfit") == 1 && b.looked("following", "unfit") == 1, "they were decoded")
}
