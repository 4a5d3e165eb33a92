package oracle

import (
	"maps"
	"slices"

	"kith/storage"
)

// findProfiles answers [storage.ProfileLookups].
func (s *Store) findProfiles(id storage.UserID) (storage.Profile, bool) {
	var p storage.Profile
	p.User, p.Exists = s.users[id]
	p.Counts, p.Counted = s.counts[id]
	return p, p.Exists || p.Counted
}

// findLists answers [storage.SnapshotLookups].
func (s *Store) findLists(side storage.Side, q storage.ListQuery) (storage.List, bool) {
	counts := s.counts[q.Owner]
	list := storage.List{Version: counts.Version}
	if counts.Of(side) > int64(q.Longest) {
		list.Long = true
		return list, true
	}
	for _, edge := range s.byPeer(side, q.Owner) {
		if !edge.Type.HasEnded() || edge.UpdateTime >= q.EndedSince {
			list.Edges = append(list.Edges, edge)
		}
	}
	return list, true
}

// findUserIDsAfter answers [storage.UserIDLookups].
func (s *Store) findUserIDsAfter(q storage.ShardQuery[storage.UserID]) ([]storage.UserID, bool) {
	ids := slices.Sorted(maps.Keys(on(s, q.Shard, s.users, itself)))
	ids = slices.DeleteFunc(ids, func(id storage.UserID) bool { return id <= q.After })
	return ids[:min(len(ids), q.Limit)], true
}
