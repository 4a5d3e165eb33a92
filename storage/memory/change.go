package memory

import (
	"context"
	"fmt"

	"kith/storage"
)

// ChangeEdges implements [storage.EdgeChanger]. There is one shard, so that the
// Inverse side of every edge lies on it.
func (s *Store) ChangeEdges(ctx context.Context, from storage.UserID, changes []storage.EdgeChange, o storage.ChangeOptions) []storage.Result[storage.Changed] {
	results := make([]storage.Result[storage.Changed], len(changes))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, counted := s.counts[from]; !counted {
		return refuse(results, fmt.Errorf("change edges of user %d: %w", from, storage.ErrUserUnknown))
	}
	w := s.writer()
	for i, change := range changes {
		changed, err := w.change(from, change, o)
		results[i] = storage.Result[storage.Changed]{Value: changed, Found: err == nil, Err: err}
	}
	w.commit()
	return results
}

func (w *writer) change(from storage.UserID, change storage.EdgeChange, o storage.ChangeOptions) (storage.Changed, error) {
	pair := storage.Pair{From: from, To: change.To}
	old, exists := w.store.edge(storage.Forward, pair)
	if !exists {
		old = storage.Edge{From: from, To: change.To}
	}
	if old.Type == change.Type {
		return storage.Changed{Row: old}, nil
	}
	follows := w.store.counts[from].Following
	if change.Type == storage.Following && o.MaxFollowing > 0 && follows >= o.MaxFollowing {
		return storage.Changed{}, fmt.Errorf("user %d follows %d: %w", from, follows, storage.ErrLimitReached)
	}
	edge := storage.Edge{From: from, To: change.To, Type: change.Type, UpdateTime: max(change.At, old.UpdateTime+1)}
	w.put(storage.Forward, edge)
	return storage.Changed{
		Row:     edge,
		Changed: true,
		Inverse: o.Inverse && w.apply(storage.Inverse, edge, storage.IfNewer).Changed,
	}, nil
}
