package resolvers

import (
	"context"
	"errors"

	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

var (
	userFavorites = prefetch.PlaceList[storage.UserID, storage.PlaceQuery, storage.Edge]{
		Kind: cursor.Favorites, Of: userName, Pages: storage.FavoritePageLookups, Place: storage.Edge.Place, OfUser: true,
		Query: prefetch.Behind,
		Ahead: func(e *prefetch.Access, a *social.Audience, rows []storage.Edge) error {
			for _, r := range loaders.Of(e.Loaders, storage.PostLookups).Fetch(postsOfFavorites(rows)) {
				if r.Err != nil {
					return r.Err
				}
			}
			return e.FetchShown(a, storage.Each(rows, func(row storage.Edge) storage.UserID { return row.To }))
		},
		Shows: func(e *prefetch.Access, a *social.Audience, row storage.Edge) bool {
			post := row.Pair().PostID()
			return loaders.Of(e.Loaders, storage.PostLookups).Load(post).Found && e.IsShown(a, post.Author)
		},
		Below: func(ctx context.Context, a *social.Audience, rows []storage.Edge, on []*selections.Object) prefetch.Objects {
			return postRows{visiblePosts(ctx, a, postsOfFavorites(rows)), on}
		},
	}
	favoritedBy = prefetch.PlaceList[storage.Post, storage.PageQuery, storage.Edge]{
		Kind: cursor.FavoritedBy, Of: postName, Pages: storage.PageLookups[storage.FavoriteInbox], Place: social.FavoritedByPlace,
		Query: func(_ *prefetch.Access, of storage.PostID, after storage.Place, limit int) storage.PageQuery {
			return storage.PageQuery{Owner: of.Author, Item: of.Number, After: prefetch.PositionAt(after), Limit: limit}
		},
		Shows: func(_ *prefetch.Access, a *social.Audience, e storage.Edge) bool { return !a.Hides(e.From) },
		Below: func(_ context.Context, _ *social.Audience, rows []storage.Edge, on []*selections.Object) prefetch.Objects {
			return prefetch.Users{IDs: prefetch.Distinct(startsOf(rows)), Exist: true, On: on}
		},
	}
)

func postsOfFavorites(rows []storage.Edge) []storage.PostID {
	return storage.Each(rows, func(row storage.Edge) storage.PostID { return row.Pair().PostID() })
}

func (userFields) Favorites(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.FavoriteConnection, error) {
	f, p, err := prefetch.Answer[storage.Edge](ctx, userName(obj.UserID))
	if err != nil || p == nil {
		return nil, err
	}
	nodes := make([]*model.Post, len(p.Rows))
	if items := f.Below[0].Items; items != nil {
		l := loaders.Of(loaders.For(ctx), storage.PostLookups) // what is shown is decided: an author may be hidden meanwhile
		posts := storage.Each(postsOfFavorites(p.Rows), func(id storage.PostID) storage.Post { return l.Load(id).Value })
		nodes = postsOf(ctx, posts, items, prefetch.ItemPaths(ctx, f))
	}
	return &model.FavoriteConnection{Page: prefetch.PageOf(p.Info, nodes, func(i int) model.FavoriteEdge { return favoriteEdge(p.Rows[i], nodes[i]) })}, nil
}

func favoriteEdge(row storage.Edge, node *model.Post) model.FavoriteEdge {
	return model.FavoriteEdge{Cursor: prefetch.Spell(prefetch.Unsealed, cursor.Favorites, row.Place()), Node: node, FavoritedAt: row.UpdateTime.Time()}
}

// FavoritedBy leaves out users who no longer exist: they have favorited nothing.
func (postFields) FavoritedBy(ctx context.Context, obj *model.Post, _ *int32, _ *string) (*model.UserConnection, error) {
	f, p, err := prefetch.Answer[storage.Edge](ctx, obj.Row.PostID)
	if err != nil || p == nil {
		return nil, err
	}
	users := userPage{Cursors: p.Cursors, Info: p.Info, Complete: p.Complete}
	takeUsers(&users, storage.FavoriteInbox, p.Rows)
	return shownUsers(ctx, f, &users), nil
}

func (r mutations) Favorite(ctx context.Context, id string) (*model.FavoritePayload, error) {
	return r.changeFavorite(ctx, id, func(ctx context.Context, viewer storage.UserID, post storage.PostID) (storage.Changed, bool, error) {
		return r.Relations.Favorite(ctx, loaders.For(ctx).Reader(), viewer, post)
	})
}

func (r mutations) Unfavorite(ctx context.Context, id string) (*model.FavoritePayload, error) {
	return r.changeFavorite(ctx, id, r.Relations.Unfavorite)
}

func (r *Resolver) changeFavorite(ctx context.Context, id string, change func(context.Context, storage.UserID, storage.PostID) (storage.Changed, bool, error)) (*model.FavoritePayload, error) {
	viewer, post, err := r.actorAndPost(ctx, id, 1)
	if err != nil {
		return nil, err
	}
	f, stale, err := change(ctx, viewer, post)
	switch {
	case errors.Is(err, storage.ErrPostUnknown):
		return nil, noPost(ctx, post)
	case err != nil:
		return nil, clientError(err)
	}
	s, d := payloadSelection(ctx), done{viewer: viewer, stale: stale}
	payload := &model.FavoritePayload{Changed: f.Changed}
	if f.Row.UpdateTime > 0 {
		d.token = consistency.Token{markOf(storage.Row{Side: storage.Favorites, Edge: f.Row})}
		if !f.Inverse {
			d.late = d.token
		}
		loaders.Of(loaders.For(ctx), storage.EdgeLookups[storage.Favorites]).Prime(f.Row.Pair(), f.Row)
	}
	r.await(ctx, d, s.readsInverse())
	level := []prefetch.Objects{s.viewerObjects(viewer)}
	selectsPost := s.has("post") || s.has("favoriteEdge")
	if selectsPost {
		level = append(level, postIDs{[]storage.PostID{post}, append(s.of("post"), s.below("favoriteEdge").of("node")...)})
	}
	prefetch.Fetch(ctx, level...)
	payload.Viewer = s.showViewer(ctx, viewer)
	if !selectsPost {
		return payload, nil
	}
	a, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := postErr(ctx, a, post); err != nil {
		prefetch.FailAt(ctx, append(s.at(ctx, "post")(0), s.at(ctx, "favoriteEdge")(0)...), err)
	}
	for _, row := range visiblePosts(ctx, a, []storage.PostID{post}) {
		payload.Post = s.post(ctx, row, "post")
		payload.FavoriteEdge = madeOne(s, "favoriteEdge", f.Changed && f.Row.Type == storage.Favorited, func() model.FavoriteEdge {
			return favoriteEdge(f.Row, s.post(ctx, row, "favoriteEdge", "node"))
		})
	}
	return payload, nil
}
