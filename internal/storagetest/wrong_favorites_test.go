package storagetest_test

import (
	"context"
	"slices"
	"sync"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about favorites.

var favoriteMistakes = []struct {
	mistake string
	open    func(*oracle.Store) storage.Store
	broken  string
	caught  caught
}{
	{"a favorite that is there is made again", func(s *oracle.Store) storage.Store { return madeAgain{s} }, "favorites/ItIsMadeAndEndedOnce", promiseOnly},
	{"favorites stay on their side", func(s *oracle.Store) storage.Store { return favoritesApart{s} }, "favorites/TheOtherSideIsWrittenAtOnce", promiseOnly},
	{"posts do not count their favorites", func(s *oracle.Store) storage.Store { return uncountedPosts{s} }, "favorites/BothSidesAreCounted", promiseOnly},
	{"deleted posts are favorited", func(s *oracle.Store) storage.Store {
		return &deletedFavorited{Store: s, off: map[storage.UserID]int64{}}
	}, "favorites/ADeletedPostIsNotFavorited", promiseOnly},
	{"favorites of one time replace each other", func(s *oracle.Store) storage.Store { return latestWins{s} }, "favorites/OnlyTheNewerIsApplied", promiseOnly},
	{"blocks do not end favorites", func(s *oracle.Store) storage.Store { return blindFavorites{s} }, "favorites/ABlockForbidsThem", promiseOnly},
	{"anybody favorites", func(s *oracle.Store) storage.Store { return anybodyFavorites{s} }, "favorites/NobodyFavoritesNothing", promiseOnly},
	{"favorites of one time ascend", func(s *oracle.Store) storage.Store { return favoritesAscend{s} }, "favorites/PagesRunNewestFirst", promiseOnly},
	{"rows behind a peer are all of others", func(s *oracle.Store) storage.Store { return skipsPosts{s} }, "favorites/AllRowsAreReadInSteps", promiseOnly},
	{"favorites are counted without a lock", func(s *oracle.Store) storage.Store {
		return &unlockedFavorites{Store: s, posts: map[storage.PostID]int64{}}
	}, "favorites/CountsAreExactWhereManyWrite", lostRace},
	{"repairs forget the post", func(s *oracle.Store) storage.Store { return postlessRepairs{s} }, "favorites/RepairsAreCounted", promiseOnly},
	{"favorites are made after the end", func(s *oracle.Store) storage.Store { return deafFavorites{s} }, "cancellation/NoPostIsWritten", promiseOnly},
}

func init() { wrongStores = append(wrongStores, favoriteMistakes...) }

type madeAgain struct{ *oracle.Store }

func (s madeAgain) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	for _, ch := range changes {
		if ch.Type == storage.Favorited {
			ch.Type = storage.None
			s.Store.ChangeEdges(ctx, side, user, []storage.EdgeChange{ch}, o)
		}
	}
	return s.Store.ChangeEdges(ctx, side, user, changes, o)
}

type favoritesApart struct{ *oracle.Store }

func (s favoritesApart) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	o.Inverse = false
	return s.Store.ChangeEdges(ctx, side, user, changes, o)
}

type uncountedPosts struct{ *oracle.Store }

func (s uncountedPosts) posts(ctx context.Context, ids []storage.PostID) []storage.Result[storage.Post] {
	results := storage.PostLookups.Read(ctx, s.Store, ids...)
	for i := range results {
		results[i].Value.Counts.Favorites = 0
	}
	return results
}

func (s uncountedPosts) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PostLookups.Instead(ctx, b, s.posts)
	s.Store.Bundle(ctx, b)
}

type deletedFavorited struct {
	*oracle.Store
	off map[storage.UserID]int64
}

func (s *deletedFavorited) DeletePost(ctx context.Context, id storage.PostID) (bool, error) {
	s.off[id.Author] += storage.PostLookups.Read(ctx, s.Store, id)[0].Value.Counts.Favorites
	return s.Store.DeletePost(ctx, id)
}

func (s *deletedFavorited) counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	results := storage.CountLookups.Read(ctx, s.Store, ids...)
	for i, id := range ids {
		results[i].Value.Favorited += s.off[id]
	}
	return results
}

func (s *deletedFavorited) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.CountLookups.Instead(ctx, b, s.counts)
	s.Store.Bundle(ctx, b)
}

type latestWins struct{ *oracle.Store }

