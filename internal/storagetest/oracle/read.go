package oracle

import (
	"cmp"
	"context"
	"slices"

	"kith/storage"
	"kith/storage/finding"
	"kith/storage/reaction"
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

// each looks keys up one by one, onSide on one side, and in in a map.
func each[K, V any](s *Store, find func(K) (V, bool)) func(context.Context, []K) []storage.Result[V] {
	return func(ctx context.Context, keys []K) []storage.Result[V] { return lookUp(ctx, s, keys, find) }
}

func onSide[K, V any](s *Store, find func(storage.Side, K) (V, bool)) func(context.Context, storage.Side, []K) []storage.Result[V] {
	return func(ctx context.Context, side storage.Side, keys []K) []storage.Result[V] {
		return lookUp(ctx, s, keys, func(key K) (V, bool) { return find(side, key) })
	}
}

func in[K comparable, V any](values map[K]V) func(K) (V, bool) {
	return func(key K) (V, bool) {
		value, found := values[key]
		return value, found
	}
}

// refuse answers every key with the same error.
func refuse[V any](results []storage.Result[V], err error) []storage.Result[V] {
	for i := range results {
		results[i].Err = err
	}
	return results
}

// findUserIDs answers [storage.HandleLookups].
func (s *Store) findUserIDs(handle string) (storage.UserID, bool) {
	claim, ok := s.handles[handle]
	return claim.owner, ok
}

// findPages answers [storage.PageLookups].
func (s *Store) findPages(side storage.Side, q storage.PageQuery) ([]storage.Edge, bool) {
	return s.page(side, q), true
}

// findAllRows answers [storage.RowLookups].
func (s *Store) findAllRows(q storage.RowsQuery) ([]storage.Edge, bool) {
	skip, ended := 0, q.Any && q.Side.Truth() == storage.Relations
	if q.Any && !ended {
		q.After, q.Item, skip = 0, 0, q.Skip
	}
	rows := slices.DeleteFunc(s.byPeer(q.Side, q.Owner), func(e storage.Edge) bool {
		behind := cmp.Or(cmp.Compare(q.Side.Peer(e.Pair()), q.After), cmp.Compare(e.Item, q.Item))
		return e.Type == storage.None && !ended || behind <= 0
	})
	rows = rows[min(skip, len(rows)):]
	return rows[:min(q.Limit, len(rows))], true
}

// findNeighbours answers [storage.NeighbourLookups].
func (s *Store) findNeighbours(side storage.Side, owner storage.UserID) ([]storage.UserID, bool) {
	var peers []storage.UserID
	for _, edge := range s.byPeer(side, owner) {
		if edge.Type == storage.Following {
			peers = append(peers, side.Peer(edge.Pair()))
		}
	}
	return peers, true
}

// page selects the edges between the bounds, and then one end of these.
func (s *Store) page(side storage.Side, q storage.PageQuery) []storage.Edge {
	var part []storage.Edge
	kind := q.Type
	if kind == storage.None {
		kind = storage.Following // or Pending
	}
	for _, edge := range s.newestFirst(side, q.Owner, kind) {
		at := side.Position(edge)
		if side.HasItem() && edge.Item != q.Item {
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
	slices.SortFunc(edges, func(a, b storage.Edge) int { return compare(side.Position(a), side.Position(b)) })
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
	storage.UserLookups.AnsweredBy(a, each(s, in(s.users)))
	storage.HandleLookups.AnsweredBy(a, each(s, s.findUserIDs))
	storage.CountLookups.AnsweredBy(a, each(s, in(s.counts)))
	storage.ProfileLookups.AnsweredBy(a, each(s, s.findProfiles))
	storage.UserIDLookups.AnsweredBy(a, each(s, s.findUserIDsAfter))
	storage.PasswordLookups.AnsweredBy(a, each(s, s.findPasswords))
	storage.StateLookups.AnsweredBy(a, each(s, s.findStates))
	storage.StateChangeLookups.AnsweredBy(a, each(s, s.findStateChanges))
	storage.IdentityLookups.AnsweredBy(a, each(s, s.findIdentities))
	storage.LinkLookups.AnsweredBy(a, each(s, s.findLinks))
	storage.ModerationLookups.AnsweredBy(a, each(s, s.findModeration))
	finding.PopularLookups.AnsweredBy(a, each(s, s.findPopular))
	storage.SeenLookups.AnsweredBy(a, each(s, func(what storage.Seen) (storage.Micros, bool) { return s.seen[what], true }))
	storage.DueLookups.AnsweredBy(a, each(s, s.findDue))
	storage.EdgeLookups.AnsweredBy(a, onSide(s, s.edge))
	storage.PageLookups.AnsweredBy(a, onSide(s, s.findPages))
	storage.RowLookups.AnsweredBy(a, each(s, s.findAllRows))
	storage.NeighbourLookups.AnsweredBy(a, onSide(s, s.findNeighbours))
	storage.PackedLookups.AnsweredBy(a, s.readPackedNeighbours)
	storage.SnapshotLookups.AnsweredBy(a, onSide(s, s.findLists))
	storage.EdgeCountLookups.AnsweredBy(a, onSide(s, s.findCountEdges))
	storage.BlockLookups.AnsweredBy(a, each(s, s.findBlocks))
	storage.MarkLookups.AnsweredBy(a, each(s, s.findMarks))
	storage.MessageLookups.AnsweredBy(a, each(s, s.findMessages))
	storage.SpecialLookups.AnsweredBy(a, each(s, s.findSpecials))
	storage.DetailLookups.AnsweredBy(a, each(s, in(s.details)))
	storage.KindLookups.AnsweredBy(a, each(s, s.findKindCounts))
	storage.ListLookups.AnsweredBy(a, each(s, s.findUserLists))
	storage.ImportLookups.AnsweredBy(a, each(s, s.findImports))
	storage.RefusedLookups.AnsweredBy(a, each(s, s.findRefused))
	storage.DueImportLookups.AnsweredBy(a, each(s, s.findDueImports))
	storage.PostLookups.AnsweredBy(a, each(s, s.findPosts))
	storage.PostPageLookups.AnsweredBy(a, each(s, s.findPostPages))
	storage.LatestPostLookups.AnsweredBy(a, storage.OneByOne(s.readLatestPosts))
	storage.RecentPostLookups.AnsweredBy(a, storage.OneByOne(s.readRecentPosts))
	storage.LastPostLookups.AnsweredBy(a, s.readLastPosts)
	finding.WordLookups.AnsweredBy(a, storage.OneByOne(s.readWords))
	finding.UserWordLookups.AnsweredBy(a, storage.OneByOne(s.readUserWords))
	storage.CommentLookups.AnsweredBy(a, each(s, s.findComments))
	storage.CommentPageLookups.AnsweredBy(a, each(s, s.findCommentPages))
	storage.FavoritePageLookups.AnsweredBy(a, each(s, s.findFavoritePages))
	reaction.Lookups.AnsweredBy(a, each(s, s.findReactions))
}
