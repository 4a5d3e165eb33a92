package localcache

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/finding"
	"kith/storage/sleep"
)

// A gateway that has just started would read everything for the first time, when it is asked. So it reads the users who are
// followed most, with their lists, in the background: straight from the store, which does not fill Redis with
// what nobody may ask for. It takes one connection to each shard, for half of the time at most while requests come, and stops when the memory is nearly full.

const (
	// warmAtOnce is how many users are read at once: a request that misses one of them waits for all.
	warmAtOnce = 64
	// ranksAtOnce is how many ranks are read ahead of each shard.
	ranksAtOnce = 2048
	// warmPercent is how much of the memory warming up fills. Answers to requests need room, too.
	warmPercent = 75
)

// Ranker lists users by their ranks.
type Ranker interface {
	// Ranked lists users of one shard who come behind a rank, at most limit. The zero rank comes before all.
	Ranked(ctx context.Context, shard int, after finding.Rank, limit int) ([]finding.Rank, error)

	Shards() int
}

// WarmUp plans to read users with their lists into memory, which the returned function does: the most followed first, until the memory is
// three quarters full, all are read, or the context is done. While the cache is not on, or does not hear of all shards, it waits. Users without followers are left to
// requests. An error of the store ends it.
func (c *Cache) WarmUp(users Ranker, logger *slog.Logger) (run func(context.Context)) {
	c.metrics.warming.Set(1) // so that nobody takes the time before it for the time after it
	return func(ctx context.Context) { c.warmUp(ctx, users, logger) }
}

func (c *Cache) warmUp(ctx context.Context, users Ranker, logger *slog.Logger) {
	began, read := time.Now(), 0
	defer c.metrics.warming.Set(0)
	ranks := &mergedScan[finding.Rank]{compare: compareRanks, read: users.Ranked, limit: ranksAtOnce, shards: make([]readAhead[finding.Rank], users.Shards())}
	for !c.isWarm() {
		if !c.IsOn() || c.heard.Load() != nil {
			if sleep.For(ctx, 100*time.Millisecond) != nil {
				return
			}
			continue
		}
		beganBatch := time.Now()
		c.requested.Store(false)
		ids, err := nextRanked(ctx, ranks, warmAtOnce)
		if err == nil {
			err = c.warm(ctx, ids)
		}
		pause := time.Duration(0)
		if c.requested.Load() {
			pause = time.Since(beganBatch)
		}
		if err != nil || len(ids) == 0 || sleep.For(ctx, pause) != nil {
			if err != nil && ctx.Err() == nil {
				logger.WarnContext(ctx, "warm-up ended early", "users", read, "error", err)
				return
			}
			break
		}
		read += len(ids)
		c.metrics.warmed.Add(float64(len(ids)))
	}
	if ctx.Err() == nil {
		logger.InfoContext(ctx, "warmed up", "users", read, "bytes", c.kept.taken(), "took", time.Since(began).Round(time.Millisecond).String())
	}
}

// isWarm reports that there is no more room for what nobody has asked for.
func (c *Cache) isWarm() bool {
	return c.kept.taken()+uint64(c.directory.Load().Bytes()) >= c.kept.bytes/100*warmPercent
}

// warm reads some users with their lists, unless they are kept already.
func (c *Cache) warm(ctx context.Context, ids []storage.UserID) error {
	for _, r := range c.profilesFrom(c.store).fetch(ctx, ids) {
		if r.Err != nil {
			return r.Err
		}
	}
	for _, side := range listSides {
		if err := c.warmLists(ctx, side, ids); err != nil {
			return err
		}
	}
	recommenders := c.recommendersBy(c.recommendersInMemory)
	recommenders.warming = true
	recommenders.fetch(ctx, ids)
	return nil
}

func (c *Cache) warmLists(ctx context.Context, side storage.Side, ids []storage.UserID) error {
	fromStore := func(ctx context.Context, side storage.Side, owners []storage.UserID, floor storage.Micros) []storage.Result[*list] {
		return c.readLists(ctx, c.store, side, owners, c.longest, floor)
	}
	lists := c.listsBy(ctx, side, fromStore)
	lists.warming = true
	for i, r := range lists.fetch(ctx, ids) {
		if r.Err != nil {
			return r.Err
		}
		if r.Found || c.kept.large.WeightedSize() > c.kept.bytes/(2*largeShare) {
			continue
		}
		k := key{kind: listKind(side), id: ids[i]}
		if e, there := c.find(k); there {
			if l, isLong := e.(*long); isLong {
				c.building.Lock()
				c.readLong(ctx, side, k, l.asked)
				c.building.Unlock()
			}
		}
	}
	return nil
}

// noFollowers is the class of users without followers.
const noFollowers = 100

// nextRanked takes the next users, fewer than n only at the end.
func nextRanked(ctx context.Context, ranks *mergedScan[finding.Rank], n int) ([]storage.UserID, error) {
	ids := make([]storage.UserID, 0, n)
	for len(ids) < n {
		rank, ok, err := ranks.next(ctx)
		if err != nil {
			return nil, err
		}
		if !ok || rank.Class <= noFollowers {
			break
		}
		ids = append(ids, rank.User)
	}
	slices.Sort(ids) // users of near ids are near in the tables
	return ids, nil
}

func compareRanks(a, b finding.Rank) int {
	return cmp.Or(cmp.Compare(b.Class, a.Class), cmp.Compare(b.ActiveDay, a.ActiveDay), cmp.Compare(b.User, a.User))
}
