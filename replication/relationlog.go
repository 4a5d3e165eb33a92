package replication

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// ErrLost means that a log does not continue from a position, or does not say row by row what was
// changed after it. Later changes cannot be known, and a full scan has to find what they left.
var ErrLost = errors.New("the log does not have all that has changed since; run kith reconcile full")

// A LogStore is a store on an engine without a binlog, in which each shard has a relation_log.
type LogStore interface {
	storage.LogReader
	Shards() int
	// Grown returns a channel that is closed once there are more shards than a number.
	Grown(than int) <-chan struct{}
	// LastOfLog is the position of the newest entry that a shard's log has ever had.
	LastOfLog(ctx context.Context, shard int) (int64, error)
}

const (
	// At its end, a log is read again after a pause, which grows while nothing is written.
	shortPause = 10 * time.Millisecond
	longPause  = 100 * time.Millisecond

	entriesAtOnce = 1000

	// At intervals, all entries but the last keptRows are removed.
	pruneEvery = time.Minute
	keptRows   = 100_000
)

// ReadLog passes the entries of a shard's relation_log after a position to take, some at a time, in order. It ends at the
// position upTo or, if that is negative, goes on without end.
func ReadLog(ctx context.Context, log LogStore, shard int, after, upTo int64, take func([]storage.LogEntry) error) error {
	for pause := shortPause; upTo < 0 || after < upTo; {
		limit := int64(entriesAtOnce)
		if upTo >= 0 {
			limit = min(limit, upTo-after)
		}
		entries, err := log.ReadLog(ctx, shard, after, int(limit))
		if err == nil && len(entries) > 0 {
			after, pause = entries[len(entries)-1].Position, shortPause
			err = take(entries)
		}
		if err == nil && len(entries) < int(limit) {
			err = sleep.For(ctx, pause)
			pause = min(2*pause, longPause)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A Sender publishes what has changed.
type Sender interface {
	Send(ctx context.Context, c storage.Change)
}

// FollowLogs follows the relation_logs of all shards from their present end until the context is done. So rows that an import
// or another gateway on the same file writes reach subscriptions and caches as well. The states of users are not in the
// log; gateways read those again every second.
func FollowLogs(ctx context.Context, log LogStore, to Sender, logger *slog.Logger) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for shard := 0; ; shard++ {
		select {
		case <-ctx.Done():
			return
		case <-log.Grown(shard):
			f := &logFollower{log: log, shard: shard, to: to, position: -1}
			wg.Go(func() { f.run(ctx, logger) })
		}
	}
}

// logFollower follows one shard's log.
type logFollower struct {
	log      LogStore
	shard    int
	to       Sender
	position int64 // −1: the end of the log, which is not known yet
	missed   bool  // entries were removed before they were read
	pruned   time.Time
}

func (f *logFollower) run(ctx context.Context, logger *slog.Logger) {
	for ctx.Err() == nil {
		if err := f.follow(ctx); err != nil && ctx.Err() == nil {
			logger.WarnContext(ctx, "cannot follow the relation_log", "shard", f.shard, "error", err)
			_ = sleep.For(ctx, 10*longPause)
		}
	}
}

func (f *logFollower) follow(ctx context.Context) error {
	if f.position < 0 {
		last, err := f.log.LastOfLog(ctx, f.shard)
		if err != nil {
			return err
		}
		if f.position = last; f.missed {
			f.missed = false
			f.to.Send(ctx, storage.Change{Gap: true})
		}
	}
	err := ReadLog(ctx, f.log, f.shard, f.position, -1, func(entries []storage.LogEntry) error { return f.take(ctx, entries) })
	if errors.Is(err, storage.ErrLogPruned) {
		f.position, f.missed, err = -1, true, nil
	}
	return err
}

// take publishes entries, and removes old ones.
func (f *logFollower) take(ctx context.Context, entries []storage.LogEntry) error {
	f.to.Send(ctx, storage.Change{Rows: storage.Each(entries, func(e storage.LogEntry) storage.Row { return e.Row })})
	f.position = entries[len(entries)-1].Position
	if f.position <= keptRows || time.Since(f.pruned) < pruneEvery {
		return nil
	}
	f.pruned = time.Now()
	return f.log.PruneLog(ctx, f.shard, f.position-keptRows)
}
