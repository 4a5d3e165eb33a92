// Package tail follows the relation_log of an engine without a binlog. So rows that an import or
// another gateway on the same file writes beside a running gateway reach its subscriptions and
// caches as well.
package tail

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"kith/storage"
	"kith/storage/events"
)

// Log is a store with a relation_log.
type Log interface {
	storage.LogReader
	// Grown returns a channel that is closed once there are more shards than a number.
	Grown(than int) <-chan struct{}
	// LastOfLog is the position of the newest entry that a shard's log has ever had.
	LastOfLog(ctx context.Context, shard int) (int64, error)
}

// Publisher publishes what has changed.
type Publisher interface {
	Send(ctx context.Context, list ...events.Event)
}

const (
	// The log is read again after a pause, which grows while nothing is written.
	shortPause = 10 * time.Millisecond
	longPause  = 100 * time.Millisecond

	batch = 1000

	// At intervals, all entries but the last kept ones are removed.
	pruneEvery = time.Minute
	kept       = 100_000
)

// Run follows the logs of all shards from their present end until the context is done. Rows of
// inverse tables become events: by then both sides have them. The states of users are not in the
// log; gateways read those again every second.
func Run(ctx context.Context, log Log, publisher Publisher, logger *slog.Logger) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for shard := 0; ; shard++ {
		select {
		case <-ctx.Done():
			return
		case <-log.Grown(shard):
			f := &follower{log: log, shard: shard, publisher: publisher, logger: logger}
			wg.Go(func() { f.run(ctx) })
		}
	}
}

// follower follows one shard's log.
type follower struct {
	log       Log
	shard     int
	publisher Publisher
	logger    *slog.Logger

	position int64
	pruned   time.Time
}

func (f *follower) run(ctx context.Context) {
	pause := shortPause
	for started := false; ; {
		var read int
		var err error
		if started {
			read, err = f.step(ctx)
		} else {
			f.position, err = f.log.LastOfLog(ctx, f.shard)
			started = err == nil
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.logger.WarnContext(ctx, "cannot follow the relation_log", "shard", f.shard, "error", err)
			pause = 10 * longPause
		case read > 0:
			pause = shortPause
		default:
			pause = min(2*pause, longPause)
		}
		if read == batch {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// step publishes the next entries and returns their number.
func (f *follower) step(ctx context.Context) (int, error) {
	entries, err := f.log.ReadLog(ctx, f.shard, f.position, batch)
	if errors.Is(err, storage.ErrLogPruned) {
		if f.position, err = f.log.LastOfLog(ctx, f.shard); err == nil {
			f.publisher.Send(ctx, events.Event{Kind: events.Gap})
		}
		return 0, err
	}
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	var list []events.Event
	for _, e := range entries {
		if e.Side.IsInverse() {
			list = append(list, events.Row(storage.Row{Side: e.Side.Truth(), Edge: e.Edge}))
		}
	}
	if len(list) > 0 {
		f.publisher.Send(ctx, list...)
	}
	f.position = entries[len(entries)-1].Position
	return len(entries), f.prune(ctx)
}

func (f *follower) prune(ctx context.Context) error {
	if f.position <= kept || time.Since(f.pruned) < pruneEvery {
		return nil
	}
	f.pruned = time.Now()
	return f.log.PruneLog(ctx, f.shard, f.position-kept)
}
