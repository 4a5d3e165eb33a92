package rediscache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/storage"
	"kith/storage/cache/packing"
)

const (
	// changesAtOnce is how many changes one round trip carries.
	changesAtOnce = 500
	// changeTimeout ends one whole call of Changed.
	changeTimeout = 2 * time.Second
)

// Changed reports to Redis users whose rows have been written: after the commit, and before the
// writer answers. It costs one round trip, and none for what this process has already reported. The
// same change may be reported twice, late and in any order. If a user's counts are not given, Redis
// drops what it keeps of the user; it drops the lists that have changed, too. If anything about a user may
// have changed, it drops the user's posts as well; a given post without a number stands for all posts of its author.
//
// Once Changed has returned, no look-up that begins on any gateway finds older values, unless the
// change could not be reported. In that case this gateway does not read Redis until it has reported
// it, and the others may find older values until then: for the TTL at most, if this process ends
// before.
//
// It does not fail, and it continues after the context ends.
func (c *Cache) Changed(ctx context.Context, what []storage.UserChange, posts ...storage.PostVersion) {
	what = merged(slices.DeleteFunc(slices.Clone(what), c.reported.has))
	if len(what)+len(posts) == 0 {
		return
	}
	if c.late.behind() || !c.breaker.allow() {
		c.late.add(what, posts)
	} else if err := c.deliver(context.WithoutCancel(ctx), what, posts); err != nil {
		c.late.add(what, posts)
	}
}

// Behind reports whether Redis lacks changes that were to be reported to it.
func (c *Cache) Behind() bool { return c.late.behind() }

// merged combines the changes of each user into one.
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

// owners are the users of changes, and the authors of posts.
func owners(what []storage.UserChange, posts []storage.PostVersion) []storage.UserID {
	ids := make([]storage.UserID, 0, len(what)+len(posts))
	for _, w := range what {
		ids = append(ids, w.User)
	}
	for _, p := range posts {
		ids = append(ids, p.Author)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// deliver reports to Redis under the epoch that is valid when it is done: a gateway that reads under
// another epoch began to do so after the changes had been committed.
func (c *Cache) deliver(ctx context.Context, what []storage.UserChange, posts []storage.PostVersion) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	const attempts = 3
	for range attempts {
		e, err := c.currentEpoch(ctx)
		if err != nil {
			c.failed("learn")
			return err
		}
		if right, err := c.report(ctx, e, what, posts); err != nil {
			return fmt.Errorf("report %d changed users and %d posts to Redis: %w", len(what), len(posts), err)
		} else if right {
			c.cfg.Metrics.changes.WithLabelValues("reported").Add(float64(len(what) + len(posts)))
			c.reported.add(what)
			return nil
		}
	}
	return errors.New("the epoch of Redis keeps changing")
}

// report writes a command for each user and each post, and then asks for the epoch. On one server that takes the
// same round trip, because commands run one after another. It returns false if the epoch is over.
func (c *Cache) report(ctx context.Context, e *epoch, what []storage.UserChange, posts []storage.PostVersion) (bool, error) {
	for begin := 0; begin < len(what)+len(posts); begin += changesAtOnce {
		pipe := c.cfg.Redis.Pipeline()
		for i := begin; i < min(begin+changesAtOnce, len(what)+len(posts)); i++ {
			if i < len(what) {
				c.reportUser(ctx, pipe, e, what[i])
			} else {
				c.reportPost(ctx, pipe, e, posts[i-len(what)])
			}
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
		if w.Forward && w.Inverse {
			keys = append(keys, e.stamp(w.User))
		}
		pipe.Unlink(ctx, keys...)
		return
	}
	var profile []byte
	if w.Profile != nil {
		profile = packing.AppendProfile(nil, storage.Profile{User: *w.Profile, Exists: true, Counted: true})
	}
	changed.call(ctx, pipe, keys,
		w.Counts.Version, w.Before, packing.AppendCounts(nil, w.Counts), c.leaseLife().Milliseconds(), inEight(w.Counts.Version), profile)
}
