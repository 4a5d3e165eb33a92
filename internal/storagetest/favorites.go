package storagetest

import (
	"context"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/storage"
	"kith/storage/sides"
)

// favorites: edges from users to posts, on two sides, like those between users.
type favorites struct{ *harness }

// A change returns the row as it is afterwards. The same change a second time changes nothing.
func (s favorites) ItIsMadeAndEndedOnce(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	post := s.post(t, users[1], 1).PostID
	pair := storage.Pair{From: users[0], To: post.Author, Item: post.Number}
	for n, want := range []struct {
		kind    storage.EdgeType
		time    int
		row     storage.Edge
		changed bool
	}{
		{storage.None, 1, pair.Edge(storage.None, 0), false},
		{storage.Favorited, 5, pair.Edge(storage.Favorited, at(5)), true},
		{storage.Favorited, 9, pair.Edge(storage.Favorited, at(5)), false},
		{storage.None, 3, pair.Edge(storage.None, at(6)), true},
		{storage.None, 9, pair.Edge(storage.None, at(6)), false},
		{storage.Favorited, 7, pair.Edge(storage.Favorited, at(7)), true},
	} {
		change := favorite(post, want.time)
		change.Type = want.kind
		got := s.favorite(t, users[0], change, storage.ChangeOptions{})
		check.That(t, got.Row == want.row && got.Changed == want.changed && !got.Inverse && len(got.Also) == 0, "%d: %+v, want %+v", n, got, want)
		if want.changed {
			wantWritten(t, "written", got.Written(), []storage.Written{{Row: storage.Row{Side: storage.Favorites, Edge: want.row}}})
		}
	}
	wantEqual(t, "row", s.edgeOf(t, storage.Favorites, pair), pair.Edge(storage.Favorited, at(7)))
	wantMissing(t, storage.EdgeLookups[storage.FavoriteInbox].Read(t.Context(), s.store, pair), 1)
	wantMissing(t, storage.EdgeLookups[storage.Favorites].Read(t.Context(), s.store, storage.Pair{From: pair.From, To: pair.To, Item: pair.Item - 1}), 1)
	wantMissing(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, storage.Pair{From: pair.From, To: pair.To}), 1)
}

// With the option, the sides that are in the same database are written at once. For one's own posts
// that is always so.
func (s favorites) TheOtherSideIsWrittenAtOnce(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	post := s.post(t, user, 1).PostID
	got := s.favorite(t, user, favorite(post, 5), withInverse)
	wantEqual(t, "inverse", got.Inverse, true)
	wantEqual(t, "row", s.edgeOf(t, storage.FavoriteInbox, got.Row.Pair()), got.Row)
	s.wantFavorites(t, post, 1)
	counts := s.countsOf(t, user)
	wantEqual(t, "favorites and favorited", [2]int64{counts.Favorites, counts.Favorited}, [2]int64{1, 1})
}

func (s favorites) BothSidesAreCounted(t *testing.T) {
	users := idsOf(s.newUsers(t, 4))
	author := users[0]
	posts := []storage.PostID{s.post(t, author, 1).PostID, s.post(t, author, 2).PostID}
	for _, user := range users {
		for _, post := range posts[:1+user%2] {
			before := s.countsOf(t, user)
			row := s.favorite(t, user, favorite(post, 5), storage.ChangeOptions{}).Row
			now := s.countsOf(t, user)
			wantEqual(t, "favorites", now.Favorites, before.Favorites+1)
			wantEqual(t, "the version rises", now.Version > before.Version, true)
			total, version := s.countsOf(t, author), s.versionOf(t, post)
			s.apply(t, storage.FavoriteInbox, row, row)
			wantEqual(t, "favorited", s.countsOf(t, author).Favorited, total.Favorited+1)
			wantEqual(t, "the author's version rises", s.countsOf(t, author).Version > total.Version, true)
			wantEqual(t, "the post's version rises", s.versionOf(t, post) > version, true)
			row.Type, row.UpdateTime = storage.None, row.UpdateTime+1
			s.apply(t, storage.FavoriteInbox, row)
			wantEqual(t, "favorited", s.countsOf(t, author).Favorited, total.Favorited)
			row.Type, row.UpdateTime = storage.Favorited, row.UpdateTime+1
			s.apply(t, storage.FavoriteInbox, row)
			version = s.versionOf(t, post)
			row.UpdateTime++ // as if it had ended in between: it moves in lists
			s.apply(t, storage.FavoriteInbox, row)
			wantEqual(t, "the post's version rises with a time", s.versionOf(t, post) > version, true)
		}
	}
	s.wantFavorites(t, posts[0], 4)
}

