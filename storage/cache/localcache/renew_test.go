package localcache_test

import (
	"fmt"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
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
	check.That(t, page.Err == nil && len(page.Value) == want, "%+v, want %d followers", page, want)
	lists = r.reads.lists.Load() - before
	return lists, r.reads.calls.Load() - all - lists
}

// A list that has not changed is not read again after its ten minutes. Instead the counts of its owner are read, which
// say that it has not changed. After an hour the list is read again.
func TestAListThatHasNotChangedIsRenewed(t *testing.T) {
	c := newRenewing(t)
	lists, _ := c.page(t, 2)
	must.Equal(t, "lists that are read at first", lists, 1)
	for range 4 {
		c.now = c.now.Add(10*time.Minute + time.Second)
		lists, others := c.page(t, 2)
		check.That(t, lists == 0 && others == 1, "after %s %d lists are read and %d counts", c.now, lists, others)
		lists, others = c.page(t, 2)
		check.That(t, lists+others == 0, "right after that %d lists are read and %d counts", lists, others)
	}
	c.now = c.now.Add(20 * time.Minute)
	lists, _ = c.page(t, 2)
	check.Equal(t, "lists that are read after an hour", lists, 1)
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
	lists, _ := c.page(t, 3)
	check.Equal(t, "lists that are read after the change", lists, 0)
	c.now = c.now.Add(10*time.Minute + time.Second)
	lists, _ = c.page(t, 3)
	check.Equal(t, "lists that are read after ten minutes", lists, 1)
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
		check.Equal(t, fmt.Sprintf("reads of users %s later", test.after), reads(1, 99), test.want)
	}
	c.now = time.UnixMicro(0).Add(7 * time.Minute)
	check.Equal(t, "reads of a user after seven minutes", reads(1), 0)
	c.now = c.now.Add(4 * time.Minute)
	check.Equal(t, "reads of a user after more than ten minutes", reads(1), 1)
}