func (s latestWins) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Applied] {
	if side.HasItem() {
		edges = slices.Clone(edges)
		for i := range edges {
			edges[i].UpdateTime = edges[i].UpdateTime*2 + storage.Micros(edges[i].Type)
		}
	}
	return s.Store.Apply(ctx, side, edges, rule)
}

func (s latestWins) edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	results := storage.EdgeLookups[side].Read(ctx, s.Store, pairs...)
	for i := range results {
		if side.HasItem() {
			results[i].Value.UpdateTime /= 2
		}
	}
	return results
}

func (s latestWins) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.EdgeLookups.Instead(ctx, b, s.edges)
	s.Store.Bundle(ctx, b)
}

type blindFavorites struct{ *oracle.Store }

func (s blindFavorites) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Applied] {
	if side == storage.Inverse {
		return make([]storage.Result[storage.Applied], len(edges))
	}
	return s.Store.Apply(ctx, side, edges, rule)
}

type anybodyFavorites struct{ *oracle.Store }

func (s anybodyFavorites) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	return storage.Each(changes, func(ch storage.EdgeChange) storage.Result[storage.Changed] {
		e := storage.Pair{From: user, To: ch.To, Post: ch.Item}.Edge(ch.Type, ch.At)
		r := s.Apply(ctx, side, []storage.Edge{e}, storage.IfNewer)[0]
		return storage.Result[storage.Changed]{Value: storage.Changed{Row: r.Value.Row, Side: side, Changed: r.Value.Changed}, Found: true, Err: r.Err}
	})
}

type favoritesAscend struct{ *oracle.Store }

func (s favoritesAscend) favoritePages(ctx context.Context, queries []storage.FavoritesQuery) []storage.Result[[]storage.Edge] {
	results := storage.FavoritePageLookups.Read(ctx, s.Store, queries...)
	for _, r := range results {
		slices.SortStableFunc(r.Value, func(a, b storage.Edge) int {
			if a.UpdateTime == b.UpdateTime && a.Post < b.Post {
				return -1
			}
			return 0
		})
	}
	return results
}

func (s favoritesAscend) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.FavoritePageLookups.Instead(ctx, b, s.favoritePages)
	s.Store.Bundle(ctx, b)
}

type skipsPosts struct{ *oracle.Store }

func (s skipsPosts) allRows(ctx context.Context, queries []storage.RowsQuery) []storage.Result[[]storage.Edge] {
	queries = slices.Clone(queries)
	for i := range queries {
		if queries[i].After > 0 {
			queries[i].Post = 1<<63 - 1
		}
	}
	return storage.RowLookups.Read(ctx, s.Store, queries...)
}

func (s skipsPosts) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.RowLookups.Instead(ctx, b, s.allRows)
	s.Store.Bundle(ctx, b)
}

// unlockedFavorites counts outside the store, as if it read a count and wrote it later.
type unlockedFavorites struct {
	*oracle.Store
	mu    sync.Mutex
	posts map[storage.PostID]int64
}

func (s *unlockedFavorites) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	ch := changes[0] // the promise makes one at a time
	post := storage.PostID{Author: ch.To, Number: ch.Item}
	s.mu.Lock()
	was := s.posts[post]
	s.mu.Unlock()
	changed := s.Store.ChangeEdges(ctx, side, user, changes, o)
	s.mu.Lock()
	defer s.mu.Unlock()
	if changed[0].Value.Changed {
		s.posts[post] = was + 2*int64(ch.Type) - 1
	}
	return changed
}

func (s *unlockedFavorites) readPosts(ctx context.Context, ids []storage.PostID) []storage.Result[storage.Post] {
	results := storage.PostLookups.Read(ctx, s.Store, ids...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, id := range ids {
		results[i].Value.Counts.Favorites = s.posts[id]
	}
	return results
}

func (s *unlockedFavorites) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PostLookups.Instead(ctx, b, s.readPosts)
	s.Store.Bundle(ctx, b)
}

type postlessRepairs struct{ *oracle.Store }

func (s postlessRepairs) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Repaired] {
	repairs = slices.Clone(repairs)
	for i := range repairs {
		repairs[i].Pair.Post = 0
	}
	return s.Store.RepairInverse(ctx, repairs)
}

type deafFavorites struct{ *oracle.Store }

func (s deafFavorites) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	return s.Store.ChangeEdges(context.WithoutCancel(ctx), side, user, changes, o)
}
