package cluster

import (
	"context"
	"errors"
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
// does, from their present ends. hearing is told whether it hears of everything from that moment on.
func (c *Caches) followLogs(ctx context.Context, hearing func(bool)) {
	told := ""
	for pause := followPause; sleep.For(ctx, pause) == nil; {
		if c.alone.Load() && !c.way.always { // a server may have no binlog, and need none
			continue
		}
		pause = followPause
		err := c.followServers(ctx, hearing)
		hearing(false)
		if ctx.Err() != nil || err == nil {
			continue
		}
		if err.Error() != told {
			told = err.Error()
			c.cfg.Logger.WarnContext(ctx, "cannot follow the binlog: the cache stays off while other processes use the store", "error", err)
		}
		if errors.As(err, new(*binlog.StopError)) {
			pause = unfitPause
		}
	}
}

// followServers follows until the first binlog ends, or the store has more shards.
func (c *Caches) followServers(ctx context.Context, hearing func(bool)) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	addresses := c.store.Addresses()
	reader, err := binlog.OpenReader(ctx, addresses, c.cfg.Logger)
	if err != nil {
		return err
	}
	defer reader.Close()
	var following sync.WaitGroup
	var heard atomic.Int64
	for _, log := range reader.Logs() {
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
	replication.OnGrown(ctx, c.store, len(addresses), func() { end(nil) })
	<-ctx.Done()
	hearing(false) // at once
	following.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}
