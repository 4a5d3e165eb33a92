package storagetest_test

import (
	"context"
	"slices"

	"kith/internal/storagetest/double"
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
	{"deleted posts are favorited", func(s *oracle.Store, w *double.Store) {
		add := adding(w, favorited)
		w.Instead.DeletePost = func(ctx context.Context, id storage.PostID) (bool, error) {
			add(id.Author, storage.PostLookups.Read(ctx, s, id)[0].Value.Counts.Favorites)
			return s.DeletePost(ctx, id)
		}
	}, "favorites/ADeletedPostIsNotFavorited", promiseOnly},
	{"favorites of one time replace each other", func(s *oracle.Store, w *double.Store) {
		w.Instead.Apply = func(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
			if side.HasItem() {
				edges = slices.Clone(edges)
				for i := range edges {
					edges[i].UpdateTime = edges[i].UpdateTime*2 + storage.Micros(edges[i].Type)
				}
			}
			return s.Apply(ctx, side, edges, rule)
		}
		answers(func(_ *oracle.Store, side storage.Side, _ storage.Pair, r *storage.Result[storage.Edge]) {
			if side.HasItem() {
				r.Value.UpdateTime /= 2
			}
		}, storage.EdgeLookups...)(s, w)
	}, "favorites/OnlyTheNewerIsApplied", promiseOnly},
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
	{"favorites are counted without a lock", func(s *oracle.Store, w *double.Store) {
		// It counts outside the store, as if it read a count and wrote it later.
		var counts memory[storage.PostID, int64]
		items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
			ch := changes[0] // the promise makes one at a time
			post := storage.PostID{Author: ch.To, Number: ch.Item}
			was, _ := counts.get(post)
			changed := s.ChangeEdges(ctx, side, user, changes, o)
			if changed[0].Value.Changed {
				counts.set(post, was+2*int64(ch.Type)-1)
			}
			return changed
		})(s, w)
		answers(func(_ *oracle.Store, _ storage.Side, id storage.PostID, r *storage.Result[storage.Post]) {
			r.Value.Counts.Favorites, _ = counts.get(id)
		}, storage.PostLookups)(s, w)
	}, "favorites/CountsAreExactWhereManyWrite", lostRace},
}
