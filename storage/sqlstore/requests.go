package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"kith/storage"
)

// Served by the list index.
const sqlPendingRequests = `
SELECT COUNT(*)
FROM friend_request
WHERE from_user_id = ? AND type = 1 AND update_time >= ?`

// ChangeRequest implements [storage.RequestChanger].
func (s *Store) ChangeRequest(ctx context.Context, request storage.Pair, change storage.RequestChange, o storage.RequestOptions) (storage.ChangedRequest, error) {
	var changed storage.ChangedRequest
	err := s.transact(ctx, "request", s.place.Of(request.From), func(w *writer) (err error) {
		c := newRequestChange(w, request, change, o)
		changed, err = c.run()
		return err
	})
	if err != nil {
		return storage.ChangedRequest{}, err
	}
	return changed, nil
}

// requestChange is one try of a ChangeRequest.
type requestChange struct {
	change
	request storage.Pair
	act     storage.RequestChange
	options storage.RequestOptions
	valid   storage.Micros // how long a request stays pending
}

func newRequestChange(w *writer, request storage.Pair, act storage.RequestChange, o storage.RequestOptions) *requestChange {
	return &requestChange{
		change:  change{writer: w, user: request.From, maxFollowing: o.MaxFollowing},
		request: request, act: act, options: o,
		valid: storage.Micros(o.TTL.Microseconds()),
	}
}

// run is the transaction, in the lock order of [Store.Apply].
func (c *requestChange) run() (storage.ChangedRequest, error) {
	both := c.options.Inverse && c.isLocal(c.request.To)
	c.begin()
	counts, err := c.lockPair(c.request.To, both, storage.Sides[:])
	if err != nil {
		return storage.ChangedRequest{}, err
	}
	for {
		c.follows = counts.Following
		written, err := c.decide()
		if err != nil {
			return storage.ChangedRequest{}, err
		}
		changed := storage.ChangedRequest{Changed: len(written) > 0, Written: c.carry(written)}
		changed.Row, _ = c.row(storage.Requests, c.request)
		again, err := c.lockMissing()
		if err != nil {
			return storage.ChangedRequest{}, err
		}
		if !again {
			return changed, c.save(c.actor(), c.act.At)
		}
		c.begin()
		keys := []storage.Pair{c.request, {From: c.request.To, To: c.request.From}}
		if err := c.look(c.judge, keys, storage.Sides[:]...); err != nil {
			return storage.ChangedRequest{}, err
		}
	}
}

// begin forgets what has been read.
func (c *requestChange) begin() {
	c.judge = c.store.newJudge()
	if c.options.Inverse {
		c.inline = c.isLocal
	}
}

// actor is who has been active, 0 where that is the other user, who may be on another
// shard.
func (c *requestChange) actor() storage.UserID {
	if c.act.Act == storage.Accept || c.act.Act == storage.Decline {
		return 0
	}
	return c.user
}

// decide does what the act says and returns the rows that it writes, the request
// first; none where it was so before.
func (c *requestChange) decide() ([]storage.Written, error) {
	own, _ := c.row(storage.Requests, c.request)
	switch c.act.Act {
	case storage.Ask:
		return c.ask(own)
	case storage.Accept:
		switch {
		case c.blocked(c.request.From, c.request.To):
			return nil, c.forbidden()
		case own.Type == storage.Accepted:
			return nil, nil
		case !c.pending(own):
			return nil, c.none()
		}
		return c.accept()
	case storage.Decline:
		return c.end(own, storage.Declined)
	case storage.Cancel:
		return c.end(own, storage.Cancelled)
	case storage.Remove:
		return c.remove(own), nil
	}
	return nil, fmt.Errorf("unknown act %d about a request", c.act.Act)
}

// pending tells whether a request can be answered.
func (c *requestChange) pending(r storage.Edge) bool {
	return r.Type == storage.Pending && c.act.At-r.UpdateTime <= c.valid
}

