package localcache

import (
	"context"
	"errors"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"

	"kith/storage"
	"kith/storage/events"
)

// errFill is the error of a read that ended without a result.
var errFill = errors.New("the read that others waited for has failed")

// Apply applies a change: rows, and the counts and profiles of users, as far as they are at hand. It forgets what else has changed. A change
// of this process's own is applied after the commit and before the writer is answered.
func (c *Cache) Apply(ctx context.Context, w storage.Change, own bool) {
	if w.Gap {
		c.Forget()
	}
	if c.IsOn() {
		for _, u := range w.Users {
			c.applyUser(u)
		}
		var doubtful [2][]storage.Edge // by side
		for _, r := range w.Rows {
			if own || !c.reported.has(r) { // it may have come in another way
				if !c.applyRow(r, own) {
					doubtful[r.Side] = append(doubtful[r.Side], r.Edge)
				}
			}
		}
		for _, p := range w.Posts {
			c.forgetPost(p.PostID)
		}
		for side, edges := range doubtful {
			if len(edges) > 0 {
				c.compare(ctx, storage.Side(side), edges)
			}
		}
	}
	c.reported.add(own, w.Rows...) // after they have been applied
}

// applyRow returns false if the row has to be compared with the table first.
func (c *Cache) applyRow(r storage.Row, fresh bool) (sure bool) {
	if r.Side.Truth() != storage.Forward {
		c.forgetPostOf(r.Side, r.Edge)
		return true
	}
	c.forgetBlocks(r.Side.Owner(r.Edge.Pair()), r.Edge)
	sure = c.change(r.Side, r.Edge, fresh)
	c.forgetRecommender(r.Side, r.Edge) // not before: it may be made of the list
	return sure
}

// applyUser gives a user the counts that a change has left, and the profile if that is at hand. It forgets the user if the
// counts are not known, or if something else may have changed since the user was read.
func (c *Cache) applyUser(u storage.UserChange) {
	if u.What.Has(storage.Missed) {
		c.reported.rows.Purge() // a row may come back as it was
		for k := range postKind {
			c.forget(key{kind: k, id: u.User})
		}
		c.forgetPost(storage.PostID{Author: u.User})
	}
	if !c.hasVersion(u.User, u.Counts.Version) {
		c.recount(u)
	}
	if u.What.Has(storage.Whole | storage.Standing | storage.Missed) {
		c.forget(recommenderKey(u.User)) // it may have been read before the profile
		c.names.Add(1)
	}
}

func (c *Cache) recount(change storage.UserChange) {
	k := profileKey(change.User)
	lock := c.stripe(k)
	lock.Lock()
	defer lock.Unlock()
	c.profiles.abandon(k)
	known, there := c.look(k)
	if !there {
		return
	}
	kept := known.(*said)
	p := kept.profile(change.User)
	switch {
	case change.Counts.Version == 0:
		c.drop(k)
	case change.Profile != nil && p.Counts.Version < change.Counts.Version:
		c.set(k, profiles.said(found(storage.Profile{User: *change.Profile, Exists: true, Counts: change.Counts, Counted: true}), c.lives(keep)))
	case !p.Counted || p.Counts.Version < change.Before:
		c.drop(k)
	case p.Counts.Version < change.Counts.Version:
		p.Counts = change.Counts
		c.set(k, profiles.said(found(p), kept.lifetime))
	}
}

// hasVersion reports whether a user is kept as of a version of its counts, or a later one.
func (c *Cache) hasVersion(id storage.UserID, version int64) bool {
	return version != 0 && c.version(id) >= version
}

func (c *Cache) forgetBlocks(id storage.UserID, e storage.Edge) {
	if e.Type != storage.Following || c.inBlock(id, e) {
		c.forget(blocksKey(id))
	}
}

// inBlock reports whether the cache, or a read under way, may hold a block between the ends of an
// edge.
func (c *Cache) inBlock(id storage.UserID, e storage.Edge) bool {
	k := blocksKey(id)
	reading := false
	c.blocks.change(k, func(*fill[[]storage.UserID]) { reading = true })
	other := e.From
	if other == id {
		other = e.To
	}
	b, ok := c.look(k)
	var r storage.Result[[]storage.UserID]
	if ok {
		blocks.result(k, b.(*said), &r)
	}
	_, is := slices.BinarySearch(r.Value, other)
	return reading || is
}

// forgetRecommender forgets the user whose followings an edge changes.
func (c *Cache) forgetRecommender(side storage.Side, e storage.Edge) {
	if side == storage.Forward {
		c.forget(recommenderKey(e.From))
	}
}

// forget forgets what is kept under a key, including what is being read.
func (c *Cache) forget(k key) {
	lock := c.stripe(k)
	lock.Lock()
	defer lock.Unlock()
	c.reads[k.kind].abandon(k)
	c.drop(k)
}

