package localcache

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// followedByMany makes a long list of user 1's followers.
func followedByMany(t *testing.T, store storage.Store) {
	t.Helper()
	must.OK(t, store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "u1", Name: "somebody"}})[0].Err)
	edges := make([]storage.Edge, shortList+1)
	for i := range edges {
		edges[i] = storage.Edge{From: storage.UserID(i + 2), To: 1, Type: storage.Following, UpdateTime: storage.Micros(i + 1)}
	}
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
}

// asked asks for user 1's followers, waits for a read that begins then, and returns the list if it is kept.
func asked(t *testing.T, c *Cache) *list {
	t.Helper()
	storage.PageLookups[storage.Inverse].Read(t.Context(), c, storage.PageQuery{Owner: 1, Limit: 3})
	c.building.Lock()
	defer c.building.Unlock()
	l, _ := get[*list](c, key{kind: inverseKind, id: 1})
	return l
}

// askOften asks until a long list is read.
func askOften(t *testing.T, c *Cache) {
	t.Helper()
	for range often + 1 {
		asked(t, c)
	}
}

// kept reports whether a cache has a value of some form.
func kept[E entry](c *Cache, k key) bool {
	_, ok := get[E](c, k)
	return ok
}

// A long list is not read before it has been asked for often.
func TestALongListIsNotReadTooSoon(t *testing.T) {
	store := oracle.New()
	followedByMany(t, store)
	c := New(Config{Store: store, Bytes: 64 << 20})
	defer c.Close()
	ask := func() {
		storage.PageLookups[storage.Inverse].Read(t.Context(), c, storage.PageQuery{Owner: 1, Limit: 3})
	}
	ask() // now the list is known to be long
	k := key{kind: inverseKind, id: 1}
	for n := range often - 1 {
		ask()
		c.building.Lock() // waits for a read that should not be running
		must.That(t, kept[*long](c, k), "asked for %d times after the first, the list is read", n+1)
		c.building.Unlock()
	}
	ask()
	c.building.Lock()
	defer c.building.Unlock()
	check.That(t, kept[*list](c, k), "asked for often, the list is not read")
}

// readsOf counts how often a long list is read whole from a store, and can fail.
type readsOf struct {
	store   *double.Store
	whole   int
	failing bool
}

func newReads(t *testing.T) *readsOf {
	t.Helper()
	r := &readsOf{store: double.Of(oracle.New())}
	followedByMany(t, r.store)
	double.Before(r.store, func(_ context.Context, queries []storage.ListQuery) error {
		if queries[0].Longest > shortList {
			if r.whole++; r.failing {
				return errors.New("no connection")
			}
		}
		return nil
	}, storage.SnapshotLookups...)
	return r
}

// A long list that is asked for near the end of its life is read again before it is over, once, and meanwhile answered as it is. If
// that fails, it is tried again, but not at once.
func TestALongListIsRenewedInTime(t *testing.T) {
	reads, now := newReads(t), time.Unix(1000, 0)
	c := New(Config{Store: reads.store, Bytes: 64 << 20, Now: func() time.Time { return now }})
	defer c.Close()
	ask := func() (until time.Time) {
		if l := asked(t, c); l != nil {
			return l.until
		}
		return time.Time{}
	}
	askOften(t, c)
	until := ask()
	must.That(t, !until.IsZero() && reads.whole == 1, "it lives until %v and was read %d times", until, reads.whole)
	now = until.Add(-keep / 5)
	check.That(t, ask() == until && reads.whole == 1, "it is renewed long before its end")
	now, reads.failing = until.Add(-keep/10+time.Second), true
	for range 5 {
		check.Equal(t, "the end of a list that could not be read again", ask(), until)
	}
	check.Equal(t, "the reads, with the one that failed", reads.whole, 2)
	now, reads.failing = now.Add(2*renewPause), false
	ask()
	later := ask()
	check.That(t, later.After(until) && reads.whole == 3, "it lives until %v, before %v, and was read %d times", later, until, reads.whole)
	for range 5 {
		ask()
	}
	check.Equal(t, "the reads in the end", reads.whole, 3)
}

// packing is the packing of a store whose long lists can only be read once they are packed.
type packing struct {
	*readsOf
	err   error
	while func()
}

func (p *packing) Pack(context.Context, storage.Side, storage.UserID) error {
	if p.while != nil {
		p.while()
	}
	p.failing = p.err != nil
	return p.err
}

// A long list whose rows cannot be read in time is read as soon as it is packed. If it cannot be packed either, it is not tried again soon.
func TestALongListThatCannotBeReadIsPackedFirst(t *testing.T) {
	for name, err := range map[string]error{"can be packed": nil, "cannot be packed": errors.New("the store is read-only")} {
		reads := newReads(t)
		reads.failing = true
		c := New(Config{Store: reads.store, Packer: &packing{readsOf: reads, err: err}, Bytes: 64 << 20})
		defer c.Close()
		askOften(t, c)
		want := 2
		if err != nil {
			want = 1
		}
		for range 10 {
			there := asked(t, c) != nil
			must.That(t, there == (err == nil) && reads.whole == want, "a list that %s is there: %v, and was read %d times", name, there, reads.whole)
		}
	}
}

