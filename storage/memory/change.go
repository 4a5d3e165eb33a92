package memory

import (
	"context"
	"fmt"

	"kith/storage"
)

// ChangeEdges implements [storage.EdgeChanger]. The Inverse side lies in the same
// database where the option [Together] says so.
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
	old := w.store.row(storage.Forward, pair)
	if old.Type == change.Type || (change.Type == storage.None && old.Type != endedBy(change)) {
		return storage.Changed{Row: old}, nil
	}
	if change.Type == storage.Following {
		if err := w.store.mayFollow(pair, o.MaxFollowing); err != nil {
			return storage.Changed{}, err
		}
	}
	w.store.activeOn(from, change.At)
	rows := w.write(storage.Forward, pair, change.Type, change.At)
	rows = append(rows, w.follow(storage.Forward, rows[0].Edge)...)
	if o.Inverse {
		rows = w.carry(rows)
	}
	return storage.Changed{Row: rows[0].Edge, Changed: true, Inverse: rows[0].Inverse, Also: rows[1:]}, nil
}

// mayFollow tells why a user may not follow another that it does not follow yet.
func (s *Store) mayFollow(pair storage.Pair, most int64) error {
	if s.blocked(pair) {
		return fmt.Errorf("user %d follows %d: %w", pair.From, pair.To, storage.ErrForbidden)
	}
	if follows := s.counts[pair.From].Following; most > 0 && follows >= most {
		return fmt.Errorf("user %d follows %d: %w", pair.From, follows, storage.ErrLimitReached)
	}
	return nil
}

// endedBy is the type that a change to None ends.
func endedBy(change storage.EdgeChange) storage.EdgeType {
	if change.Ends == storage.None {
		return storage.Following
	}
	return change.Ends
}