// change applies a change to the list of one end of an edge, if the list is kept or being read. It
// returns false if the row has to be compared with the table first. fresh means that the row has
// just been read or written.
func (c *Cache) change(side storage.Side, e storage.Edge, fresh bool) (sure bool) {
	k := key{kind: listKind(side), id: side.Owner(e.Pair())}
	lock := c.stripe(k)
	lock.Lock()
	defer lock.Unlock()
	c.lists[side].change(k, func(f *fill[*list]) { f.late = append(f.late, e) })
	known, _ := c.look(k)
	l, isList := known.(*list)
	if !isList {
		return true
	}
	if l.hasEnded(c.now().UnixMicro()) { // with the change, the counts of its owner say nothing of it any more
		c.drop(k)
		return true
	}
	if v, _, _ := l.compareRow(e); v == uncertain && !fresh {
		return false
	}
	if next := l.with(e, storage.MicrosOf(c.clock())); next != l {
		c.set(k, next)
	}
	return true
}

// Follow subscribes to a hub and returns a function that applies its changes until the context is
// done. The cache forgets what it kept before; it also forgets everything after a gap, or if too many events come at a time.
func (c *Cache) Follow(ctx context.Context, hub *events.Hub) (run func()) {
	subscription := hub.Subscribe(ctx)
	c.Forget()
	return func() {
		for {
			for e := range subscription.Events() {
				var w storage.Change
				e.AddTo(&w)
				for range min(len(subscription.Events()), eventsAtOnce) {
					if e, ok := <-subscription.Events(); ok {
						e.AddTo(&w)
					}
				}
				c.Apply(ctx, w, false)
			}
			if !errors.Is(subscription.Err(), events.ErrSlow) {
				return
			}
			subscription = hub.Subscribe(ctx)
			c.Forget()
		}
	}
}

// eventsAtOnce is how many events are applied together: the rows of those that are uncertain are
// looked up in one go.
const eventsAtOnce = 500

// compare reads the rows of edges and applies them; lists whose rows cannot be read are forgotten.
func (c *Cache) compare(ctx context.Context, side storage.Side, edges []storage.Edge) {
	pairs := storage.Each(edges, storage.Edge.Pair)
	for i, r := range storage.EdgeLookups[side].Read(ctx, c.store, pairs...) {
		switch {
		case r.Err != nil:
			c.forget(key{kind: listKind(side), id: side.Owner(pairs[i])})
		case r.Found:
			c.change(side, r.Value, true)
		}
		c.forgetRecommender(side, edges[i])
	}
}

// lookOrAbandon returns what is kept of a list. If nothing is kept, or the list has ended, it abandons the read that is under way, in one step:
// that read may end at any moment, with a list from before the row. Otherwise nobody waits for that read, which gets the row.
func (c *Cache) lookOrAbandon(r storage.Row, k key) entry {
	lock := c.stripe(k)
	lock.Lock()
	defer lock.Unlock()
	known, there := c.look(k)
	if l, isList := known.(*list); !there || isList && l.hasEnded(c.now().UnixMicro()) {
		c.lists[r.Side].abandon(k)
		return nil
	}
	c.lists[r.Side].change(k, func(f *fill[*list]) { f.late = append(f.late, r.Edge) })
	return known
}

// RequireRows makes sure that answers show the given rows, which are known to be in the tables, each on
// the side it names, even if their events have not come yet.
func (c *Cache) RequireRows(rows []storage.Row) {
	defer c.reported.add(true, rows...)
	for _, r := range rows {
		owner := r.Side.Owner(r.Edge.Pair())
		c.forget(profileKey(owner))
		if r.Side.Truth() != storage.Forward {
			c.forgetPostOf(r.Side, r.Edge)
			continue
		}
		c.forget(blocksKey(owner))
		k := key{kind: listKind(r.Side), id: owner}
		if l, ok := c.lookOrAbandon(r, k).(*list); ok {
			if v, _, _ := l.compareRow(r.Edge); v != old {
				c.forget(k)
			}
		}
		c.forgetRecommender(r.Side, r.Edge)
	}
}

// reported are the rows that were reported to the caches last: when their events come, or when they are read again, nothing has to
// be forgotten again. The value is whether this process has reported the row itself, to all caches.
type reported struct {
	rows *lru.Cache[storage.Row, bool]
}

// reportedKept is how many rows are remembered: some 3 MB.
const reportedKept = 1 << 14

func newReported() reported {
	rows, err := lru.New[storage.Row, bool](reportedKept)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return reported{rows}
}

func (r reported) add(itself bool, rows ...storage.Row) {
	for _, row := range rows {
		if before, _ := r.rows.Peek(row); itself || !before {
			r.rows.Add(row, itself)
		}
	}
}

func (r reported) has(row storage.Row) bool { return r.rows.Contains(row) }

// Behind returns those users of whom nothing as of the version of their counts is kept, or anything later.
func (c *Cache) Behind(users []storage.UserChange) []storage.UserChange {
	return slices.DeleteFunc(slices.Clone(users), func(u storage.UserChange) bool { return c.hasVersion(u.User, u.Counts.Version) })
}

// Unreported returns those rows that were not reported to the caches lately: by anybody, or by this process itself.
func (c *Cache) Unreported(itself bool, rows []storage.Row) []storage.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(row storage.Row) bool {
		by, known := c.reported.rows.Peek(row)
		return known && (by || !itself)
	})
}