func (c *requestChange) forbidden() error {
	return fmt.Errorf("%w: %s and %s", storage.ErrForbidden, c.request.From, c.request.To)
}

func (c *requestChange) none() error {
	return fmt.Errorf("%w: from %s to %s", storage.ErrNoRequest, c.request.From, c.request.To)
}

// ask makes the request, or accepts it where there is one the other way.
func (c *requestChange) ask(own storage.Edge) ([]storage.Written, error) {
	theirs, _ := c.row(storage.Inbox, storage.Pair{From: c.request.To, To: c.request.From})
	switch {
	case c.blocked(c.request.From, c.request.To):
		return nil, c.forbidden()
	case c.inForce(own):
		return nil, nil
	case c.pending(theirs):
		return c.accept()
	case c.pending(own):
		return nil, nil
	case own.Type == storage.Declined && c.act.At-own.UpdateTime < storage.Micros(c.options.Pause.Microseconds()):
		return nil, c.forbidden()
	}
	if err := c.mayAsk(); err != nil {
		return nil, err
	}
	c.messages = map[storage.Pair]string{c.request: c.act.Message}
	return []storage.Written{c.turn(storage.Requests, c.request, storage.Pending, c.act.At)}, nil
}

// inForce tells whether a request was accepted and neither has ended its follow since.
func (c *requestChange) inForce(own storage.Edge) bool {
	follow, _ := c.row(storage.Forward, c.request)
	back, there := c.row(storage.Inverse, storage.Pair{From: c.request.To, To: c.request.From})
	ended := there && back.Type != storage.Following && back.UpdateTime > own.UpdateTime
	return own.Type == storage.Accepted && follow.Type == storage.Following && !ended
}

// mayAsk tells whether the limit of pending requests allows one more.
func (c *requestChange) mayAsk() error {
	if c.options.MaxPending == 0 {
		return nil
	}
	var pending int
	args := []any{int64(c.request.From), int64(c.act.At - c.valid)}
	err := c.read(1, sqlPendingRequests, args, func(rows *sql.Rows) error { return rows.Scan(&pending) })
	if err == nil && pending >= c.options.MaxPending {
		err = fmt.Errorf("%w: %d requests of user %s are pending", storage.ErrLimitReached, pending, c.request.From)
	}
	return err
}

// accept accepts the request: From follows To. That To follows From is written on the
// other side.
func (c *requestChange) accept() ([]storage.Written, error) {
	if f, _ := c.row(storage.Forward, c.request); f.Type != storage.Following {
		if err := c.mayFollow(); err != nil {
			return nil, err
		}
	}
	written := []storage.Written{c.turn(storage.Requests, c.request, storage.Accepted, c.act.At)}
	return append(written, c.follow(c.request, c.act.At)...), nil
}

// end declines or cancels the request.
func (c *requestChange) end(own storage.Edge, state storage.EdgeType) ([]storage.Written, error) {
	switch {
	case own.Type == state:
		return nil, nil
	case !c.pending(own):
		return nil, c.none()
	}
	return []storage.Written{c.turn(storage.Requests, c.request, state, c.act.At)}, nil
}

// remove ends a friendship, whoever has asked for it.
func (c *requestChange) remove(own storage.Edge) []storage.Written {
	back := storage.Pair{From: c.request.To, To: c.request.From}
	follow, _ := c.row(storage.Forward, c.request)
	fan, _ := c.row(storage.Inverse, back)
	theirs, _ := c.row(storage.Inbox, back)
	friends := fan.Type == storage.Following || own.Type == storage.Accepted || theirs.Type == storage.Accepted
	if follow.Type != storage.Following || !friends {
		return nil
	}
	return []storage.Written{
		c.turn(storage.Requests, c.request, storage.Removed, c.act.At),
		c.turn(storage.Forward, c.request, storage.None, c.act.At),
	}
}
