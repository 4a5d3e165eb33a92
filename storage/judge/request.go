package judge

import (
	"fmt"

	"kith/storage"
)

// An Act is what a user does about a friend request, see [storage.RequestChanger].
type Act struct {
	Request storage.Pair
	Change  storage.RequestChange
	Options storage.RequestOptions
	Follows int64 // how many users From follows

	// Pending counts the requests of From that have been pending since a time. It is called only if
	// the limit in the options matters.
	Pending func(since storage.Micros) (int, error)
}

// Active is the user whom the act makes active; 0 if that is To, who may be on another shard.
func (a Act) Active() storage.UserID {
	if a.Change.Act == storage.Accept || a.Change.Act == storage.Decline {
		return 0
	}
	return a.Request.From
}

// Request judges an act and writes what follows from it. [storage.ErrForbidden],
// [storage.ErrNoRequest], [storage.ErrLimitReached]
func (j *Judge) Request(a Act) (storage.ChangedRequest, error) {
	r := &request{Judge: j, Pair: a.Request, act: a}
	written, err := r.decide()
	if err != nil {
		return storage.ChangedRequest{}, err
	}
	changed := storage.ChangedRequest{Changed: len(written) > 0, Written: j.propagate(written)}
	changed.Row, _ = j.row(storage.Requests, a.Request)
	return changed, nil
}

// request is an act being judged.
type request struct {
	*Judge
	storage.Pair
	act Act
}

// decide performs the act and returns the rows that it writes, the request first; none if nothing
// has changed.
func (r *request) decide() ([]storage.Written, error) {
	own, _ := r.row(storage.Requests, r.Pair)
	switch r.act.Change.Act {
	case storage.Ask:
		return r.ask(own)
	case storage.Accept:
		switch {
		case r.blocked(r.From, r.To):
			return nil, forbidden(r.Pair)
		case own.Type == storage.Accepted:
			return nil, nil
		case !r.pending(own):
			return nil, r.none()
		}
		return r.accept()
	case storage.Decline:
		return r.end(own, storage.Declined)
	case storage.Cancel:
		return r.end(own, storage.Cancelled)
	case storage.Remove:
		return r.remove(own), nil
	}
	return nil, fmt.Errorf("unknown act %d about a request", r.act.Change.Act)
}

// validFrom is the time since which requests are still pending.
func (r *request) validFrom() storage.Micros {
	return r.act.Change.At - storage.Micros(r.act.Options.TTL.Microseconds())
}

// pending reports whether a request can be answered.
func (r *request) pending(e storage.Edge) bool {
	return e.Type == storage.Pending && e.UpdateTime >= r.validFrom()
}

func (r *request) none() error {
	return fmt.Errorf("%w: from %s to %s", storage.ErrNoRequest, r.From, r.To)
}

// ask makes the request, or accepts it if there is one in the other direction.
func (r *request) ask(own storage.Edge) ([]storage.Written, error) {
	theirs, _ := r.row(storage.Inbox, storage.Pair{From: r.To, To: r.From})
	switch {
	case r.blocked(r.From, r.To):
		return nil, forbidden(r.Pair)
	case r.inForce(own):
		return nil, nil
	case r.pending(theirs):
		return r.accept()
	case r.pending(own), r.friends():
		return nil, nil
	case own.Type == storage.Declined && r.act.Change.At-own.UpdateTime < storage.Micros(r.act.Options.Pause.Microseconds()):
		return nil, forbidden(r.Pair)
	}
	if err := r.mayAsk(); err != nil {
		return nil, err
	}
	r.Messages = map[storage.Pair]string{r.Pair: r.act.Change.Message}
	return []storage.Written{r.turn(storage.Requests, r.Pair, storage.Pending, r.act.Change.At)}, nil
}

// inForce reports whether a request was accepted and neither user has ended its follow since.
func (r *request) inForce(own storage.Edge) bool {
	follow, _ := r.row(storage.Forward, r.Pair)
	back, there := r.row(storage.Inverse, storage.Pair{From: r.To, To: r.From})
	ended := there && back.Type != storage.Following && back.UpdateTime > own.UpdateTime
	return own.Type == storage.Accepted && follow.Type == storage.Following && !ended
}

// friends reports whether the two follow each other, with or without a request.
func (r *request) friends() bool {
	follow, _ := r.row(storage.Forward, r.Pair)
	back, _ := r.row(storage.Inverse, storage.Pair{From: r.To, To: r.From})
	return follow.Type == storage.Following && back.Type == storage.Following
}

// mayAsk checks that the limit of pending requests allows one more.
func (r *request) mayAsk() error {
	if r.act.Options.MaxPending == 0 {
		return nil
	}
	pending, err := r.act.Pending(r.validFrom())
	if err == nil && pending >= r.act.Options.MaxPending {
		err = fmt.Errorf("%w: %d requests of user %s are pending", storage.ErrLimitReached, pending, r.From)
	}
	return err
}

// accept accepts the request: From follows To. The follow To → From is written on the other side.
func (r *request) accept() ([]storage.Written, error) {
	if f, _ := r.row(storage.Forward, r.Pair); f.Type != storage.Following {
		by := Actor{User: r.From, Follows: r.act.Follows, MaxFollowing: r.act.Options.MaxFollowing}
		if err := by.mayFollow(0); err != nil {
			return nil, err
		}
	}
	written := []storage.Written{r.turn(storage.Requests, r.Pair, storage.Accepted, r.act.Change.At)}
	return append(written, r.follow(r.Pair, r.act.Change.At)...), nil
}

// end declines or cancels the request.
func (r *request) end(own storage.Edge, state storage.EdgeType) ([]storage.Written, error) {
	switch {
	case own.Type == state:
		return nil, nil
	case !r.pending(own):
		return nil, r.none()
	}
	return []storage.Written{r.turn(storage.Requests, r.Pair, state, r.act.Change.At)}, nil
}

// remove ends a friendship, whichever user asked for it.
func (r *request) remove(own storage.Edge) []storage.Written {
	back := storage.Pair{From: r.To, To: r.From}
	follow, _ := r.row(storage.Forward, r.Pair)
	follower, _ := r.row(storage.Inverse, back)
	theirs, _ := r.row(storage.Inbox, back)
	friends := follower.Type == storage.Following || own.Type == storage.Accepted || theirs.Type == storage.Accepted
	if follow.Type != storage.Following || !friends {
		return nil
	}
	return []storage.Written{
		r.turn(storage.Requests, r.Pair, storage.Removed, r.act.Change.At),
		r.turn(storage.Forward, r.Pair, storage.None, r.act.Change.At),
	}
}
