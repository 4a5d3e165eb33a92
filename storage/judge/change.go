package judge

import (
	"fmt"

	"kith/storage"
)

// An Actor is a user whose change of an edge is judged.
type Actor struct {
	User         storage.UserID
	Follows      int64 // how many users it follows; each judged change moves it
	MaxFollowing int64 // 0: no limit
	Blocks       int64 // how many it blocks; each judged change moves it, too
	Requests     int64 // how many it waits to follow, likewise
	MaxBlocks    int64 // 0: no limit
}

// mayBlock is mayFollow for blocks.
func (a *Actor) mayBlock() error {
	if a.MaxBlocks > 0 && a.Blocks >= a.MaxBlocks {
		return fmt.Errorf("%w: user %s blocks %d", storage.ErrLimitReached, a.User, a.Blocks)
	}
	return nil
}

// mayFollow checks that the limit allows one more, besides so many that wait. [storage.ErrLimitReached]
func (a *Actor) mayFollow(waiting int64) error {
	if a.MaxFollowing > 0 && a.Follows+waiting >= a.MaxFollowing {
		return fmt.Errorf("%w: user %s follows %d, and waits for %d", storage.ErrLimitReached, a.User, a.Follows, waiting)
	}
	return nil
}

// Change judges a change of the actor's edge and writes what follows from it, see
// [storage.EdgeChanger]. [storage.ErrForbidden] if one of the two blocks the other,
// [storage.ErrLimitReached].
func (j *Judge) Change(by *Actor, ch storage.EdgeChange) storage.Result[storage.Changed] {
	pair := storage.Pair{From: by.User, To: ch.To}
	old, _ := j.row(storage.Forward, pair)
	unchanged := storage.Result[storage.Changed]{Value: storage.Changed{Row: old}, Found: true}
	isFollow := old.Type == storage.Following || old.Type == storage.Requested
	switch {
	case ch.Type == old.Type, ch.Ends == storage.Requested && old.Type != storage.Requested,
		ch.Type == storage.None && old.Type != ch.Ends && (ch.Ends != storage.None || !isFollow),
		ch.Type == storage.Requested && old.Type == storage.Following:
		return unchanged
	}
	switch ch.Type {
	case storage.Following, storage.Requested:
		if j.blocked(by.User, ch.To) {
			return storage.Result[storage.Changed]{Err: forbidden(pair)}
		}
		if err := by.mayFollow(by.Requests * is(ch.Type, storage.Requested)); err != nil {
			return storage.Result[storage.Changed]{Err: err}
		}
	case storage.Blocking:
		if err := by.mayBlock(); err != nil {
			return storage.Result[storage.Changed]{Err: err}
		}
	}
	by.Follows += Counted(ch.Type) - Counted(old.Type)
	by.Blocks += is(ch.Type, storage.Blocking) - is(old.Type, storage.Blocking)
	by.Requests += is(ch.Type, storage.Requested) - is(old.Type, storage.Requested)
	own := j.turn(storage.Forward, pair, ch.Type, ch.At)
	written := append([]storage.Written{own}, j.consequences(storage.Forward, own.Edge)...)
	written = j.propagate(written)
	return storage.Result[storage.Changed]{
		Value: storage.Changed{Row: own.Edge, Changed: true, Inverse: written[0].Inverse, Also: written[1:]},
		Found: true,
	}
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
// [storage.Repairer].
func (j *Judge) Repair(r storage.Repair) storage.Repaired {
	side := r.Side.Replica()
	old, _ := j.row(side, r.Pair)
	if old.Type != r.Observed.Type || old.UpdateTime != r.Observed.UpdateTime {
		return storage.Repaired{}
	}
	want := r.Pair.Edge(r.Want.Type, r.Want.UpdateTime)
	if want == old && !(side == storage.Inverse && want.Type == storage.Blocking) {
		return storage.Repaired{Done: true}
	}
	if want != old {
		j.put(side, want)
	}
	return storage.Repaired{Done: true, Also: j.consequences(side, want)}
}
