package cluster

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kith/replication"
	"kith/replication/binlog"
	"kith/storage"
	"kith/storage/sleep"
)

// How long a gateway waits before it follows the binlogs, again, and if a server's settings do not allow that.
const (
	followPause = time.Second
	unfitPause  = 30 * time.Second
)

// followLogs has a gateway without a Redis hear of what all processes commit: it follows the binlogs of all servers, as the replicator
// does, from their present ends. hearing is told of which shards it hears everything from that moment on.
func (c *Caches) followLogs(ctx context.Context, hearing func(shards []bool)) {
	for ctx.Err() == nil {
		c.followServers(ctx, hearing)
	}
}

// followServers follows each server for itself, so that one that is away takes nothing from the others, until the store has more shards.
func (c *Caches) followServers(ctx context.Context, hearing func(shards []bool)) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	addresses := c.store.Addresses()
	replication.OnGrown(ctx, c.store, len(addresses), end)
	var mu sync.Mutex
	heard := make([]bool, len(addresses))
	var following sync.WaitGroup
	for _, shards := range binlog.ByAddress(addresses) {
		following.Go(func() {
			c.followServer(ctx, storage.Chosen(addresses, shards), func(is bool) {
				mu.Lock()
				defer mu.Unlock()
				if heard[shards[0]] == is {
					return
				}
				for _, shard := range shards {
					heard[shard] = is
				}
				hearing(slices.Clone(heard))
			})
		})
	}
	following.Wait()
}

// followServer follows the server of some databases. hearing is told whether it does.
func (c *Caches) followServer(ctx context.Context, databases []string, hearing func(bool)) {
	told := ""
	for pause := followPause; sleep.For(ctx, pause) == nil; {
		if c.alone.Load() && !c.way.always { // a server may have no binlog, and need none
			continue
		}
		pause = followPause
		err := c.followDatabases(ctx, databases, hearing)
		hearing(false)
		if ctx.Err() != nil || err == nil {
			continue
		}
		if err.Error() != told {
			told = err.Error()
			c.cfg.Logger.WarnContext(ctx, "cannot follow the binlog: nothing of this server's shards is kept in memory while other processes use the store", "error", err)
		}
		if errors.As(err, new(*binlog.StopError)) {
			pause = unfitPause
		}
	}
}

// followDatabases follows until the binlog ends.
func (c *Caches) followDatabases(ctx context.Context, databases []string, hearing func(bool)) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	reader, err := binlog.OpenReader(ctx, databases, c.cfg.Logger)
	if err != nil {
		return err
	}
	defer reader.Close()
	var following sync.WaitGroup
	var heard atomic.Int64
	for _, log := range reader.Logs() { // several, if the address leads to one server after another
		following.Go(func() {
			end(log.Follow(ctx, c.store, func() {
				if heard.Add(1) == int64(len(reader.Logs())) {
					following.Go(func() {
						if sleep.For(ctx, binlog.BecomesVisible) == nil {
							c.bus.Send(ctx, storage.Change{Gap: true}) // subscriptions read what was written before
							hearing(true)
						}
					})
				}
			}, func(change storage.Change) { c.bus.Send(ctx, change) }))
		})
	}
	<-ctx.Done()
	hearing(false) // at once
	following.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
