package rediscache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/epoch"
	"kith/storage/sleep"
	"kith/storage/wire"
)

const (
	changeTime = time.Second           // ends a report of changes
	mostLate   = 10_000                // changed users are remembered while Redis is away; if there are more, a new epoch begins
	atOnce     = 1000                  // of them are reported by one exchange: some 14 ms for Redis, of the 100 that it may take
	firstPause = 20 * time.Millisecond // before a Redis that is left alone is tried, then twice as long …
	longPause  = time.Second           // … up to this
)

// Changed reports users whose rows have been written: after the commit, and before the writer answers, by one exchange unless they are
// many. The same change may be reported twice, late and in any order.
//
// Once Changed has returned, no look-up that begins on any gateway finds older values, unless the change could not be reported. In that
// case this gateway does not read Redis until it has reported it, and the others may find older values until then: for the time to live
// at most, if this process ends before.
//
// It does not fail, and it continues after the context ends.
func (c *Cache) Changed(ctx context.Context, what []storage.UserChange) {
	if len(what) > 0 && (c.behind.Load() || c.report(context.WithoutCancel(ctx), what) != nil) {
		c.leave(storage.Each(what, func(w storage.UserChange) storage.UserID { return w.User })...)
	}
}

// Behind reports whether Redis may lack changes that were to be reported to it.
func (c *Cache) Behind() bool { return c.behind.Load() }

// Empty begins a new epoch: nobody reads what was kept until now. It is for changes that are unknown. If that fails, it is done as soon as
// Redis can be reached, and everybody is corrected then.
func (c *Cache) Empty(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	err := c.clock.Begin(ctx)
	if err != nil {
		c.mu.Lock()
		c.all = true
		c.mu.Unlock()
		c.leave()
	}
	return err
}

// report reports changes under the epoch that is valid when it is done: a gateway that reads under another one began to do so after the
// changes had been committed.
func (c *Cache) report(ctx context.Context, what []storage.UserChange) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	for range 3 {
		e, err := c.clock.Known(ctx)
		if err != nil {
			return err
		}
		pipe := c.clock.Redis.Pipeline()
		_, cluster := c.clock.Redis.(*redis.ClusterClient)
		for i, w := range what {
			keys := []string{key(e, "user", w.User)}
			if w.What.Has(storage.Leaving | storage.Missed) {
				keys = append(keys, key(e, storage.Forward.String(), w.User))
			}
			if w.What.Has(storage.Entering | storage.Missed) {
				keys = append(keys, key(e, storage.Inverse.String(), w.User))
			}
			changed.EvalSha(ctx, pipe, keys, c.form, w.Counts.Version, w.Before, leaseLife.Milliseconds(), string(wire.AppendCounts(nil, w.Counts)))
			// One server runs commands one after another. In a cluster the epoch is asked for when they have been run.
			if pipe.Len() == atOnce || cluster && i == len(what)-1 {
				if err := c.exchange(ctx, pipe); err != nil {
					return err
				}
				pipe = c.clock.Redis.Pipeline()
			}
		}
		name := c.clock.Ask(ctx, pipe)
		if err := c.exchange(ctx, pipe); err != nil || e.Confirmed(name) {
			return err
		}
	}
	return errors.New("the epoch of Redis keeps changing")
}

// leave leaves Redis alone, because it has not answered or lacks changes of some users, until it can be reached and has them.
func (c *Cache) leave(users ...storage.UserID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remember(users)
	if !c.behind.Swap(true) && c.closed.Err() == nil {
		c.running.Go(func() {
			for pause := firstPause; sleep.For(c.closed, pause) == nil && !c.catchUp(); {
				pause = min(2*pause, longPause)
			}
		})
	}
}

// remember remembers users whose changes are to be reported. Its caller holds the lock.
func (c *Cache) remember(users []storage.UserID) {
	for _, id := range users {
		c.users[id] = true
	}
	if len(c.users) > c.mostLate {
		clear(c.users)
		c.all = true
	}
	c.late.Set(float64(len(c.users)))
}

// catchUp reports all remembered changes; those that could not be reported stay. Their contents do not matter any more: all
// gateways forget these users afterwards.
func (c *Cache) catchUp() (done bool) {
	c.mu.Lock()
	users, all := slices.Collect(maps.Keys(c.users)), c.all
	clear(c.users)
	c.all = false
	c.mu.Unlock()
	var err error
	if all {
		if err, users = c.Empty(c.closed), nil; err == nil {
			c.corrected(nil)
			all = false
		}
	}
	for len(users) > 0 && err == nil { // a slow Redis is not told from the beginning again
		some := users[:min(atOnce, len(users))]
		if err = c.report(c.closed, storage.Each(some, func(id storage.UserID) storage.UserChange {
			return storage.UserChange{User: id, What: storage.Missed}
		})); err == nil {
			c.corrected(some)
			users = users[len(some):]
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = c.all || all
	c.remember(users)
	c.behind.Store(err != nil || c.all || len(c.users) > 0)
	return !c.behind.Load()
}

// key is that of a value of a user. All keys of a user are in one slot of a cluster, which the part in braces determines.
func key(e *epoch.Epoch, kind string, id storage.UserID) string {
	return e.Keys + "{" + id.String() + "}:" + kind
}
