package judge

import (
	"fmt"

	"kith/storage"
)

// request judges what becomes of a request to be friends.
func (c *change) request() ([]storage.Written, error) {
	switch c.Type {
	case storage.Pending:
		return c.ask()
	case storage.Accepted:
		switch {
		case c.blocked(c.User, c.To):
			return nil, forbidden(c.pair)
		case c.old.Type == storage.Accepted:
			return nil, nil
		case !c.pending(c.old):
			return nil, c.none()
		}
		return c.accept()
	case storage.Declined, storage.Cancelled:
		switch {
		case c.old.Type == c.Type:
			return nil, nil
		case !c.pending(c.old):
			return nil, c.none()
		}
		return []storage.Written{c.turn(storage.Requests, c.pair, c.Type, c.At)}, nil
	case storage.Removed:
		return c.remove(), nil
	}
	return nil, fmt.Errorf("unknown state %d of a request", c.Type)
}

func (c *change) none() error {
	return fmt.Errorf("%w: from %s to %s", storage.ErrNoEdge, c.User, c.To)
}

// ask makes the request, or accepts it if there is one in the other direction.
func (c *change) ask() ([]storage.Written, error) {
	theirs := c.Now(storage.Inbox, storage.Pair{From: c.To, To: c.User})
	switch {
	case c.blocked(c.User, c.To):
		return nil, forbidden(c.pair)
	case c.inForce():
		return nil, nil
	case c.pending(theirs):
		return c.accept()
	case c.pending(c.old), c.friends():
		return nil, nil
	case c.old.Type == storage.Declined && c.At-c.old.UpdateTime < storage.Micros(c.Pause.Microseconds()):
		return nil, forbidden(c.pair)
	case c.MaxPending > 0 && c.Asks >= int64(c.MaxPending):
		return nil, fmt.Errorf("%w: %d requests of user %s are pending", storage.ErrLimitReached, c.Asks, c.User)
	}
	if c.Messages == nil {
		c.Messages = make(map[storage.Pair]string)
	}
	c.Messages[c.pair] = c.Message
	return []storage.Written{c.turn(storage.Requests, c.pair, storage.Pending, c.At)}, nil
}

// inForce reports whether the request was accepted and neither user has ended its follow since.
func (c *change) inForce() bool {
	back, there := c.row(storage.Inverse, storage.Pair{From: c.To, To: c.User})
	ended := there && back.Type != storage.Following && back.UpdateTime > c.old.UpdateTime
	return c.old.Type == storage.Accepted && c.Now(storage.Forward, c.pair).Type == storage.Following && !ended
}

// friends reports whether the two follow each other, with or without a request.
func (c *change) friends() bool {
	back := c.Now(storage.Inverse, storage.Pair{From: c.To, To: c.User})
	return c.Now(storage.Forward, c.pair).Type == storage.Following && back.Type == storage.Following
}

// accept accepts the request: From follows To. The follow To → From is written on the other side.
func (c *change) accept() ([]storage.Written, error) {
	if c.Now(storage.Forward, c.pair).Type != storage.Following {
		if err := c.mayFollow(0); err != nil {
			return nil, err
		}
	}
	at := c.behindReturn()
	written := []storage.Written{c.turn(storage.Requests, c.pair, storage.Accepted, at)}
	return append(written, c.follow(c.pair, at)...), nil
}

// remove ends a friendship, whichever user asked for it.
func (c *change) remove() []storage.Written {
	back := storage.Pair{From: c.To, To: c.User}
	friends := c.Now(storage.Inverse, back).Type == storage.Following ||
		c.old.Type == storage.Accepted || c.Now(storage.Inbox, back).Type == storage.Accepted
	if c.Now(storage.Forward, c.pair).Type != storage.Following || !friends {
		return nil
	}
	at := c.behindReturn()
	return []storage.Written{
		c.turn(storage.Requests, c.pair, storage.Removed, at),
		c.turn(storage.Forward, c.pair, storage.None, at),
	}
}

// behindReturn is At, or a time behind the follow To → From, which a clock ahead may have written: by times it is judged what follows
// for it on the other side.
func (c *change) behindReturn() storage.Micros {
	return max(c.At, c.Now(storage.Inverse, storage.Pair{From: c.To, To: c.User}).UpdateTime+1)
}