// A deleted post no longer counts for its author, even if events come late, but the rows stay.
func (s favorites) ADeletedPostIsNotFavorited(t *testing.T) {
	users := idsOf(s.newUsers(t, 3))
	author := users[0]
	kept, gone := s.post(t, author, 1).PostID, s.post(t, author, 2).PostID
	pair := func(user storage.UserID, post storage.PostID) storage.Pair {
		return storage.Pair{From: user, To: author, Item: post.Number}
	}
	s.apply(t, storage.FavoriteInbox, pair(users[1], kept).Edge(storage.Favorited, at(1)), pair(users[1], gone).Edge(storage.Favorited, at(1)),
		pair(users[2], gone).Edge(storage.Favorited, at(1)))
	wantEqual(t, "favorited", s.countsOf(t, author).Favorited, 3)
	posts(s).delete(t, gone, true)
	wantEqual(t, "favorited", s.countsOf(t, author).Favorited, 1)
	s.apply(t, storage.FavoriteInbox, pair(users[0], gone).Edge(storage.Favorited, at(2)), pair(users[2], gone).Edge(storage.None, at(3)))
	wantEqual(t, "favorited", s.countsOf(t, author).Favorited, 1)
	nothing := storage.PostID{Author: author, Number: s.number()}
	s.apply(t, storage.FavoriteInbox, pair(users[1], nothing).Edge(storage.Favorited, at(2)))
	wantEqual(t, "favorited", s.countsOf(t, author).Favorited, 1)
	wantEqual(t, "row", s.edgeOf(t, storage.FavoriteInbox, pair(users[1], gone)).Type, storage.Favorited)
	s.wantAllRight(t)
}

func (s favorites) OnlyTheNewerIsApplied(t *testing.T) {
	author, user := s.newUsers(t, 1)[0].ID, s.id()
	post := s.post(t, author, 1).PostID
	for _, side := range []storage.Side{storage.Favorites, storage.FavoriteInbox} {
		pair := storage.Pair{From: user, To: author, Item: post.Number}
		newest := pair.Edge(storage.None, at(20))
		for _, e := range []storage.Edge{pair.Edge(storage.Favorited, at(10)), newest, pair.Edge(storage.Favorited, at(19)), pair.Edge(storage.Favorited, at(20))} {
			s.apply(t, side, e)
		}
		wantEqual(t, "row of "+side.String(), s.edgeOf(t, side, pair), newest)
		of := s.countsOf(t, side.Owner(pair)).Of(side)
		wantEqual(t, "count", of, 0)
	}
	s.wantFavorites(t, post, 0)
}

func (s favorites) ABlockForbidsThem(t *testing.T) {
	users := idsOf(s.newUsers(t, 3))
	post := s.post(t, users[0], 1).PostID
	mine := storage.Edge{From: users[1], To: users[0], Type: storage.Blocking, UpdateTime: at(1)}
	theirs := storage.Edge{From: users[0], To: users[2], Type: storage.Blocking, UpdateTime: at(1)}
	first := s.favorite(t, users[2], favorite(post, 1), storage.ChangeOptions{})
	s.apply(t, storage.Forward, mine)
	s.apply(t, storage.Inverse, theirs)
	for _, user := range users[1:] {
		change := favorite(post, 5)
		if user == users[2] { // an existing favorite may end
			change.Type = storage.None
			wantEqual(t, "ended", s.favorite(t, user, change, storage.ChangeOptions{}).Row.UpdateTime > first.Row.UpdateTime, true)
			change.Type = storage.Favorited
		}
		_, err := changeFavorite(t.Context(), s.store, user, change, storage.ChangeOptions{})
		wantIs(t, err, storage.ErrForbidden)
		wantEqual(t, "favorites", s.countsOf(t, user).Favorites, 0)
	}
}

func (s favorites) NobodyFavoritesNothing(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	post := s.post(t, users[0], 1).PostID
	s.setState(t, users[1], storage.Deleting, 1)
	for _, user := range []storage.UserID{users[1], s.id()} {
		_, err := changeFavorite(t.Context(), s.store, user, favorite(post, 1), withInverse)
		wantIs(t, err, storage.ErrUserUnknown)
		wantMissing(t, storage.EdgeLookups[storage.Favorites].Read(t.Context(), s.store, storage.Pair{From: user, To: post.Author, Item: post.Number}), 1)
	}
}

