package oracle

import (
	"slices"

	"kith/storage"
)

// findBlocks answers [storage.BlockLookups].
func (s *Store) findBlocks(user storage.UserID) ([]storage.UserID, bool) {
	var list []storage.UserID
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for _, edge := range s.byPeer(side, user) {
			if edge.Type == storage.Blocking {
				list = append(list, side.Peer(edge.Pair()))
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list), true
}

// findCountEdges answers [storage.EdgeCountLookups].
func (s *Store) findCountEdges(side storage.Side, q storage.EdgeCountQuery) (int, bool) {
	n := 0
	for _, edge := range s.byPeer(side, q.Owner) {
		if edge.Type == max(q.Type, storage.Following) && (q.Since == 0 || edge.UpdateTime > q.Since) {
			n++
		}
	}
	return min(n, q.Limit), true
}
