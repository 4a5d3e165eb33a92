package loaders

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"github.com/graph-gophers/dataloader/v7"

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
	expected int // members that are not done
	waiting  int // members that have asked

	joined atomic.Bool // whether there ever was a member
}

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
	c.sendIfAllHaveAsked()
}

type memberKey struct{}

// IsMember tells whether someone computes under the context side by side with others.
func IsMember(ctx context.Context) bool { return ctx.Value(memberKey{}) != nil }

// isMember is [IsMember] for the request of the loaders; in most there is no member.
func (l *Loaders) isMember(ctx context.Context) bool { return l.Crowd.joined.Load() && IsMember(ctx) }

// meet asks together with the others.
func (c *Crowd) meet(asked ...Question) {
	c.mu.Lock()
	c.waiting++
	read := c.all.load(crowded, asked...)
	c.sendIfAllHaveAsked()
	c.mu.Unlock()
	_, _ = read()
}

func (c *Crowd) sendIfAllHaveAsked() {
	if c.waiting > 0 && c.waiting >= c.expected {
		c.all.line(crowded).Flush()
	}
}

// send is the batch function of members.
func (c *Crowd) send(ctx context.Context, handed []*handOver) []*dataloader.Result[struct{}] {
	c.mu.Lock()
	c.waiting -= len(handed)
	c.mu.Unlock()
	return c.all.send(ctx, handed)
}

// Reader reads for answers of many steps, through the loaders: what the request has read is
// not read again, and members of the crowd read together.
func (l *Loaders) Reader() Reader { return Reader{l} }

// Reader is what [Loaders.Reader] returns. Each method has the contract of that of
// [storage.Reader] of its name.
type Reader struct{ l *Loaders }

// Counts implements [storage.CountReader].
func (r Reader) Counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	return r.l.Counts.Fetch(ctx, ids)
}

// Profiles implements [storage.ProfileReader]. A user and its counts may be of two moments.
func (r Reader) Profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	users, counts := r.l.Users.Ask(ids), r.l.Counts.Ask(ids)
	r.l.Dispatch(ctx, users, counts)
	profiles := make([]storage.Result[storage.Profile], len(ids))
	known := counts.Results()
	for i, u := range users.Results() {
		c := known[i]
		profiles[i] = storage.Result[storage.Profile]{
			Value: storage.Profile{User: u.Value, Exists: u.Found, Counts: c.Value, Counted: c.Found},
			Found: u.Found || c.Found, Err: cmp.Or(u.Err, c.Err),
		}
	}
	return profiles
}

// PackedNeighbours implements [storage.PackedReader].
func (r Reader) PackedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return r.l.packedOf(side).Fetch(ctx, owners)
}

// Users is that of [storage.UserReader].
func (r Reader) Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	return r.l.Users.Fetch(ctx, ids)
}

// Edges implements [storage.EdgeReader].
func (r Reader) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	return r.l.Edges(side).Fetch(ctx, pairs)
}

// Pages implements [storage.EdgeReader].
func (r Reader) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	return r.l.Pages(side).Fetch(ctx, queries)
}

// AllRows implements [storage.EdgeReader].
func (r Reader) AllRows(ctx context.Context, side storage.Side, queries []storage.RowsQuery) []storage.Result[[]storage.Edge] {
	return r.l.rowsOf(side).Fetch(ctx, queries)
}

// Neighbours implements [storage.EdgeReader].
func (r Reader) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return r.l.neighboursOf(side).Fetch(ctx, owners)
}
