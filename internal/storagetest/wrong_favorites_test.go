package storagetest_test

import (
	"context"
	"slices"
	"sync"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about favorites.

var favoriteMistakes = []mistake{
	{"a favorite that is there is made again", items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		for _, ch := range changes {
			if ch.Type == storage.Favorited {
				ch.Type = storage.None
				s.ChangeEdges(ctx, side, user, []storage.EdgeChange{ch}, o)
			}
		}
		return s.ChangeEdges(ctx, side, user, changes, o)
	}), "favorites/ItIsMadeAndEndedOnce", promiseOnly},
	{"favorites stay on their side", items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		o.Inverse = false
		return s.ChangeEdges(ctx, side, user, changes, o)
	}), "favorites/TheOtherSideIsWrittenAtOnce", promiseOnly},
	{"deleted posts are favorited", func(s *oracle.Store) storage.Store { return deletedFavorited{newCounting(s, favorited)} }, "favorites/ADeletedPostIsNotFavorited", promiseOnly},
	{"favorites of one time replace each other", func(s *oracle.Store) storage.Store { return latestWins{s} }, "favorites/OnlyTheNewerIsApplied", promiseOnly},
	{"blocks do not end favorites", applies(func(ctx context.Context, s *oracle.Store, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
		if side == storage.Inverse {
			return make(applieds, len(edges))
		}
		return s.Apply(ctx, side, edges, rule)
	}), "favorites/ABlockForbidsThem", promiseOnly},
	{"anybody favorites", items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		return storage.Each(changes, func(ch storage.EdgeChange) storage.Result[storage.Changed] {
			e := storage.Pair{From: user, To: ch.To, Item: ch.Item}.Edge(ch.Type, ch.At)
			r := s.Apply(ctx, side, []storage.Edge{e}, storage.IfNewer)[0]
			return storage.Result[storage.Changed]{Value: storage.Changed{Row: r.Value.Row, Side: side, Changed: r.Value.Changed}, Found: true, Err: r.Err}
		})
	}), "favorites/NobodyFavoritesNothing", promiseOnly},
	{"favorites of one time ascend", answers(func(_ *oracle.Store, _ storage.Side, _ storage.PlaceQuery, r *storage.Result[[]storage.Edge]) {
		slices.SortStableFunc(r.Value, func(a, b storage.Edge) int {
			if a.UpdateTime == b.UpdateTime && a.Item < b.Item {
				return -1
			}
			return 0
		})
	}, storage.FavoritePageLookups), "favorites/PagesRunNewestFirst", promiseOnly},
	{"rows behind a peer are all of others", asks(func(q *storage.RowsQuery) {
		if q.After > 0 {
			q.Item = 1<<63 - 1
		}
	}, storage.RowLookups), "favorites/AllRowsAreReadInSteps", promiseOnly},
	{"favorites are counted without a lock", func(s *oracle.Store) storage.Store {
		return &unlockedFavorites{Store: s, posts: map[storage.PostID]int64{}}
	}, "favorites/CountsAreExactWhereManyWrite", lostRace},
	{"repairs forget the post", func(s *oracle.Store) storage.Store { return postlessRepairs{s} }, "favorites/RepairsAreCounted", promiseOnly},
	{"favorites are made after the end", items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		return s.ChangeEdges(context.WithoutCancel(ctx), side, user, changes, o)
	}), "cancellation/NoPostIsWritten", promiseOnly},
}

type deletedFavorited struct{ *counting }

func (s deletedFavorited) DeletePost(ctx context.Context, id storage.PostID) (bool, error) {
	s.add(id.Author, storage.PostLookups.Read(ctx, s.Store, id)[0].Value.Counts.Favorites)
	return s.Store.DeletePost(ctx, id)
}

type latestWins struct{ *oracle.Store }

func (s latestWins) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
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

func (s postlessRepairs) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Changed] {
	repairs = slices.Clone(repairs)
	for i := range repairs {
		repairs[i].Pair.Item = 0
	}
	return s.Store.RepairInverse(ctx, repairs)
}
