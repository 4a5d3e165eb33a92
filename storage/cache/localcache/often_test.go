package localcache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
		if _, isLong := get[*long](c, k); !isLong {
			t.Fatalf("asked for %d times after the first, the list is read", n+1)
		}
		c.building.Unlock()
	}
	ask()
	c.building.Lock()
	defer c.building.Unlock()
	if _, isRead := get[*list](c, k); !isRead {
		t.Error("asked for often, the list is not read")
	}
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
	for range often + 1 {
		ask()
	}
	until := ask()
	if until.IsZero() || reads.whole != 1 {
		t.Fatalf("it lives until %v and was read %d times", until, reads.whole)
	}
	now = until.Add(-keep / 5)
	if ask() != until || reads.whole != 1 {
		t.Error("it is renewed long before its end")
	}
	now, reads.failing = until.Add(-keep/10+time.Second), true
	for range 5 {
		if ask() != until {
			t.Error("a list that could not be read again is not there any more")
		}
	}
	if reads.whole != 2 {
		t.Errorf("it was tried %d times, want once", reads.whole-1)
	}
	now, reads.failing = now.Add(2*renewPause), false
	ask()
	if later := ask(); !later.After(until) || reads.whole != 3 {
		t.Errorf("it lives until %v, before %v, and was read %d times", later, until, reads.whole)
	}
	for range 5 {
		ask()
	}
	if reads.whole != 3 {
		t.Errorf("it was read %d times", reads.whole)
	}
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
		for range often + 1 {
			asked(t, c)
		}
		want := 2
		if err != nil {
			want = 1
		}
		for range 10 {
			if there := asked(t, c) != nil; there != (err == nil) || reads.whole != want {
				t.Fatalf("a list that %s is there: %v, and was read %d times", name, there, reads.whole)
			}
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
			if err := ask(); err != nil {
				t.Errorf("whoever asks meanwhile waits: %v", err)
			}
		}
		if err := ask(); err != nil { // the list is read now
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if _, kept := get[*list](c, key{kind: inverseKind, id: 1}); !kept {
			t.Error("the list is not kept")
		}
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
	for range often + 1 {
		asked(t, c)
	}
	c.Apply(t.Context(), storage.Change{Rows: []storage.Row{row}}, false)
	if l := asked(t, c); l == nil || !l.follows.Peers.Contains(row.Edge.From) {
		t.Error("the list lacks a follower who was seen while it was read")
	}
}

// A long list that has not changed is not read again for an hour, whether it is asked for all the time or not for half of that:
// the version of its owner's counts says so. A list that has changed, of which no event has told, is not there any more.
func TestALongListThatHasNotChangedIsKept(t *testing.T) {
	reads, now := newReads(t), time.Unix(1000, 0)
	c := New(Config{Store: reads.store, Bytes: 64 << 20, Now: func() time.Time { return now }})
	defer c.Close()
	k := key{kind: inverseKind, id: 1}
	ask := func() bool { return asked(t, c) != nil }
	for range often + 1 {
		ask()
	}
	for range 20 { // often in its last minute, and beyond its end
		now = now.Add(time.Minute)
		storage.UserLookups.Read(t.Context(), c, 1)
		if !ask() {
			t.Fatalf("after %s the list is not there", now.Sub(time.Unix(1000, 0)))
		}
	}
	now = now.Add(20 * time.Minute)
	if _, known := get[*list](c, k); known {
		t.Error("a list that has ended is used without a look at the counts")
	}
	ask()
	if !ask() || reads.whole != 1 {
		t.Errorf("a list that has not changed is read %d times", reads.whole)
	}
	one := []storage.Edge{{From: 9000, To: 1, Type: storage.Following, UpdateTime: 9000}}
	reads.store.Apply(t.Context(), storage.Inverse, one, storage.IfNewer)
	now = now.Add(keep)
	if ask() {
		t.Error("a list that has changed is there after its ten minutes")
	}
	now = now.Add(keep)
	for range often + 1 {
		ask()
	}
	now = now.Add(keepUnchanged)
	if ask() || reads.whole != 2 {
		t.Errorf("a list that has not changed is there after an hour, and was read %d times", reads.whole)
	}
}

// A list that has ended does not answer for the read that replaces it: who expects a row makes that read begin again.
func TestAnEndedListIsNotWhatIsExpected(t *testing.T) {
	reads, now := newReads(t), time.Unix(1000, 0)
	c := New(Config{Store: reads.store, Bytes: 64 << 20, Now: func() time.Time { return now }})
	defer c.Close()
	for range often + 1 {
		asked(t, c)
	}
	known := storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 2, To: 1, Type: storage.Following, UpdateTime: 1}}
	for _, ended := range []bool{false, true} {
		k := key{kind: inverseKind, id: 1}
		one, _ := c.lists[storage.Inverse].begin(k)
		c.RequireRows([]storage.Row{known})
		if one.missed != ended {
			t.Errorf("ended %v: the read is given up: %v", ended, one.missed)
		}
		c.lists[storage.Inverse].leave(k, one)
		now = now.Add(keep)
	}
}
