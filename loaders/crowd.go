package loaders

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kith/storage"
)

// A Crowd is answers that need several look-ups, one after another, and that are
// computed side by side: the friends of every user of a page, say. Each step of
// theirs is made together. A member that has something to ask waits until every
// other one has asked or is done; then all of it leaves as one batch for each
// look-up. So the number of statements does not grow with the number of members,
// and nobody waits for a timer.
type Crowd struct {
	all *Loaders

	mu       sync.Mutex
	expected int           // members that are not done
	waiting  int           // members that have asked
	asked    []Question    // by them
	gate     chan struct{} // closed when what they asked has been sent

	joined atomic.Bool // whether there ever was a member
}

// Patience is how long a crowd waits for a member that does not come. None should
// stay away; if one does, only batching suffers. A test that counts statements on a
// busy machine raises it.
var Patience = 25 * time.Millisecond

// Expect announces members.
func (c *Crowd) Expect(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected += n
}

// Join makes the caller an announced member until it calls leave, for the look-ups
// that it makes under the context returned. Someone who is alone is no member.
func (c *Crowd) Join(ctx context.Context) (_ context.Context, leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.expected > 1 {
		c.joined.Store(true)
		ctx = context.WithValue(ctx, memberKey{}, true)
	}
	return ctx, func() { c.Leave(1) }
}

// Leave takes members out: they are done, or will not come.
func (c *Crowd) Leave(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expected = max(0, c.expected-n)
	if c.waiting > 0 && c.waiting >= c.expected {
		c.send()
	}
}

type memberKey struct{}

// IsMember tells whether someone computes under the context side by side with others.
func IsMember(ctx context.Context) bool { return ctx.Value(memberKey{}) != nil }

// isMember is [IsMember] for the request of the loaders; in most there is no member.
func (l *Loaders) isMember(ctx context.Context) bool { return l.Crowd.joined.Load() && IsMember(ctx) }

// meet sends questions together with what the others ask.
func (c *Crowd) meet(ctx context.Context, questions []Question) {
	c.mu.Lock()
	c.waiting++
	c.asked = append(c.asked, questions...)
	if c.waiting >= c.expected {
		c.send()
		c.mu.Unlock()
		return
	}
	if c.gate == nil {
		c.gate = make(chan struct{})
	}
	gate := c.gate
	c.mu.Unlock()

	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-gate:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gate == gate {
		c.send()
	}
}

// send sends what everyone who waits has asked. The lock is held.
func (c *Crowd) send() {
	for _, t := range c.all.bundled(slices.DeleteFunc(tasksOf(c.asked), task.answer)) {
		go t.run()
	}
	if c.gate != nil {
		close(c.gate)
	}
	c.waiting, c.asked, c.gate = 0, nil, nil
}

// Reader reads edges for answers of many steps. Members of the crowd read through
// the loaders, together; others straight from the store.
func (l *Loaders) Reader() Reader { return Reader{l} }

// Reader is what [Loaders.Reader] returns. It has the contract of
// [storage.CountReader] and [storage.EdgeReader].
type Reader struct{ l *Loaders }

// Counts implements [storage.CountReader]. What the request has read already is
// not read again.
func (r Reader) Counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	return r.l.Counts.Fetch(ctx, ids)
}

// Profiles reads users and their counts together, so that the request knows both.
func (r Reader) Profiles(ctx context.Context, ids []storage.UserID) {
	users, counts := r.l.Users.Ask(ids), r.l.Counts.Ask(ids)
	r.l.Dispatch(ctx, users, counts)
	users.Wait()
	counts.Wait()
}

// KnownCounts are counts that the request has read already; false where it has not read
// all of them.
func (r Reader) KnownCounts(ids []storage.UserID) ([]storage.Result[storage.Counts], bool) {
	if !r.l.Counts.knows(ids) {
		return nil, false
	}
	return r.l.Counts.results(ids), true
}

// PackedNeighbours implements [storage.PackedReader]; where the store does not, nothing is
// Found.
func (r Reader) PackedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	if packed, ok := r.l.store.(storage.PackedReader); ok {
		return packed.PackedNeighbours(ctx, side, owners)
	}
	return make([]storage.Result[[]storage.UserID], len(owners))
}

// Users is that of [storage.UserReader]. What has been read is remembered.
func (r Reader) Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	return r.l.Users.Fetch(ctx, ids)
}

// Edges implements [storage.EdgeReader].
func (r Reader) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	if r.l.isMember(ctx) {
		return r.l.Edges(side).Fetch(ctx, pairs)
	}
	return r.l.store.Edges(ctx, side, pairs)
}

// Pages implements [storage.EdgeReader]. What the request has read already is not read again.
func (r Reader) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	if r.l.isMember(ctx) || r.l.Pages(side).knows(queries) {
		return r.l.Pages(side).Fetch(ctx, queries)
	}
	return r.l.store.Pages(ctx, side, queries)
}

// Walks implements [storage.EdgeReader].
func (r Reader) Walks(ctx context.Context, side storage.Side, queries []storage.WalkQuery) []storage.Result[storage.Stretch] {
	if r.l.isMember(ctx) {
		return r.l.walksOf(side).Fetch(ctx, queries)
	}
	return r.l.store.Walks(ctx, side, queries)
}

// Neighbours implements [storage.EdgeReader].
func (r Reader) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	if r.l.isMember(ctx) {
		return r.l.neighboursOf(side).Fetch(ctx, owners)
	}
	return r.l.store.Neighbours(ctx, side, owners)
}
