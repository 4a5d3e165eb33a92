package localcache

import (
	"context"
	"sync/atomic"
	"time"

	"kith/storage"
	"kith/storage/cache/idset"
)

// often is how often a long list has to be asked for, while the cache remembers that, before it is
// read whole.
const often = 3

// fetchLists returns the lists of owners. Lists that are too long are not Found.
func (c *Cache) fetchLists(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[*list] {
	return c.listsBy(ctx, side, c.renewOrRead).fetch(ctx, owners)
}

// listsBy is the lists of one side. read reads those that are not known, with tombstones since a time.
func (c *Cache) listsBy(
	ctx context.Context, side storage.Side, read func(context.Context, storage.Side, []storage.UserID, storage.Micros) []storage.Result[*list],
) *source[storage.UserID, *list] {
	floor := c.endedSince()
	return &source[storage.UserID, *list]{
		fills: &c.lists[side],
		c:     c,
		kind:  listKind(side),
		key:   func(owner storage.UserID) key { return key{kind: listKind(side), id: owner} },
		known: func(k key, r *storage.Result[*list]) bool { return c.knownList(ctx, side, k, r) },
		read: func(ctx context.Context, owners []storage.UserID) []storage.Result[*list] {
			return read(ctx, side, owners, floor)
		},
		keep: c.keepList,
	}
}

// renewOrRead reads lists, except those that have ended and are still as they are in the store: of these, only the owners'
// counts are read, which the same requests mostly need as well.
func (c *Cache) renewOrRead(ctx context.Context, side storage.Side, owners []storage.UserID, floor storage.Micros) []storage.Result[*list] {
	read := func(ctx context.Context, owners []storage.UserID) []storage.Result[*list] {
		return c.readLists(ctx, c.source, side, owners, c.longest, floor)
	}
	var doubted []storage.UserID
	for _, owner := range owners {
		e, _ := c.look(key{kind: listKind(side), id: owner})
		if l, isList := e.(*list); isList && l.mayBeRight(c.now().UnixMicro()) {
			doubted = append(doubted, owner)
		}
	}
	if len(doubted) == 0 {
		return read(ctx, owners)
	}
	c.profiles.fetch(ctx, doubted)
	return knownOr(ctx, owners, func(owner storage.UserID, r *storage.Result[*list]) bool {
		if r.Value, r.Found = get[*list](c, key{kind: listKind(side), id: owner}); r.Found {
			c.metrics.renewed.Inc()
		}
		return r.Found
	}, read)
}

// knownList returns what the cache knows of a list. If a long list is asked for often, the cache
// begins to read it.
func (c *Cache) knownList(ctx context.Context, side storage.Side, k key, r *storage.Result[*list]) bool {
	e, there := c.find(k)
	switch e := e.(type) {
	case *list:
		r.Value, r.Found = e, true
	case *long:
		if e.asked.Add(1) >= often {
			c.build(ctx, side, k, e.asked)
		}
	}
	return there
}

// endedSince is the time since which tombstones are read. It stays the same for a minute, so that
// all who ask the source for a list ask for the same.
func (c *Cache) endedSince() storage.Micros {
	const minute = 60_000_000
	return storage.MicrosOf(c.clock())/minute*minute - endedKept
}

func (c *Cache) readLists(ctx context.Context, from storage.Bundler, side storage.Side, owners []storage.UserID, longest int, floor storage.Micros) []storage.Result[*list] {
	queries := storage.Each(owners, func(owner storage.UserID) storage.ListQuery {
		return storage.ListQuery{Owner: owner, Longest: longest, EndedSince: floor}
	})
	results := make([]storage.Result[*list], len(owners))
	for i, r := range storage.SnapshotLookups[side].Read(ctx, from, queries...) {
		if results[i].Err = r.Err; r.Err == nil && !r.Value.Long {
			results[i].Value, results[i].Found = c.makeList(side, r.Value, floor), true
		}
	}
	return results
}

// keepList is the [keeper] of lists.
func (c *Cache) keepList(k key, r storage.Result[*list], late []storage.Edge, may bool) storage.Result[*list] {
	if !r.Found {
		if may {
			c.set(k, &long{c.lives(keep), new(atomic.Int32)})
		}
		return r
	}
	now := storage.MicrosOf(c.clock())
	for _, e := range late {
		if v, _, _ := r.Value.compareRow(e); v == uncertain {
			may = false
			continue
		}
		r.Value = r.Value.with(e, now)
	}
	if may {
		c.set(k, r.Value)
	}
	return r
}

// build reads a long list in the background, one at a time; callers do not wait for it.
func (c *Cache) build(ctx context.Context, side storage.Side, k key, asked *atomic.Int32) {
	if c.building.TryLock() {
		c.background.start(func() {
			defer c.building.Unlock()
			c.readLong(ctx, side, k, asked)
		})
	}
}

// readLong reads a long list and keeps it, in buildTime at most. Then the store packs the list, so that the next reader, here or
// elsewhere, gets it sooner. A list whose rows cannot be read in time is packed first. Its caller holds c.building.
func (c *Cache) readLong(ctx context.Context, side storage.Side, k key, asked *atomic.Int32) {
	one, mine := c.lists[side].begin(k)
	if !mine {
		return
	}
	if _, isLong := get[*long](c, k); isLong {
		c.set(k, &long{c.lives(keep), asked}) // who asks for it meanwhile should not wait for this read
	}
	ctx, cancel := c.background.onBehalfOf(ctx, buildTime)
	defer cancel()
	r := storage.Result[*list]{Err: errFill}
	defer func() {
		if r.Found {
			c.packInStore(ctx, side, k.id)
		}
	}()
	began := time.Now()
	defer func() {
		c.lists[side].end(c, k, one, r, func(k key, r storage.Result[*list], late []storage.Edge, may bool) storage.Result[*list] {
			return c.keepList(k, r, late, may && r.Found) // if it is too long to be kept, what is known of it stays
		})
		if !r.Found {
			asked.Store(-rebuildAfter)
			c.renewAfter.Store(c.now().Add(renewPause).UnixMicro())
		}
	}()
	read := func() storage.Result[*list] {
		return c.readLists(ctx, c.store, side, []storage.UserID{k.id}, c.packed, c.endedSince())[0]
	}
	if r = read(); r.Err != nil && c.packInStore(ctx, side, k.id) {
		r = read()
	}
	c.metrics.built.Observe(time.Since(began).Seconds())
}

// packInStore packs a long list in the store, unless it is packed, and reports whether that has worked. If it fails, the next
// reader reads rows again.
func (c *Cache) packInStore(ctx context.Context, side storage.Side, owner storage.UserID) bool {
	if c.packer == nil {
		return false
	}
	err := c.packer.Pack(ctx, side, owner)
	if err != nil {
		c.metrics.unpacked.Inc()
	}
	return err == nil
}

const (
	// buildTime bounds reading a long list, and packing it.
	buildTime = time.Minute
	// rebuildAfter is how many times a list that is too long, or could not be read, is asked for
	// before it is tried again.
	rebuildAfter = 10_000
	// renewPause is how long no list is renewed after one could not be.
	renewPause = time.Second
)

// readSets answers with those lists that the cache keeps.
func (c *Cache) readSets(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[*idset.List] {
	dir := c.directory.Load()
	return storage.Each(c.fetchLists(ctx, side, owners), func(r storage.Result[*list]) storage.Result[*idset.List] {
		if r.Found {
			return r.Value.set(dir)
		}
		return storage.Result[*idset.List]{Err: r.Err}
	})
}

// set returns the list, unless another directory numbers it: then it was read while the directory
// was renewed.
func (l *list) set(dir *idset.Directory) storage.Result[*idset.List] {
	if l.follows.Peers.In(dir) != l.follows.Peers {
		return storage.Result[*idset.List]{}
	}
	return storage.Result[*idset.List]{Value: &l.follows, Found: true}
}
