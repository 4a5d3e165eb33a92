package oracle

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/judge"
)

// ChangeFavorite implements [storage.FavoriteChanger].
func (s *Store) ChangeFavorite(ctx context.Context, user storage.UserID, change storage.FavoriteChange, o storage.ChangeOptions) (storage.Changed, error) {
	if err := ctx.Err(); err != nil {
		return storage.Changed{}, err
	}
	defer s.write(ctx)()
	if _, exists := s.users[user]; !exists {
		return storage.Changed{}, fmt.Errorf("change a favorite of user %d: %w", user, storage.ErrUserUnknown)
	}
	if err := judge.MayPublish(user, s.states[user].State); err != nil {
		return storage.Changed{}, err
	}
	j := s.judge(storage.Pair{From: user, To: change.Post.Author, Post: change.Post.Number})
	if o.Inverse {
		j.Inline = s.inline(user)
	}
	changed, err := j.Favorite(user, change)
	if err != nil {
		return storage.Changed{}, err
	}
	if changed.Changed {
		s.activeOn(user, change.At)
	}
	s.save(j)
	return changed, nil
}

// FavoritePages implements [storage.FavoriteReader].
func (s *Store) FavoritePages(ctx context.Context, queries []storage.FavoritesQuery) []storage.Result[[]storage.Edge] {
	return lookUp(ctx, s, queries, func(q storage.FavoritesQuery) ([]storage.Edge, bool) {
		list := slices.DeleteFunc(s.byPeer(storage.Favorites, q.User), func(e storage.Edge) bool { return e.Type != storage.Favorited })
		return pageOf(list, storage.FavoritePlace, q.After, q.Limit), true
	})
}

// FavoritedByPages implements [storage.FavoriteReader].
func (s *Store) FavoritedByPages(ctx context.Context, queries []storage.FavoritedByQuery) []storage.Result[[]storage.Edge] {
	return lookUp(ctx, s, queries, func(q storage.FavoritedByQuery) ([]storage.Edge, bool) {
		place := func(e storage.Edge) storage.Position { return storage.PositionOf(storage.FavoriteInbox, e) }
		list := slices.DeleteFunc(s.byPeer(storage.FavoriteInbox, q.Post.Author), func(e storage.Edge) bool {
			return e.Type != storage.Favorited || e.Post != q.Post.Number || q.After != (storage.Position{}) && compare(place(e), q.After) <= 0
		})
		slices.SortFunc(list, func(a, b storage.Edge) int { return compare(place(a), place(b)) })
		return list[:min(q.Limit, len(list))], true
	})
}

// counted is what an edge adds to its owner's count on a side.
func (s *Store) counted(side storage.Side, e storage.Edge) int64 {
	if side == storage.FavoriteInbox {
		if p := s.posts[e.Pair().PostID()]; p == nil || p.deleted {
			return 0
		}
	}
	return judge.Counted(e.Type)
}

// favorites counts the favorites of a post.
func (s *Store) favorites(id storage.PostID) (n int64) {
	for _, e := range s.tables[storage.FavoriteInbox][id.Author] {
		if e.Post == id.Number {
			n += judge.Counted(e.Type)
		}
	}
	return n
}

// WrongPostCounts implements [storage.Comparer].
func (s *Store) WrongPostCounts(ctx context.Context, _ int, owners storage.OwnerRange) ([]storage.WrongCount, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	byID := func(a, b storage.PostID) int {
		return cmp.Or(cmp.Compare(a.Author, b.Author), cmp.Compare(a.Number, b.Number))
	}
	var wrong []storage.WrongCount
	for _, id := range slices.SortedFunc(maps.Keys(s.posts), byID) {
		if have, are := s.posts[id].Counts.Favorites, s.favorites(id); isOf(owners, id.Author) && have != are {
			wrong = append(wrong, storage.WrongCount{User: id.Author, Post: id.Number, Have: have, Are: are})
		}
	}
	return wrong, nil
}

// RecountPosts implements [storage.Repairer].
func (s *Store) RecountPosts(ctx context.Context, posts []storage.PostID) []storage.Result[bool] {
	results := make([]storage.Result[bool], len(posts))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	defer s.write(ctx)()
	for i, id := range posts {
		results[i] = storage.Result[bool]{Value: true, Found: true}
		if p, are := s.posts[id], s.favorites(id); p != nil && p.Counts.Favorites != are {
			p.Counts.Favorites = are
			p.Counts.Version++
		}
	}
	return results
}