func (s favorites) PagesRunNewestFirst(t *testing.T) {
	users := idsOf(s.newUsers(t, 3))
	var mine []storage.Edge
	for i := range 23 {
		post := s.post(t, users[1+i%2], i).PostID
		mine = append(mine, s.favorite(t, users[0], favorite(post, 100+i/3), storage.ChangeOptions{}).Row) // three of one time
		s.favorite(t, users[1], favorite(post, 100), storage.ChangeOptions{})
	}
	ended := favorite(mine[4].Pair().PostID(), 500)
	ended.Type = storage.None
	s.favorite(t, users[0], ended, storage.ChangeOptions{})
	end := mine[4]
	mine = slices.Delete(mine, 4, 5)
	slices.SortFunc(mine, func(a, b storage.Edge) int { return a.Place().Compare(b.Place()) })
	for _, limit := range []int{1, 7, 22, 100} {
		var got []storage.Edge
		for after := (storage.Place{}); ; {
			page := found(t, storage.FavoritePageLookups.Read(t.Context(), s.store, storage.PlaceQuery{Of: storage.PostID{Author: users[0]}, After: after, Limit: limit}), 1)[0]
			got = append(got, page...)
			if len(page) < limit || len(got) > len(mine) {
				break
			}
			after = page[limit-1].Place()
		}
		wantList(t, "favorites", got, mine)
	}
	behind := slices.IndexFunc(mine, func(e storage.Edge) bool { return e.Place().Compare(end.Place()) > 0 })
	page := storage.FavoritePageLookups.Read(t.Context(), s.store, storage.PlaceQuery{Of: storage.PostID{Author: users[0]}, After: end.Place(), Limit: 100}, storage.PlaceQuery{Of: storage.PostID{Author: s.id()}, Limit: 1})
	wantList(t, "behind one that has ended", found(t, page, 2)[0], mine[behind:])

	post := s.post(t, users[0], 1).PostID
	var by []storage.Edge
	for i, user := range s.ids(23) {
		by = append(by, storage.Edge{From: user, To: users[0], Item: post.Number, Type: storage.Favorited, UpdateTime: at(i / 3)})
		other := by[i]
		other.Item++
		s.apply(t, storage.FavoriteInbox, by[i], other)
	}
	slices.SortFunc(by, func(a, b storage.Edge) int {
		return storage.FavoriteInbox.Position(a).Compare(storage.FavoriteInbox.Position(b))
	})
	var got []storage.Edge
	for after := (storage.Position{}); len(got) < len(by); {
		page := found(t, storage.PageLookups[storage.FavoriteInbox].Read(t.Context(), s.store, storage.PageQuery{Owner: post.Author, Item: post.Number, After: after, Limit: 5}), 1)[0]
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		after = storage.FavoriteInbox.Position(page[len(page)-1])
	}
	wantList(t, "favorited by", got, by)
}

// When a user is deleted, its rows are the list of work.
func (s favorites) AllRowsAreReadInSteps(t *testing.T) {
	for _, side := range []storage.Side{storage.Favorites, storage.FavoriteInbox} {
		owner := s.id()
		var rows []storage.Edge
		for _, peer := range s.sortedIDs(5) {
			for post := range int64(5) {
				pair := side.Pair(owner, peer)
				pair.Item = post + 1
				e := pair.Edge(storage.Favorited, at(int(post)))
				if s.apply(t, side, e); post == 2 {
					s.apply(t, side, pair.Edge(storage.None, at(50)))
				} else {
					rows = append(rows, e)
				}
			}
		}
		for _, limit := range []int{1, 3, 100} {
			var got []storage.Edge
			q := storage.RowsQuery{Side: side, Owner: owner, Limit: limit}
			for len(got) < len(rows) {
				page := s.rows(t, q)
				if len(page) == 0 {
					break
				}
				got = append(got, page...)
				last := page[len(page)-1]
				q.After, q.Item = side.Peer(last.Pair()), last.Item
			}
			wantList(t, "rows of "+side.String(), got, rows)
		}
	}
}

