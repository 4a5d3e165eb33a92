package localcache

import (
	"context"
	"sync/atomic"
	"time"

	"kith/storage"
	"kith/storage/idset"
)

// asked counts how often a long list has been asked for.
type asked struct {
	times    atomic.Int32
	building atomic.Bool
}

// often is how often a long list has to be asked for, while the cache remembers it, to be
// worth reading whole.
const often = 3

// fetchLists returns the lists of owners. Not Found are those that are too long.
func (c *Cache) fetchLists(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[*list] {
	floor := c.endedSince()
	known := func(k key) (storage.Result[*list], bool) { return c.knownList(ctx, side, k) }
	read := func(ctx context.Context, owners []storage.UserID) []storage.Result[*list] {
		return c.readLists(ctx, c.source, side, owners, c.longest, floor)
	}
	return fetch(ctx, c, &c.lists[side], source[*list]{listKind(side), known, read, c.keepList}, owners)
}

// knownList is what the cache knows of a list. A long one is begun to be read when it is
// asked for often.
func (c *Cache) knownList(ctx context.Context, side storage.Side, k key) (r storage.Result[*list], ok bool) {
	e, there := c.entries.GetIfPresent(k)
	if !there {
		return r, false
	}
	switch e := e.(type) {
	case *list:
		r.Value, r.Found = e, true
	case *long:
		if e.asked.times.Add(1) >= often && !e.asked.building.Load() {
			c.build(ctx, side, k, e.asked)
		}
	}
	return r, true
}

// endedSince is from when on tombstones are read. It is the same for a minute, so that
// all who ask for a list below ask for the same.
func (c *Cache) endedSince() storage.Micros {
	const minute = 60_000_000
	return storage.MicrosOf(c.now())/minute*minute - endedKept
}

func (c *Cache) readLists(ctx context.Context, from storage.Snapshots, side storage.Side, owners []storage.UserID, longest int, floor storage.Micros) []storage.Result[*list] {
	queries := make([]storage.ListQuery, len(owners))
	for i, owner := range owners {
		queries[i] = storage.ListQuery{Owner: owner, Longest: longest, EndedSince: floor}
	}
	results := make([]storage.Result[*list], len(owners))
	for i, r := range from.Lists(ctx, side, queries) {
		if results[i].Err = r.Err; r.Err == nil && !r.Value.Long {
			results[i].Value, results[i].Found = c.makeList(side, r.Value, floor), true
		}
	}
	return results
}

// keepList puts a list that was read into the cache, with the rows that came meanwhile.
func (c *Cache) keepList(k key, r storage.Result[*list], late []storage.Edge) storage.Result[*list] {
	if !r.Found {
		c.entries.Set(k, &long{c.lives(keepLong), &asked{}})
		return r
	}
	now := storage.MicrosOf(c.now())
	for _, e := range late {
		if v, _, _ := r.Value.judge(e); v == uncertain {
			return r
		}
		r.Value = r.Value.with(e, now)
	}
	c.entries.Set(k, r.Value)
	return r
}

// build reads a long list in the background, one at a time: nobody waits for it.
func (c *Cache) build(ctx context.Context, side storage.Side, k key, a *asked) {
	if !c.building.TryLock() {
		return
	}
	a.building.Store(true)
	one, mine := c.lists[side].begin(c, k)
	if !mine {
		c.building.Unlock()
		a.building.Store(false)
		return
	}
	reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), buildTime)
	go func() {
		defer c.building.Unlock()
		defer cancel()
		r := storage.Result[*list]{Err: errFill}
		defer func() { c.packInStore(reading, side, k.id, r) }() // when the list is there
		began := time.Now()
		defer func() {
			c.lists[side].end(c, k, one, r, func(r storage.Result[*list], late []storage.Edge) storage.Result[*list] {
				if !r.Found {
					return r // too long for good: what is known of it stays
				}
				return c.keepList(k, r, late)
			})
			if !r.Found {
				a.times.Store(-rebuildAfter)
			}
			a.building.Store(false)
		}()
		r = c.readLists(reading, c.below, side, []storage.UserID{k.id}, c.packed, c.endedSince())[0]
		c.metrics.built.Observe(time.Since(began).Seconds())
	}()
}

// packInStore has a long list that was read packed in the store, so that whoever reads it
// next, here or elsewhere, has it sooner; also one that could not be read in time. If that
// fails it is rows that are read again.
func (c *Cache) packInStore(ctx context.Context, side storage.Side, owner storage.UserID, r storage.Result[*list]) {
	tooLong := !r.Found && r.Err == nil
	if c.packer == nil || tooLong {
		return
	}
	if err := c.packer.Pack(ctx, side, owner); err != nil {
		c.metrics.unpacked.Inc()
	}
}

const (
	// buildTime bounds reading a long list, and packing it.
	buildTime = time.Minute
	// rebuildAfter is how many times a list that is too long, or could not be read, is asked
	// for until that is tried again.
	rebuildAfter = 10_000
)

// sets answers which of the lists the cache keeps.
func (c *Cache) sets(ctx context.Context, side storage.Side, l *storage.Lookup[storage.UserID, storage.Set]) {
	l.Results = make([]storage.Result[storage.Set], len(l.Keys))
	dir := c.directory.Load()
	for i, r := range c.fetchLists(ctx, side, l.Keys) {
		l.Results[i].Err = r.Err
		if r.Found {
			l.Results[i] = r.Value.set(dir)
		}
	}
}

// set is the list, unless it is numbered by another directory: it was read as that was renewed.
func (l *list) set(dir *idset.Directory) storage.Result[storage.Set] {
	if l.follows.Peers.In(dir) != l.follows.Peers {
		return storage.Result[storage.Set]{}
	}
	return storage.Result[storage.Set]{Value: &l.follows, Found: true}
}
