package rediscache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

// Change says what of a user has been written: its row of counts in any case.
type Change struct {
	User    storage.UserID
	Profile bool // the profile
	Forward bool // edges that leave it
	Inverse bool // edges that enter it
}

const (
	// changesAtOnce is how many users one round trip tells of.
	changesAtOnce = 500
	// changeTimeout ends all of one call of Changed.
	changeTimeout = 2 * time.Second
)

// Changed is told of users whose rows have been written: after the commit, and before
// whoever wrote them is answered. It costs one look-up of the users and one round trip.
// It may be told twice, late and in any order.
//
// Once it has returned, no look-up that begins on any gateway finds what was before; unless
// Redis could not be told. Then this gateway does not read Redis until it could, and the others
// may find what was before until then: for the TTL at most, if this process ends before.
//
// It does not fail, and goes on when the context ends.
func (c *Cache) Changed(ctx context.Context, what []Change) {
	if len(what) == 0 {
		return
	}
	what = merged(what)
	if c.late.behind() || !c.breaker.allow() {
		c.late.add(what)
	} else if err := c.deliver(context.WithoutCancel(ctx), what); err != nil {
		c.late.add(what)
	}
	ids := owners(what)
	c.users.forget(ids) // somebody who asks from now on must not join who asked before
	for _, l := range c.lists {
		l.forget(ids)
	}
}

// Then calls a function once Redis has been told of all changes until now. It must not wait.
func (c *Cache) Then(call func()) {
	if !c.late.then(call) {
		call()
	}
}

// merged has each user once.
func merged(what []Change) []Change {
	if len(what) == 1 {
		return what
	}
	at := make(map[storage.UserID]int, len(what))
	list := make([]Change, 0, len(what))
	for _, w := range what {
		i, found := at[w.User]
		if !found {
			at[w.User] = len(list)
			list = append(list, w)
			continue
		}
		list[i] = list[i].and(w)
	}
	return list
}

// and is two changes of one user.
func (a Change) and(b Change) Change {
	return Change{a.User, a.Profile || b.Profile, a.Forward || b.Forward, a.Inverse || b.Inverse}
}

// owners are the users of changes.
func owners(what []Change) []storage.UserID {
	ids := make([]storage.UserID, len(what))
	for i, w := range what {
		ids[i] = w.User
	}
	return ids
}

// deliver tells Redis, under the epoch that is right when it is done: gateways that read
// under another one began to after what is told had been committed.
func (c *Cache) deliver(ctx context.Context, what []Change) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	profiles := c.cfg.Source.Profiles(ctx, owners(what))
	const attempts = 3
	for range attempts {
		e, err := c.currentEpoch(ctx)
		if err != nil {
			c.failed("learn")
			return err
		}
		if right, err := c.tell(ctx, e, what, profiles); err != nil {
			return fmt.Errorf("tell Redis of %d changed users: %w", len(what), err)
		} else if right {
			c.cfg.Metrics.changes.WithLabelValues("told").Add(float64(len(what)))
			return nil
		}
	}
	return errors.New("the epoch of Redis keeps changing")
}

// tell writes a script call for each user, and then asks for the epoch: on one server in the
// same round trip, for it does one command after another. It is false if the epoch is over.
func (c *Cache) tell(ctx context.Context, e *epoch, what []Change, profiles []storage.Result[storage.Profile]) (bool, error) {
	for len(what) > 0 {
		n := min(changesAtOnce, len(what))
		pipe := c.cfg.Redis.Pipeline()
		for i, w := range what[:n] {
			c.tellOf(ctx, pipe, e, w, profiles[i])
		}
		what, profiles = what[n:], profiles[n:]
		if _, cluster := c.cfg.Redis.(*redis.ClusterClient); cluster {
			if err := c.exchange(ctx, "change", pipe); err != nil {
				return false, err
			}
			pipe = c.cfg.Redis.Pipeline()
		}
		name := pipe.Get(ctx, c.epochKey())
		if err := c.exchange(ctx, "change", pipe); err != nil {
			return false, err
		}
		if !c.verify(e, name) {
			return false, nil
		}
	}
	return true, nil
}

// tellOf tells of one user. Where it has no version, because its shard does not answer or it
// has been erased, everything about it goes, and with it who is filling it.
func (c *Cache) tellOf(ctx context.Context, pipe redis.Pipeliner, e *epoch, w Change, r storage.Result[storage.Profile]) {
	forward, inverse := e.list(storage.Forward, w.User), e.list(storage.Inverse, w.User)
	p := r.Value
	if r.Err != nil || p.Counts.Version == 0 {
		pipe.Unlink(ctx, e.user(w.User), forward, inverse)
		return
	}
	keys := []string{e.user(w.User)}
	if w.Forward {
		keys = append(keys, forward)
	}
	if w.Inverse {
		keys = append(keys, inverse)
	}
	changed.call(ctx, pipe, keys,
		p.Counts.Version, appendProfile(nil, p), appendCounts(nil, p.Counts),
		c.leaseLife().Milliseconds(), c.life(false).Milliseconds(), inEight(p.Counts.Version), w.Profile)
}
