package oracle

import (
	"cmp"
	"context"
	"slices"

	"kith/storage"
)

// lookUp answers each key at its index under one read lock.
func lookUp[K, V any](ctx context.Context, s *Store, keys []K, find func(K) (V, bool)) []storage.Result[V] {
	results := make([]storage.Result[V], len(keys))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i, key := range keys {
		results[i].Value, results[i].Found = find(key)
	}
	return results
}

// refuse answers every key with the same error.
func refuse[V any](results []storage.Result[V], err error) []storage.Result[V] {
	for i := range results {
		results[i].Err = err
	}
	return results
}

// readUsers answers [storage.UserLookups].
func (s *Store) readUsers(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	return lookUp(ctx, s, ids, func(id storage.UserID) (storage.User, bool) {
		user, ok := s.users[id]
		return user, ok
	})
}

// readUserIDs answers [storage.HandleLookups].
func (s *Store) readUserIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	return lookUp(ctx, s, handles, func(handle string) (storage.UserID, bool) {
		claim, ok := s.handles[handle]
		return claim.owner, ok
	})
}

// readCounts answers [storage.CountLookups].
func (s *Store) readCounts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	return lookUp(ctx, s, ids, func(id storage.UserID) (storage.Counts, bool) {
		counts, ok := s.counts[id]
		return counts, ok
	})
}

// readEdges answers [storage.EdgeLookups].
func (s *Store) readEdges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	return lookUp(ctx, s, pairs, func(pair storage.Pair) (storage.Edge, bool) {
		return s.edge(side, pair)
	})
}

// readPages answers [storage.PageLookups].
func (s *Store) readPages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	return lookUp(ctx, s, queries, func(q storage.PageQuery) ([]storage.Edge, bool) {
		return s.page(side, q), true
	})
}

// readAllRows answers [storage.RowLookups].
func (s *Store) readAllRows(ctx context.Context, queries []storage.RowsQuery) []storage.Result[[]storage.Edge] {
	return lookUp(ctx, s, queries, func(q storage.RowsQuery) ([]storage.Edge, bool) {
		rows := slices.DeleteFunc(s.byPeer(q.Side, q.Owner), func(e storage.Edge) bool {
			behind := cmp.Or(cmp.Compare(q.Side.Peer(e.Pair()), q.After), cmp.Compare(e.Post, q.Post))
			return e.Type == storage.None || behind <= 0
		})
		return rows[:min(q.Limit, len(rows))], true
	})
}

// readNeighbours answers [storage.NeighbourLookups].
func (s *Store) readNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return lookUp(ctx, s, owners, func(owner storage.UserID) ([]storage.UserID, bool) {
		var peers []storage.UserID
		for _, edge := range s.byPeer(side, owner) {
			if edge.Type == storage.Following {
				peers = append(peers, side.Peer(edge.Pair()))
			}
		}
		return peers, true
	})
}

// page selects the edges between the bounds, and then one end of these.
func (s *Store) page(side storage.Side, q storage.PageQuery) []storage.Edge {
	var part []storage.Edge
	kind := q.Type
	if kind == storage.None {
		kind = storage.Following // or Pending
	}
	for _, edge := range s.newestFirst(side, q.Owner, kind) {
		at := storage.PositionOf(side, edge)
		if side.HasItem() && edge.Post != q.Post {
			continue
		}
		if q.After != (storage.Position{}) && compare(at, q.After) <= 0 {
			continue
		}
		if q.Before != (storage.Position{}) && compare(at, q.Before) >= 0 {
			continue
		}
		part = append(part, edge)
	}
	if surplus := len(part) - q.Limit; surplus > 0 {
		if q.Backward {
			return part[surplus:]
		}
		return part[:q.Limit]
	}
	return part
}

// byPeer returns every edge of an owner, whatever its type, in the order of the table's key.
func (s *Store) byPeer(side storage.Side, owner storage.UserID) []storage.Edge {
	var edges []storage.Edge
	for _, edge := range s.tables[side][owner] {
		edges = append(edges, edge)
	}
	slices.SortFunc(edges, func(a, b storage.Edge) int { return side.Compare(a.Pair(), b.Pair()) })
	return edges
}

// newestFirst returns an owner's edges of one type in list order.
func (s *Store) newestFirst(side storage.Side, owner storage.UserID, kind storage.EdgeType) []storage.Edge {
	var edges []storage.Edge
	for _, edge := range s.tables[side][owner] {
		if edge.Type == kind {
			edges = append(edges, edge)
		}
	}
	slices.SortFunc(edges, func(a, b storage.Edge) int {
		return compare(storage.PositionOf(side, a), storage.PositionOf(side, b))
	})
	return edges
}

// compare orders positions as lists run: negative when a comes first.
func compare(a, b storage.Position) int {
	return cmp.Or(cmp.Compare(b.UpdateTime, a.UpdateTime), cmp.Compare(b.Peer, a.Peer))
}

// readPackedNeighbours answers [storage.PackedLookups]: nothing is packed.
func (s *Store) readPackedNeighbours(_ context.Context, _ storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return make([]storage.Result[[]storage.UserID], len(owners))
}

// answer has each kind of look-up read by its function.
func (s *Store) answer() {
	a := &s.Answering
	storage.UserLookups.AnsweredBy(a, s.readUsers)
	storage.HandleLookups.AnsweredBy(a, s.readUserIDs)
	storage.CountLookups.AnsweredBy(a, s.readCounts)
	storage.ProfileLookups.AnsweredBy(a, s.readProfiles)
	storage.EdgeLookups.AnsweredBy(a, s.readEdges)
	storage.PageLookups.AnsweredBy(a, s.readPages)
	storage.RowLookups.AnsweredBy(a, s.readAllRows)
	storage.NeighbourLookups.AnsweredBy(a, s.readNeighbours)
	storage.PackedLookups.AnsweredBy(a, s.readPackedNeighbours)
	storage.SnapshotLookups.AnsweredBy(a, s.readLists)
	storage.EdgeCountLookups.AnsweredBy(a, s.readCountEdges)
	storage.BlockLookups.AnsweredBy(a, s.readBlocks)
	storage.MarkLookups.AnsweredBy(a, s.readMarks)
	storage.MessageLookups.AnsweredBy(a, s.readMessages)
	storage.SpecialLookups.AnsweredBy(a, s.readSpecials)
	storage.DetailLookups.AnsweredBy(a, s.readDetails)
	storage.KindLookups.AnsweredBy(a, s.readKindCounts)
	storage.ListLookups.AnsweredBy(a, s.readUserLists)
	storage.PostLookups.AnsweredBy(a, s.readPosts)
	storage.PostPageLookups.AnsweredBy(a, s.readPostPages)
	storage.CommentLookups.AnsweredBy(a, s.readComments)
	storage.CommentPageLookups.AnsweredBy(a, s.readCommentPages)
	storage.FavoritePageLookups.AnsweredBy(a, s.readFavoritePages)
}
