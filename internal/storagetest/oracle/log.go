package oracle

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// A relationLog holds what [storage.LogReader] reads. Positions count from 1.
type relationLog struct {
	entries []storage.LogEntry
	last    int64 // the last position given
	pruned  int64 // the last position removed
}

// log is that of a shard.
func (s *Store) log(shard int) *relationLog {
	if s.logs[shard] == nil {
		return &relationLog{}
	}
	return s.logs[shard]
}

func (s *Store) addToLog(side storage.Side, edge storage.Edge) {
	shard := s.placed.Of(side.Owner(edge.Pair()))
	l := s.log(shard)
	s.logs[shard] = l
	l.last++
	l.entries = append(l.entries, storage.LogEntry{Position: l.last, Row: storage.Row{Side: side, Edge: edge}})
}

// HasLog reports that there is a relation_log.
func (s *Store) HasLog() bool { return true }

// LastOfLog is the position of the newest entry that the log has ever had, 0 at the beginning.
func (s *Store) LastOfLog(ctx context.Context, shard int) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.log(shard).last, nil
}

// ReadLog implements [storage.LogReader].
func (s *Store) ReadLog(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	log := s.log(shard)
	if after < log.pruned {
		return nil, fmt.Errorf("read the log behind %d: %w", after, storage.ErrLogPruned)
	}
	var entries []storage.LogEntry
	for _, entry := range log.entries {
		if entry.Position > after && len(entries) < limit {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// PruneLog implements [storage.LogReader].
func (s *Store) PruneLog(ctx context.Context, shard int, upTo int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log(shard)
	log.entries = slices.DeleteFunc(log.entries, func(e storage.LogEntry) bool { return e.Position <= upTo })
	log.pruned = max(log.pruned, min(upTo, log.last))
	return nil
}