// Many users favorite few posts at once, each several times, and propagate their changes.
func (s favorites) CountsAreExactWhereManyWrite(t *testing.T) {
	users := idsOf(s.newUsers(t, workers))
	var ids []storage.PostID
	for i := range 3 {
		ids = append(ids, s.post(t, users[0], i).PostID)
	}
	together(func(worker int) {
		for i := range 18 {
			change := favorite(ids[(i+worker)%len(ids)], i)
			if i%5 == 4 {
				change.Type = storage.None
			}
			o := storage.ChangeOptions{Inverse: worker%2 == 0}
			changed, err := changeFavorite(t.Context(), s.store, users[worker], change, o)
			if err != nil {
				t.Error(err)
				return
			}
			if changed.Changed && !changed.Inverse {
				noErrors(t, s.store.Apply(t.Context(), storage.FavoriteInbox, []storage.Edge{changed.Row, changed.Row}, storage.IfNewer), 2)
			}
		}
	})
	total := int64(0)
	for _, id := range ids {
		var n int64
		for _, user := range users {
			pair := storage.Pair{From: user, To: id.Author, Item: id.Number}
			row := s.edgeOf(t, storage.Favorites, pair)
			wantEqual(t, "both rows", s.edgeOf(t, storage.FavoriteInbox, pair), row)
			n += int64(row.Type)
		}
		s.wantFavorites(t, id, n)
		total += n
	}
	wantEqual(t, "favorited", s.countsOf(t, users[0]).Favorited, total)
	s.wantAllRight(t)
}

// A row that is repaired is counted like any other.
func (s favorites) RepairsAreCounted(t *testing.T) {
	author, user := s.newUsers(t, 1)[0].ID, s.id()
	post := s.post(t, author, 1).PostID
	r := part[sides.Repairer](t, s.harness)
	want := storage.Edge{From: user, To: author, Item: post.Number, Type: storage.Favorited, UpdateTime: at(5)}
	done := found(t, r.RepairInverse(t.Context(), []sides.Repair{{Side: storage.Favorites, Pair: want.Pair(), Want: want}}), 1)[0]
	wantEqual(t, "done", done.Changed, true)
	wantEqual(t, "row", s.edgeOf(t, storage.FavoriteInbox, want.Pair()), want)
	wantEqual(t, "favorited", s.countsOf(t, author).Favorited, 1)
	s.wantFavorites(t, post, 1)
	for _, side := range []storage.Side{storage.Favorites, storage.FavoriteInbox} {
		found(t, r.Recount(t.Context(), side, []storage.UserID{author, user}), 2)
	}
	found(t, r.RecountItems(t.Context(), storage.FavoriteInbox, []storage.PostID{post}), 1)
	wantEqual(t, "favorited", s.countsOf(t, author).Favorited, 1)
	s.wantFavorites(t, post, 1)
}

// favorite is a change to be made, the n-th in time.
func favorite(post storage.PostID, n int) storage.EdgeChange {
	return post.Favorite(storage.Favorited, at(n))
}

// changeFavorite changes one.
func changeFavorite(ctx context.Context, store storage.Store, user storage.UserID, change storage.EdgeChange, o storage.ChangeOptions) (storage.Changed, error) {
	r := store.ChangeEdges(ctx, storage.Favorites, user, []storage.EdgeChange{change}, storage.ChangeOptions{Peace: true, Inverse: o.Inverse})[0]
	return r.Value, r.Err
}

func (s favorites) favorite(t *testing.T, user storage.UserID, change storage.EdgeChange, o storage.ChangeOptions) storage.Changed {
	t.Helper()
	changed, err := changeFavorite(t.Context(), s.store, user, change, o)
	wantIs(t, err, nil)
	return changed
}

func (s favorites) versionOf(t *testing.T, id storage.PostID) int64 {
	t.Helper()
	return found(t, storage.PostLookups.Read(t.Context(), s.store, id), 1)[0].Counts.Version
}

func (s favorites) wantFavorites(t *testing.T, id storage.PostID, want int64) {
	t.Helper()
	wantEqual(t, "favorites of the post", found(t, storage.PostLookups.Read(t.Context(), s.store, id), 1)[0].Counts.Favorites, want)
}

func (s favorites) setState(t *testing.T, user storage.UserID, state storage.UserState, n int) {
	t.Helper()
	_, err := s.store.SetState(t.Context(), user, state, at(n))
	wantIs(t, err, nil)
}

// wantAllRight checks that no count is wrong, where the store knows.
func (s favorites) wantAllRight(t *testing.T) {
	t.Helper()
	c, ok := s.store.(sides.Comparer)
	if !ok {
		return
	}
	for ordinal := range c.Shards() {
		for _, side := range []storage.Side{storage.Favorites, storage.FavoriteInbox} {
			wrong, err := c.WrongCounts(t.Context(), side, ordinal, everybody)
			check.That(t, err == nil && len(wrong) == 0, "counts of %s on shard %d: %+v, %v", side, ordinal, wrong, err)
		}
		wrong, err := c.WrongItemCounts(t.Context(), storage.FavoriteInbox, ordinal, everybody)
		check.That(t, err == nil && len(wrong) == 0, "counts of posts on shard %d: %+v, %v", ordinal, wrong, err)
	}
}
