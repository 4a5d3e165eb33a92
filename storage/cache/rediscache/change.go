package rediscache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
)

const (
	// changesAtOnce is how many changes one round trip carries.
	changesAtOnce = 500
	// changeTimeout ends one whole call of Changed.
	changeTimeout = 2 * time.Second
)

// Changed reports to Redis users whose rows have been written: after the commit, and before the
// writer answers. It costs one round trip. Redis drops what it keeps of these users, and those lists that have changed, if it is older; if a
// user's counts are not given, in any case. The same change may be reported twice, late and in any order.
//
// Once Changed has returned, no look-up that begins on any gateway finds older values, unless the
// change could not be reported. In that case this gateway does not read Redis until it has reported
// it, and the others may find older values until then: for the TTL at most, if this process ends
// before.
//
// It does not fail, and it continues after the context ends.
func (c *Cache) Changed(ctx context.Context, what []storage.UserChange) {
	what = perUser(what)
	if len(what) == 0 {
		return
	}
	if c.late.behind() || !c.breaker.allow() || c.deliver(context.WithoutCancel(ctx), what) != nil {
		c.late.add(what)
	}
}

// Behind reports whether Redis lacks changes that were to be reported to it.
func (c *Cache) Behind() bool { return c.late.behind() }

// perUser combines the changes of each user into one.
func perUser(what []storage.UserChange) []storage.UserChange {
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

// deliver reports to Redis under the epoch that is valid when it is done: a gateway that reads under
// another epoch began to do so after the changes had been committed.
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
		if right, err := c.report(ctx, e, what); err != nil {
			return fmt.Errorf("report %d changed users to Redis: %w", len(what), err)
		} else if right {
			c.cfg.Metrics.changes.WithLabelValues("reported").Add(float64(len(what)))
			return nil
		}
	}
	return errors.New("the epoch of Redis keeps changing")
}

// report writes a command for each user, and then asks for the epoch. On one server that takes the
// same round trip, because commands run one after another. It returns false if the epoch is over.
func (c *Cache) report(ctx context.Context, e *epoch, what []storage.UserChange) (bool, error) {
	for some := range slices.Chunk(what, changesAtOnce) {
		pipe := c.cfg.Redis.Pipeline()
		for _, w := range some {
			c.reportUser(ctx, pipe, e, w)
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

// reportUser reports one user. If its counts are not known, it removes what is kept of the user, and
// with it the leases of those filling it.
func (c *Cache) reportUser(ctx context.Context, pipe redis.Pipeliner, e *epoch, w storage.UserChange) {
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
	changed.EvalSha(ctx, pipe, keys, w.Counts.Version, inEight(w.Counts.Version), c.leaseLife().Milliseconds())
}

// inEight is a version as written in marks.
func inEight(version int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(version)) }
