package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"kith/replication"
	"kith/storage"
)

// RelationLogs are the logs of a store on an engine without a binlog, one for each shard.
func RelationLogs(store replication.LogStore) []Log {
	logs := make([]Log, store.Shards())
	for i := range logs {
		logs[i] = relationLog{store, i}
	}
	return logs
}

type relationLog struct {
	store replication.LogStore
	shard int
}

func (l relationLog) Name() string  { return "relation_log/" + strconv.Itoa(l.shard) }
func (l relationLog) Title() string { return fmt.Sprintf("relation_log of shard %d", l.shard) }
func (l relationLog) Begin() string { return "0" }

func (l relationLog) End(ctx context.Context) (string, error) {
	last, err := l.store.LastOfLog(ctx, l.shard)
	return strconv.FormatInt(last, 10), err
}

func (l relationLog) Read(ctx context.Context, after, upTo string, take func([]storage.Row, func() (string, error)) error) error {
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
	last, err := l.store.LastOfLog(ctx, l.shard)
	if err == nil && last < at {
		err = fmt.Errorf("%w: it ends at %d, %d has been read", ErrLost, last, at)
	}
	if err != nil {
		return err
	}
	err = replication.ReadLog(ctx, l.store, l.shard, at, end, func(entries []storage.LogEntry) error {
		rows := storage.Each(entries, func(e storage.LogEntry) storage.Row { return storage.Row{Side: e.Side, Edge: e.Edge} })
		return take(rows, func() (string, error) { return strconv.FormatInt(entries[len(entries)-1].Position, 10), nil })
	})
	if errors.Is(err, storage.ErrLogPruned) {
		err = fmt.Errorf("%w: %w", ErrLost, err)
	}
	return err
}
