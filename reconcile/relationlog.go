package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// LogStore is a store in which each shard has a relation_log.
type LogStore interface {
	storage.LogReader
	Shards() int
	// LastOfLog is the position of the newest entry that a shard's log has ever had.
	LastOfLog(ctx context.Context, shard int) (int64, error)
}

// RelationLogs are the logs of a store on an engine without a binlog.
func RelationLogs(store LogStore) Changes { return relationLogs{store} }

type relationLogs struct{ store LogStore }

func (r relationLogs) Logs() []Log {
	logs := make([]Log, r.store.Shards())
	for i := range logs {
		logs[i] = relationLog{r.store, i}
	}
	return logs
}

type relationLog struct {
	store LogStore
	shard int
}

const (
	entriesAtOnce = 1000

	// At its end, the log is read again after a pause, which grows while nothing comes.
	shortPause = 10 * time.Millisecond
	longPause  = 100 * time.Millisecond
)

func (l relationLog) Name() string  { return "relation_log/" + strconv.Itoa(l.shard) }
func (l relationLog) Title() string { return fmt.Sprintf("relation_log of shard %d", l.shard) }

func (l relationLog) End(ctx context.Context) (LogPosition, error) {
	last, err := l.store.LastOfLog(ctx, l.shard)
	return positionOf(last), err
}

func (l relationLog) Begin() LogPosition { return positionOf(0) }

func positionOf(position int64) LogPosition { return LogPosition(strconv.FormatInt(position, 10)) }

func (l relationLog) Read(ctx context.Context, after, upTo LogPosition, take func([]Row, func() (LogPosition, error)) error) error {
	at, err := strconv.ParseInt(string(after), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: the position %q cannot be read", ErrLost, after)
	}
	end := int64(-1)
	if upTo != "" {
		if end, err = strconv.ParseInt(string(upTo), 10, 64); err != nil {
			return fmt.Errorf("the position %q: %w", upTo, err)
		}
	}
	last, err := l.store.LastOfLog(ctx, l.shard)
	if err == nil && last < at {
		err = fmt.Errorf("%w: it ends at %d, %d has been read", ErrLost, last, at)
	}
	if err != nil {
		return err
	}
	for pause := shortPause; end < 0 || at < end; {
		limit := entriesAtOnce
		if end >= 0 {
			limit = int(min(entriesAtOnce, end-at))
		}
		entries, err := l.store.ReadLog(ctx, l.shard, at, limit)
		if errors.Is(err, storage.ErrLogPruned) {
			err = fmt.Errorf("%w: %w", ErrLost, err)
		}
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			if err := sleep.For(ctx, pause); err != nil {
				return err
			}
			pause = min(2*pause, longPause)
			continue
		}
		pause = shortPause
		at = entries[len(entries)-1].Position
		if err := take(rowsOf(entries), func() (LogPosition, error) { return positionOf(at), nil }); err != nil {
			return err
		}
	}
	return nil
}

func rowsOf(entries []storage.LogEntry) []Row {
	rows := make([]Row, len(entries))
	for i, e := range entries {
		rows[i] = Row{Side: e.Side, Edge: e.Edge}
	}
	return rows
}
