package replication

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
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

// OnGrown calls a function once a store has more shards than a number, unless the context ends before that.
func OnGrown(ctx context.Context, store LogStore, than int, do func()) {
	grown := store.Grown(than)
	go func() {
		select {
		case <-grown:
			do()
		case <-ctx.Done():
		}
	}()
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
	f.to.Send(ctx, storage.Change{Rows: rowsOf(entries)})
	f.position = entries[len(entries)-1].Position
	if f.position <= keptRows || time.Since(f.pruned) < pruneEvery {
		return nil
	}
	f.pruned = time.Now()
	return f.log.PruneLog(ctx, f.shard, f.position-keptRows)
}

// RelationLog is the [Log] of a shard that has a relation_log. Its positions are numbers.
type RelationLog struct {
	Store LogStore
	Shard int
}

// Name implements [Log].
func (l RelationLog) Name() string { return "relation_log/" + strconv.Itoa(l.Shard) }

// Title implements [Log].
func (l RelationLog) Title() string { return fmt.Sprintf("relation_log of shard %d", l.Shard) }

// Begin implements [Log].
func (l RelationLog) Begin() string { return "0" }

// End implements [Log].
func (l RelationLog) End(ctx context.Context) (string, error) {
	last, err := l.Store.LastOfLog(ctx, l.Shard)
	return strconv.FormatInt(last, 10), err
}

// Read implements [Log]. Rows that are in the log can be read. Only rows are passed, some at a
// time.
func (l RelationLog) Read(ctx context.Context, from storage.Answerer, after, upTo string, take func(Changed) error) error {
	at, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: the position %q cannot be read", ErrLost, after)
	}
	end := int64(-1)
	if upTo != "" {
		if end, err = strconv.ParseInt(upTo, 10, 64); err != nil {
			return fmt.Errorf("the position %q: %w", upTo, err)
		}
	}
	last, err := l.Store.LastOfLog(ctx, l.Shard)
	if err == nil && last < at {
		err = fmt.Errorf("%w: it ends at %d, %d has been read", ErrLost, last, at)
	}
	if err == nil {
		err = ReadLog(ctx, l.Store, l.Shard, at, end, func(entries []storage.LogEntry) (err error) {
			if last := entries[len(entries)-1]; from == nil {
				return take(Changed{Change: storage.Change{Rows: rowsOf(entries)}, At: func() (string, error) { return last.At(), nil }})
			}
			for i := 0; i < len(entries) && err == nil; i++ {
				e := entries[i]
				err = take(Changed{Change: e.Change(), Comments: e.Comments(), ID: e.At(), At: func() (string, error) { return e.At(), nil }})
			}
			return err
		})
	}
	if errors.Is(err, storage.ErrLogPruned) {
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}

// rowsOf are the rows of edges among entries.
func rowsOf(entries []storage.LogEntry) (rows []storage.Row) {
	for _, e := range entries {
		if e.IsEdge() {
			rows = append(rows, e.Row)
		}
	}
	return rows
}
