package localcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"kith/storage"
	"kith/storage/cache/idset"
)

// Users are numbered densely for their sets ([idset.Directory]), best in order of their ids. So the
// cache reads all of them once at the start, and again once many have come out of order. If a store
// has more users than fit, they are numbered as they occur, and not read again.

const (
	usersAtOnce = 10_000
	checkEvery  = time.Minute
	lateShare   = 8 // a directory is renewed when more than one in lateShare is out of order
)

// errTooMany means that a store has more users than fit.
var errTooMany = errors.New("there are too many users")

// Number keeps the directory in order until the context is done. atMost is how many users the directory may hold, 8 bytes
// each. It calls begun once there is a directory: lists that were read before are numbered by another one.
func (c *Cache) Number(ctx context.Context, users storage.ShardAnswerer, atMost int, logger *slog.Logger, begun func()) {
	ticks := time.NewTicker(checkEvery)
	defer ticks.Stop()
	renew, tooMany := true, false
	for {
		if renew {
			err := c.number(ctx, users, atMost)
			if tooMany = errors.Is(err, errTooMany); err != nil && ctx.Err() == nil {
				logger.WarnContext(ctx, "cannot number the users in order: sets take more memory and time", "error", err)
			}
		}
		if begun != nil {
			begun()
			begun = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		d := c.directory.Load()
		c.kept.share(d.Bytes())
		if d.Bytes() > 2*8*atMost { // it has grown by users who do not fit
			c.begin(idset.NewDirectory())
		}
		renew = !tooMany && d.Late() > max(usersAtOnce, d.Len()/lateShare)
	}
}

// number makes a directory of all users.
func (c *Cache) number(ctx context.Context, users storage.ShardAnswerer, atMost int) error {
	dir := idset.NewDirectory()
	all := mergedScan[storage.UserID]{
		compare: cmp.Compare[storage.UserID], limit: usersAtOnce, shards: make([]readAhead[storage.UserID], users.Shards()),
		read: func(ctx context.Context, shard int, after storage.UserID, limit int) ([]storage.UserID, error) {
			return storage.UserIDLookups.Get(ctx, users, storage.ShardQuery[storage.UserID]{Shard: shard, After: after, Limit: limit})
		},
	}
	batch := make([]storage.UserID, 0, usersAtOnce)
	for n := 0; ; n++ {
		id, ok, err := all.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if n == atMost {
			return fmt.Errorf("%w: more than %d", errTooMany, atMost)
		}
		batch = append(batch, id)
		if len(batch) == cap(batch) {
			dir.Learn(batch)
			batch = batch[:0]
		}
	}
	dir.Learn(batch)
	c.begin(dir)
	return nil
}

// begin numbers users by another directory. Entries and reads under way that the previous one numbers are forgotten.
// Everything else stays: the directory is made some time after the start, and is renewed later, when much has been read.
func (c *Cache) begin(dir *idset.Directory) {
	c.lockAll()
	defer c.unlockAll()
	c.directory.Store(dir) // flat lists of another directory are not found any more
	c.kept.share(dir.Bytes())
	for side := range c.lists {
		c.lists[side].abandonAll()
	}
	c.recommenders.abandonAll()
	for k, e := range c.kept.large.All() {
		if _, isList := e.(*list); isList {
			c.kept.large.Invalidate(k)
		}
	}
}
