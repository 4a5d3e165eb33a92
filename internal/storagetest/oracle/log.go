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

func (l *relationLog) add(side storage.Side, edge storage.Edge) {
	l.last++
	l.entries = append(l.entries, storage.LogEntry{Position: l.last, Row: storage.Row{Side: side, Edge: edge}})
}

// HasLog reports that there is a relation_log.
func (s *Store) HasLog() bool { return true }

// LastOfLog is the position of the newest entry that the log has ever had, 0 at the beginning.
func (s *Store) LastOfLog(ctx context.Context, _ int) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.log.last, nil
}

// ReadLog implements [storage.LogReader].
func (s *Store) ReadLog(ctx context.Context, _ int, after int64, limit int) ([]storage.LogEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if after < s.log.pruned {
		return nil, fmt.Errorf("read the log behind %d: %w", after, storage.ErrLogPruned)
	}
	var entries []storage.LogEntry
	for _, entry := range s.log.entries {
		if entry.Position > after && len(entries) < limit {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// PruneLog implements [storage.LogReader].
func (s *Store) PruneLog(ctx context.Context, _ int, upTo int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.entries = slices.DeleteFunc(s.log.entries, func(e storage.LogEntry) bool { return e.Position <= upTo })
	s.log.pruned = max(s.log.pruned, min(upTo, s.log.last))
	return nil
}
