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

// Users implements [storage.UserReader].
func (s *Store) Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	return lookUp(ctx, s, ids, func(id storage.UserID) (storage.User, bool) {
		user, ok := s.users[id]
		return user, ok
	})
}

// UserIDs implements [storage.UserReader].
func (s *Store) UserIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	return lookUp(ctx, s, handles, func(handle string) (storage.UserID, bool) {
		claim, ok := s.handles[handle]
		return claim.owner, ok
	})
}

// Counts implements [storage.CountReader].
func (s *Store) Counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	return lookUp(ctx, s, ids, func(id storage.UserID) (storage.Counts, bool) {
		counts, ok := s.counts[id]
		return counts, ok
	})
}

// Edges implements [storage.EdgeReader].
func (s *Store) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	return lookUp(ctx, s, pairs, func(pair storage.Pair) (storage.Edge, bool) {
		return s.edge(side, pair)
	})
}

// Pages implements [storage.EdgeReader].
func (s *Store) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	return lookUp(ctx, s, queries, func(q storage.PageQuery) ([]storage.Edge, bool) {
		return s.page(side, q), true
	})
}

// AllRows implements [storage.EdgeReader].
func (s *Store) AllRows(ctx context.Context, queries []storage.RowsQuery) []storage.Result[[]storage.Edge] {
	return lookUp(ctx, s, queries, func(q storage.RowsQuery) ([]storage.Edge, bool) {
		rows := slices.DeleteFunc(s.byPeer(q.Side, q.Owner), func(e storage.Edge) bool {
			behind := cmp.Or(cmp.Compare(q.Side.Peer(e.Pair()), q.After), cmp.Compare(e.Post, q.Post))
			return e.Type == storage.None || behind <= 0
		})
		return rows[:min(q.Limit, len(rows))], true
	})
}

// Neighbours implements [storage.EdgeReader].
func (s *Store) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
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

// PackedNeighbours implements [storage.PackedReader]: nothing is packed.
func (s *Store) PackedNeighbours(_ context.Context, _ storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return make([]storage.Result[[]storage.UserID], len(owners))
}

// AtHand implements [storage.Bundler]: a store for tests answers as if it were in another process.
func (s *Store) AtHand(b *storage.Bundle) { b.WithoutCache() }

// Bundle implements [storage.Bundler].
func (s *Store) Bundle(ctx context.Context, b *storage.Bundle) { b.ReadEach(ctx, s) }
