package oracle

import (
	"context"
	"maps"
	"slices"

	"kith/storage"
)

// readProfiles answers [storage.ProfileLookups].
func (s *Store) readProfiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return lookUp(ctx, s, ids, func(id storage.UserID) (storage.Profile, bool) {
		var p storage.Profile
		p.User, p.Exists = s.users[id]
		p.Counts, p.Counted = s.counts[id]
		return p, p.Exists || p.Counted
	})
}

// readLists answers [storage.SnapshotLookups].
func (s *Store) readLists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	return lookUp(ctx, s, queries, func(q storage.ListQuery) (storage.List, bool) {
		counts := s.counts[q.Owner]
		list := storage.List{Version: counts.Version}
		if counts.Of(side) > int64(q.Longest) {
			list.Long = true
			return list, true
		}
		for _, edge := range s.byPeer(side, q.Owner) {
			if edge.Type != storage.None || edge.UpdateTime >= q.EndedSince {
				list.Edges = append(list.Edges, edge)
			}
		}
		return list, true
	})
}

// UserIDsAfter implements [storage.UserLister]. All users are on the one shard.
func (s *Store) UserIDsAfter(ctx context.Context, _ int, after storage.UserID, limit int) ([]storage.UserID, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	ids := slices.Sorted(maps.Keys(s.users))
	ids = slices.DeleteFunc(ids, func(id storage.UserID) bool { return id <= after })
	return ids[:min(len(ids), limit)], nil
}
