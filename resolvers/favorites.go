package resolvers

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

var (
	userFavorites = placeList[storage.UserID, storage.FavoritesQuery, storage.Edge]{
		kind: cursor.Favorites, of: userName, pages: storage.FavoritePageLookups, place: storage.FavoritePlace, ofUser: true,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.FavoritesQuery {
			return storage.FavoritesQuery{User: of.Author, After: after, Limit: limit}
		},
		ahead: func(e *access, a *social.Audience, rows []storage.Edge) error {
			for _, r := range loaders.Of(e.loaders, storage.PostLookups).Fetch(postsOfFavorites(rows)) {
				if r.Err != nil {
					return r.Err
				}
			}
			return e.fetchShown(a, storage.Each(rows, func(row storage.Edge) storage.UserID { return row.To }))
		},
		shows: func(e *access, a *social.Audience, row storage.Edge) bool {
			post := row.Pair().PostID()
			return loaders.Of(e.loaders, storage.PostLookups).Load(post).Found && e.isShown(a, post.Author)
		},
		below: func(ctx context.Context, a *social.Audience, rows []storage.Edge, on []*selections.Object) wanted {
			return wantedPosts{visiblePosts(ctx, a, postsOfFavorites(rows)), on}
		},
	}
	favoritedBy = placeList[storage.Post, storage.PageQuery, storage.Edge]{
		kind: cursor.FavoritedBy, of: postName, pages: storage.PageLookups[storage.FavoriteInbox], place: social.FavoritedByPlace,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.PageQuery {
			return storage.PageQuery{Owner: of.Author, Post: of.Number, After: positionAt(after), Limit: limit}
		},
		shows: func(_ *access, a *social.Audience, e storage.Edge) bool { return !a.Hides(e.From) },
		below: func(_ context.Context, _ *social.Audience, rows []storage.Edge, on []*selections.Object) wanted {
			return wantedUsers{ids: distinctOf(startsOf(rows)), exist: true, on: on}
		},
	}
)

func postsOfFavorites(rows []storage.Edge) []storage.PostID {
	return storage.Each(rows, func(row storage.Edge) storage.PostID { return row.Pair().PostID() })
}

func (userFields) Favorites(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.FavoriteConnection, error) {
	f, p, err := answerTo[*rowsPage[storage.Edge]](ctx, userName(obj.UserID))
	if err != nil || p == nil {
		return nil, err
	}
	nodes := make([]*model.Post, len(p.rows))
	if items := f.Below[0].Items; items != nil {
		a, err := audienceOf(ctx)
		if err != nil {
			return nil, err
		}
		nodes = postsOf(ctx, visiblePosts(ctx, a, postsOfFavorites(p.rows)), items, itemPaths(ctx, f))
	}
	return &model.FavoriteConnection{
		PageInfo: p.info, Nodes: nodes,
		Edges: edges(len(nodes), func(i int) model.FavoriteEdge { return favoriteEdge(p.rows[i], nodes[i]) }),
	}, nil
}

func favoriteEdge(row storage.Edge, node *model.Post) model.FavoriteEdge {
	return model.FavoriteEdge{Cursor: spell(unsealed, cursor.Favorites, storage.FavoritePlace(row)), Node: node, FavoritedAt: row.UpdateTime.Time()}
}

// FavoritedBy leaves out users who no longer exist: they have favorited nothing.
func (postFields) FavoritedBy(ctx context.Context, obj *model.Post, _ *int32, _ *string) (*model.FavoritedByConnection, error) {
	f, p, err := answerTo[*rowsPage[storage.Edge]](ctx, obj.Row.PostID)
	if err != nil || p == nil {
		return nil, err
	}
	rows, nodes := p.rows, make([]*model.User, len(p.rows))
	if items := f.Below[0].Items; items != nil {
		l := loaders.For(ctx)
		rows = slices.DeleteFunc(slices.Clone(rows), func(row storage.Edge) bool { // the user has been deleted meanwhile
			user := l.Users.Load(row.From)
			return !user.Found && user.Err == nil
		})
		nodes = usersOf(ctx, wantedUsers{ids: startsOf(rows), exist: true, on: items}, itemPaths(ctx, f))
	}
	return &model.FavoritedByConnection{
		PageInfo: p.info, Nodes: nodes,
		Edges: edges(len(rows), func(i int) model.FavoritedByEdge { return favoritedByEdge(rows[i], nodes[i]) }),
	}, nil
}

func favoritedByEdge(row storage.Edge, node *model.User) model.FavoritedByEdge {
	return model.FavoritedByEdge{Cursor: spell(unsealed, cursor.FavoritedBy, social.FavoritedByPlace(row)), Node: node, FavoritedAt: row.UpdateTime.Time()}
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
	viewer, post, err := r.actorAndPost(ctx, id)
	if err != nil {
		return nil, err
	}
	f, stale, err := change(ctx, viewer, post)
	switch {
	case errors.Is(err, storage.ErrPostUnknown):
		return nil, errNoPost
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
	edge := s.below("favoriteEdge")
	level := []wanted{s.wantedViewer(ctx, viewer, true)}
	selectsPost := s.has("post") || s.has("favoriteEdge")
	if selectsPost {
		level = append(level, wantedPostIDs{[]storage.PostID{post}, append(s.of("post"), edge.of("node")...)})
	}
	fetch(ctx, level...)
	payload.Viewer = s.showViewer(ctx, viewer, true)
	if !selectsPost {
		return payload, nil
	}
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := postErr(ctx, a, post); err != nil {
		failAt(ctx, here(ctx, cmp.Or(s.key("post"), s.key("favoriteEdge")))(0), err)
	}
	for _, row := range visiblePosts(ctx, a, []storage.PostID{post}) {
		payload.Post = s.post(ctx, row)
		if f.Row.Type == storage.Favorited && s.has("favoriteEdge") {
			at := here(ctx, s.key("favoriteEdge"), edge.key("node"))
			made := favoriteEdge(f.Row, postsOf(ctx, []storage.Post{row}, edge.of("node"), at)[0])
			payload.FavoriteEdge = &made
		}
	}
	return payload, nil
}