// Nobody waits for a long list that is being read, also if that began just before what is known of the list ended.
func TestALongListIsKnownWhileItIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &packing{readsOf: newReads(t)}
		p.failing = true
		c := New(Config{Store: p.store, Packer: p, Bytes: 64 << 20})
		defer c.Close()
		ask := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			return storage.PageLookups[storage.Inverse].Read(ctx, c, storage.PageQuery{Owner: 1, Limit: 3})[0].Err
		}
		for range often {
			must.OK(t, ask())
		}
		known, _ := get[*long](c, key{kind: inverseKind, id: 1})
		time.Sleep(time.Until(known.until) - time.Second)
		p.while = func() {
			time.Sleep(2 * time.Second)
			check.Is(t, "whoever asks meanwhile", ask(), nil)
		}
		must.OK(t, ask()) // the list is read now
		time.Sleep(10 * time.Second)
		check.That(t, kept[*list](c, key{kind: inverseKind, id: 1}), "the list is not kept")
	})
}

// A row that was seen in the store while a long list was being read is on the list: its event says nothing new.
func TestALongListHasWhatWasSeenWhileItWasRead(t *testing.T) {
	row := storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 9000, To: 1, Type: storage.Following, UpdateTime: storage.MicrosOf(time.Now())}}
	store := newReads(t).store
	c := New(Config{Store: store, Bytes: 64 << 20})
	defer c.Close()
	double.After(store, func(_ storage.Side, queries []storage.ListQuery, _ []storage.Result[storage.List]) {
		if queries[0].Longest > shortList {
			store.Apply(t.Context(), storage.Inverse, []storage.Edge{row.Edge}, storage.IfNewer)
			c.RequireRows([]storage.Row{row})
		}
	}, storage.SnapshotLookups...)
	askOften(t, c)
	c.Apply(t.Context(), storage.Change{Rows: []storage.Row{row}}, false)
	l := asked(t, c)
	check.That(t, l != nil && l.follows.Peers.Contains(row.Edge.From), "the list lacks a follower who was seen while it was read")
}

// A long list that has not changed is not read again for an hour, whether it is asked for all the time or not for half of that:
// the version of its owner's counts says so. A list that has changed, of which no event has told, is not there any more.
func TestALongListThatHasNotChangedIsKept(t *testing.T) {
	reads, now := newReads(t), time.Unix(1000, 0)
	c := New(Config{Store: reads.store, Bytes: 64 << 20, Now: func() time.Time { return now }})
	defer c.Close()
	k := key{kind: inverseKind, id: 1}
	ask := func() bool { return asked(t, c) != nil }
	askOften(t, c)
	for range 20 { // often in its last minute, and beyond its end
		now = now.Add(time.Minute)
		storage.UserLookups.Read(t.Context(), c, 1)
		must.That(t, ask(), "after %s the list is not there", now.Sub(time.Unix(1000, 0)))
	}
	now = now.Add(20 * time.Minute)
	check.That(t, !kept[*list](c, k), "a list that has ended is used without a look at the counts")
	ask()
	check.That(t, ask() && reads.whole == 1, "a list that has not changed is read %d times", reads.whole)
	one := []storage.Edge{{From: 9000, To: 1, Type: storage.Following, UpdateTime: 9000}}
	reads.store.Apply(t.Context(), storage.Inverse, one, storage.IfNewer)
	now = now.Add(keep)
	check.That(t, !ask(), "a list that has changed is there after its ten minutes")
	now = now.Add(keep)
	askOften(t, c)
	now = now.Add(keepUnchanged)
	check.That(t, !ask() && reads.whole == 2, "a list that has not changed is there after an hour, and was read %d times", reads.whole)
}

// A list that has ended does not answer for the read that replaces it: who expects a row makes that read begin again.
func TestAnEndedListIsNotWhatIsExpected(t *testing.T) {
	reads, now := newReads(t), time.Unix(1000, 0)
	c := New(Config{Store: reads.store, Bytes: 64 << 20, Now: func() time.Time { return now }})
	defer c.Close()
	askOften(t, c)
	known := storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 2, To: 1, Type: storage.Following, UpdateTime: 1}}
	for _, ended := range []bool{false, true} {
		k := key{kind: inverseKind, id: 1}
		one, _ := c.lists[storage.Inverse].begin(k)
		c.RequireRows([]storage.Row{known})
		check.Equal(t, fmt.Sprintf("the read is given up, where ended is %t", ended), one.missed, ended)
		c.lists[storage.Inverse].leave(k, one)
		now = now.Add(keep)
	}
}
