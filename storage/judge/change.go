package judge

import (
	"fmt"

	"kith/storage"
	"kith/storage/sides"
)

// An Actor is a user whose changes are judged. Each judged change moves the numbers. Those are needed which the options of
// its changes bound.
type Actor struct {
	User    storage.UserID
	Follows int64           // how many users it follows
	Blocks  int64           // how many it blocks
	Waits   int64           // how many it waits to follow
	Asks    int64           // how many of its requests to be friends are pending
	Items   map[int64]int64 // how many edges of each kind leave it
	NoLists []int64         // the kinds of lists that do not exist

	failed error // why the last change has not been made
}

// change is one change of an actor's edge.
type change struct {
	*Judge
	*Actor
	storage.EdgeChange
	storage.ChangeOptions
	side storage.Side
	pair storage.Pair
	old  storage.Edge
}

// Change judges a change of an edge that leaves the actor and writes what follows from it, see [storage.Store] for its errors.
func (j *Judge) Change(side storage.Side, by *Actor, ch storage.EdgeChange, o storage.ChangeOptions) storage.Result[storage.Changed] {
	if ch.With && by.failed != nil {
		return storage.Result[storage.Changed]{Err: by.failed}
	}
	c := &change{Judge: j, Actor: by, EdgeChange: ch, ChangeOptions: o, side: side, pair: storage.Pair{From: by.User, To: ch.To, Item: ch.Item}}
	c.old = j.Now(side, c.pair)
	judge := c.edge
	switch {
	case side.HasItem():
		judge = c.item
	case side == storage.Requests:
		judge = c.request
	}
	c.count(-1)
	written, err := judge()
	c.count(1)
	if by.failed = err; err != nil {
		return storage.Result[storage.Changed]{Err: err}
	}
	changed := storage.Changed{Side: side, Row: c.old, Changed: len(written) > 0}
	if changed.Changed {
		changed.Kept = side.HasItem() && c.old.Type == ch.Type
		changed.Waited = side == storage.Forward && c.old.Type == storage.Requested
		written = j.propagate(written)
		changed.Row, changed.Inverse, changed.Also = written[0].Edge, written[0].Inverse, written[1:]
		isOwn := ch.Type != storage.Denied && (ch.Type != storage.Following || ch.Ends != storage.Requested) // otherwise it is accepted
		if side == storage.Requests {
			isOwn = ch.Type != storage.Accepted && ch.Type != storage.Declined
		}
		if isOwn && !ch.IfDue {
			j.acted[by.User] = max(j.acted[by.User], ch.At.Day())
		}
	}
	return storage.Result[storage.Changed]{Value: changed, Found: true}
}

// count adds what the two users are to each other to the actor's numbers, or takes it off.
func (c *change) count(by int64) {
	pair := storage.Pair{From: c.User, To: c.To}
	kind := c.Now(storage.Forward, pair).Type
	c.Follows += by * Counted(kind)
	c.Blocks += by * is(kind, storage.Blocking)
	c.Waits += by * is(kind, storage.Requested)
	if c.pending(c.Now(storage.Requests, pair)) {
		c.Asks += by
	}
}

// edge judges a follow, a block, or the end of one. It returns the rows that it writes, that of the change first; none if nothing
// has changed.
func (c *change) edge() ([]storage.Written, error) {
	if c.Type == storage.Denied && c.old.Type != storage.Requested {
		c.Type = storage.None
	}
	isFollow := c.old.Type == storage.Following || c.old.Type == storage.Requested
	switch {
	case c.Type == c.old.Type, c.Ends == storage.Requested && c.old.Type != storage.Requested,
		c.Type == storage.None && c.old.Type != c.Ends && (c.Ends != storage.None || !isFollow),
		c.Type == storage.Requested && c.old.Type == storage.Following:
		return nil, nil
	}
	switch c.Type {
	case storage.Following, storage.Requested:
		if c.blocked(c.User, c.To) {
			return nil, forbidden(c.pair)
		}
		if err := c.mayFollow(c.Waits * is(c.Type, storage.Requested)); err != nil {
			return nil, err
		}
	case storage.Blocking:
		if c.MaxBlocks > 0 && c.Blocks >= c.MaxBlocks {
			return nil, fmt.Errorf("%w: user %s blocks %d", storage.ErrLimitReached, c.User, c.Blocks)
		}
	}
	own := c.turn(storage.Forward, c.pair, c.Type, c.At)
	return append([]storage.Written{own}, c.consequences(storage.Forward, own.Edge)...), nil
}

// mayFollow checks that the limit allows one more, besides so many that wait. [storage.ErrLimitReached]
func (c *change) mayFollow(waiting int64) error {
	if c.MaxFollowing > 0 && c.Follows+waiting >= c.MaxFollowing {
		return fmt.Errorf("%w: user %s follows %d, and waits for %d", storage.ErrLimitReached, c.User, c.Follows, waiting)
	}
	return nil
}

// is is 1 for an edge of a kind, 0 for others.
func is(t, kind storage.EdgeType) int64 {
	if t == kind {
		return 1
	}
	return 0
}

func forbidden(pair storage.Pair) error {
	return fmt.Errorf("%w: %s and %s", storage.ErrForbidden, pair.From, pair.To)
}

// Repair writes an inverse row if it is still as observed, with what follows from it, see
// [sides.Repairer].
func (j *Judge) Repair(r sides.Repair) storage.Changed {
	side := r.Side.Replica()
	old, _ := j.row(side, r.Pair)
	if old.Type != r.Observed.Type || old.UpdateTime != r.Observed.UpdateTime {
		return storage.Changed{}
	}
	want := r.Pair.Edge(r.Want.Type, r.Want.UpdateTime)
	if want == old && !(side == storage.Inverse && want.Type == storage.Blocking) {
		return storage.Changed{Changed: true}
	}
	if want != old {
		j.put(side, want)
	}
	return storage.Changed{Changed: true, Also: j.consequences(side, want)}
}

// pending reports whether a request can be answered.
func (c *change) pending(e storage.Edge) bool {
	return e.Type == storage.Pending && e.UpdateTime >= c.ValidFrom(c.At)
}
