package oracle

import (
	"context"
	"slices"

	"kith/storage"
)

// readBlocks answers [storage.BlockLookups].
func (s *Store) readBlocks(ctx context.Context, users []storage.UserID) []storage.Result[[]storage.UserID] {
	return lookUp(ctx, s, users, func(user storage.UserID) ([]storage.UserID, bool) {
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
	})
}

// readCountEdges answers [storage.EdgeCountLookups].
func (s *Store) readCountEdges(ctx context.Context, side storage.Side, queries []storage.EdgeCountQuery) []storage.Result[int] {
	return lookUp(ctx, s, queries, func(q storage.EdgeCountQuery) (int, bool) {
		n := 0
		for _, edge := range s.byPeer(side, q.Owner) {
			if edge.Type == max(q.Type, storage.Following) && (q.Since == 0 || edge.UpdateTime > q.Since) {
				n++
			}
		}
		return min(n, q.Limit), true
	})
}
