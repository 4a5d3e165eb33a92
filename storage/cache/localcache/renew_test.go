package localcache_test

import (
	"testing"
	"time"

	"kith/internal/storagetest/double"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// renewing is a cache with a clock, in front of a store that counts.
type renewing struct {
	*localcache.Cache
	store *double.Store
	reads *reads
	now   time.Time
}

func newRenewing(t *testing.T) *renewing {
	t.Helper()
	r := &renewing{now: time.UnixMicro(0)}
	r.store, r.reads = counted()
	people(t, r.store, 3)
	followers(t, r.store, 2)
	r.Cache = localcache.New(localcache.Config{Store: r.store, Bytes: 1 << 20, Now: func() time.Time { return r.now }})
	t.Cleanup(r.Close)
	return r
}

// page asks for the followers of user 1, and returns how many lists and how many other values had to be read.
func (r *renewing) page(t *testing.T, want int) (lists, others int64) {
	t.Helper()
	before, all := r.reads.lists.Load(), r.reads.calls.Load()
	page := storage.PageLookups[storage.Inverse].Read(t.Context(), r, storage.PageQuery{Owner: 1, Limit: 5})[0]
	if page.Err != nil || len(page.Value) != want {
		t.Errorf("%+v, want %d followers", page, want)
	}
	lists = r.reads.lists.Load() - before
	return lists, r.reads.calls.Load() - all - lists
}

// A list that has not changed is not read again after its ten minutes. Instead the counts of its owner are read, which
// say that it has not changed. After an hour the list is read again.
func TestAListThatHasNotChangedIsRenewed(t *testing.T) {
	c := newRenewing(t)
	if lists, _ := c.page(t, 2); lists != 1 {
		t.Fatalf("%d lists are read at first", lists)
	}
	for range 4 {
		c.now = c.now.Add(10*time.Minute + time.Second)
		if lists, others := c.page(t, 2); lists != 0 || others != 1 {
			t.Errorf("after %s %d lists are read and %d counts", c.now, lists, others)
		}
		if lists, others := c.page(t, 2); lists+others != 0 {
			t.Errorf("right after that %d lists are read and %d counts", lists, others)
		}
	}
	c.now = c.now.Add(20 * time.Minute)
	if lists, _ := c.page(t, 2); lists != 1 {
		t.Errorf("after an hour %d lists are read", lists)
	}
}

// If no event has told the cache of a change, the change is still seen after ten minutes.
func TestAListThatHasChangedIsNotRenewed(t *testing.T) {
	for _, keptUser := range []bool{false, true} {
		c := newRenewing(t)
		c.page(t, 2)
		c.now = c.now.Add(5 * time.Minute)
		if keptUser { // with counts from before the change
			storage.UserLookups.Read(t.Context(), c, 1)
		}
		one := []storage.Edge{{From: 9, To: 1, Type: storage.Following, UpdateTime: 99}}
		c.store.Apply(t.Context(), storage.Inverse, one, storage.IfNewer)
		c.now = c.now.Add(5*time.Minute + time.Second)
		if !keptUser {
			c.page(t, 3)
		}
		c.now = c.now.Add(5 * time.Minute)
		c.page(t, 3)
	}
}

// A list that was changed in place has no version, and is read again.
func TestAListThatWasChangedInPlaceIsNotRenewed(t *testing.T) {
	c := newRenewing(t)
	c.page(t, 2)
	one := []storage.Edge{{From: 9, To: 1, Type: storage.Following, UpdateTime: 99}}
	c.store.Apply(t.Context(), storage.Inverse, one, storage.IfNewer)
	c.Apply(t.Context(), localcache.ChangedRows(storage.Row{Side: storage.Inverse, Edge: one[0]}), true)
	if lists, _ := c.page(t, 3); lists != 0 {
		t.Errorf("%d lists are read after the change", lists)
	}
	c.now = c.now.Add(10*time.Minute + time.Second)
	if lists, _ := c.page(t, 3); lists != 1 {
		t.Errorf("%d lists are read after ten minutes", lists)
	}
}

// A user who is not there is looked for again after a minute, one who is there after ten.
func TestAnAbsentUserIsSoonLookedForAgain(t *testing.T) {
	c := newRenewing(t)
	reads := func(ids ...storage.UserID) int64 {
		before := c.reads.calls.Load()
		storage.UserLookups.Read(t.Context(), c, ids...)
		return c.reads.calls.Load() - before
	}
	reads(1, 99)
	for _, test := range []struct {
		after time.Duration
		want  int64
	}{{30 * time.Second, 0}, {31 * time.Second, 1}, {30 * time.Second, 0}} {
		c.now = c.now.Add(test.after)
		if got := reads(1, 99); got != test.want {
			t.Errorf("%s later users are read %d times", test.after, got)
		}
	}
	c.now = time.UnixMicro(0).Add(7 * time.Minute)
	if n := reads(1); n != 0 {
		t.Errorf("a user is read again after %s", c.now.Sub(time.UnixMicro(0)))
	}
	c.now = c.now.Add(4 * time.Minute)
	if n := reads(1); n != 1 {
		t.Errorf("after more than ten minutes a user is read %d times", n)
	}
}
