package cluster

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

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
func (c *Caches) followLogs(ctx context.Context, hearing func(bool), logger *slog.Logger) {
	told := ""
	for pause := followPause; sleep.For(ctx, pause) == nil; {
		if c.alone.Load() && !c.way.always { // a server may have no binlog, and need none
			continue
		}
		pause = followPause
		err := c.followServers(ctx, hearing, logger)
		hearing(false)
		if ctx.Err() != nil || err == nil {
			continue
		}
		if err.Error() != told {
			told = err.Error()
			logger.WarnContext(ctx, "cannot follow the binlog: the cache stays off while other processes use the store", "error", err)
		}
		if unfit := (*binlog.StopError)(nil); errors.As(err, &unfit) {
			pause = unfitPause
		}
	}
}

// followServers follows until the first binlog ends, or the store has more shards.
func (c *Caches) followServers(ctx context.Context, hearing func(bool), logger *slog.Logger) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	addresses := c.store.Addresses()
	reader, err := binlog.OpenReader(ctx, addresses, logger)
	if err != nil {
		return err
	}
	defer reader.Close()
	var following sync.WaitGroup
	var heard atomic.Int64
	for _, log := range reader.Logs() {
		news := &logNews{caches: c, came: make(chan struct{}, 1)}
		following.Go(func() { news.pass(ctx) })
		following.Go(func() {
			end(log.Follow(ctx, func() {
				if heard.Add(1) == int64(len(reader.Logs())) {
					following.Go(func() {
						if sleep.For(ctx, becomesVisible) == nil { // what the log ends with may not be visible yet
							hearing(true)
						}
					})
				}
			}, news.add))
		})
	}
	following.Go(func() {
		select {
		case <-c.store.Grown(len(addresses)):
			end(nil)
		case <-ctx.Done():
		}
	})
	<-ctx.Done()
	hearing(false) // at once
	following.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// logNews is what one log has shown and has not been passed on. A server logs a transaction before others can read what it has
// written. They become visible in the order of the log: if what the last one leaves can be read, all of them can.
type logNews struct {
	caches *Caches
	came   chan struct{}

	mu   sync.Mutex
	sum  storage.Change
	last binlog.Left // by the last transaction
}

// becomesVisible is how long it may take until what is in the log can be read, if nothing shows that.
const becomesVisible = 100 * time.Millisecond

// mostNews is how many rows wait. If there are more, all is forgotten instead.
const mostNews = 1 << 16

func (n *logNews) add(c storage.Change, left binlog.Left) {
	n.mu.Lock()
	if n.sum.Add(c); len(n.sum.Rows)+len(n.sum.Users)+len(n.sum.Posts) > mostNews {
		n.sum = storage.Change{Gap: true}
	}
	n.last = left
	n.mu.Unlock()
	select {
	case n.came <- struct{}{}:
	default:
	}
}

// pass passes on all that has come together, until the context is done.
func (n *logNews) pass(ctx context.Context) {
	for {
		select {
		case <-n.came:
		case <-ctx.Done():
			return
		}
		n.mu.Lock()
		sum, last := n.sum, n.last
		n.sum = storage.Change{}
		n.mu.Unlock()
		if last.Author == 0 {
			_ = sleep.For(ctx, becomesVisible)
		}
		for end := time.Now().Add(binlog.AllVisible); !last.Visible(ctx, n.caches.store) && time.Now().Before(end) && sleep.For(ctx, time.Millisecond) == nil; {
		}
		n.caches.bus.Send(ctx, sum)
	}
}
