package rediscache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

const (
	// changesAtOnce is how many users one round trip tells of.
	changesAtOnce = 500
	// changeTimeout ends all of one call of Changed.
	changeTimeout = 2 * time.Second
)

// Changed is told of users whose rows have been written: after the commit, and before
// whoever wrote them is answered. It costs one round trip, and none for what this process has
// told before. It may be told twice, late and in any order. A user whose counts it is not told
// goes, and so do the lists that have changed.
//
// Once it has returned, no look-up that begins on any gateway finds what was before; unless
// Redis could not be told. Then this gateway does not read Redis until it could, and the others
// may find what was before until then: for the TTL at most, if this process ends before.
//
// It does not fail, and goes on when the context ends.
func (c *Cache) Changed(ctx context.Context, what []storage.UserChange) {
	what = merged(slices.DeleteFunc(slices.Clone(what), c.told.has))
	if len(what) == 0 {
		return
	}
	if c.late.behind() || !c.breaker.allow() {
		c.late.add(what)
	} else if err := c.deliver(context.WithoutCancel(ctx), what); err != nil {
		c.late.add(what)
	}
}

// Then calls a function once Redis has been told of all changes until now. It must not wait.
func (c *Cache) Then(call func()) {
	if !c.late.then(call) {
		call()
	}
}

// merged has each user once.
func merged(what []storage.UserChange) []storage.UserChange {
	if len(what) == 1 {
		return what
	}
	at := make(map[storage.UserID]int, len(what))
	list := make([]storage.UserChange, 0, len(what))
	for _, w := range what {
		i, found := at[w.User]
		if !found {
			at[w.User] = len(list)
			list = append(list, w)
			continue
		}
		list[i] = list[i].And(w)
	}
	return list
}

// owners are the users of changes.
func owners(what []storage.UserChange) []storage.UserID {
	ids := make([]storage.UserID, len(what))
	for i, w := range what {
		ids[i] = w.User
	}
	return ids
}

// deliver tells Redis, under the epoch that is right when it is done: gateways that read
// under another one began to after what is told had been committed.
func (c *Cache) deliver(ctx context.Context, what []storage.UserChange) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	const attempts = 3
	for range attempts {
		e, err := c.currentEpoch(ctx)
		if err != nil {
			c.failed("learn")
			return err
		}
		if right, err := c.tell(ctx, e, what); err != nil {
			return fmt.Errorf("tell Redis of %d changed users: %w", len(what), err)
		} else if right {
			c.cfg.Metrics.changes.WithLabelValues("told").Add(float64(len(what)))
			c.told.add(what)
			return nil
		}
	}
	return errors.New("the epoch of Redis keeps changing")
}

// tell writes a command for each user, and then asks for the epoch: on one server in the
// same round trip, for it does one command after another. It is false if the epoch is over.
func (c *Cache) tell(ctx context.Context, e *epoch, what []storage.UserChange) (bool, error) {
	for some := range slices.Chunk(what, changesAtOnce) {
		pipe := c.cfg.Redis.Pipeline()
		for _, w := range some {
			c.tellOf(ctx, pipe, e, w)
		}
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

// tellOf tells of one user. If its counts are not known, what is kept of it goes, and with it
// whoever is filling it.
func (c *Cache) tellOf(ctx context.Context, pipe redis.Pipeliner, e *epoch, w storage.UserChange) {
	keys := []string{e.user(w.User)}
	if w.Forward {
		keys = append(keys, e.list(storage.Forward, w.User))
	}
	if w.Inverse {
		keys = append(keys, e.list(storage.Inverse, w.User))
	}
	if w.Counts.Version == 0 {
		pipe.Unlink(ctx, keys...)
		return
	}
	changed.call(ctx, pipe, keys,
		w.Counts.Version, w.Before, appendCounts(nil, w.Counts), c.leaseLife().Milliseconds(), inEight(w.Counts.Version))
}
