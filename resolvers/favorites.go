package resolvers

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"kith/accounts/identity"
	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

func postsOfFavorites(rows []storage.Edge) []storage.PostID {
	return storage.Each(rows, func(row storage.Edge) storage.PostID { return row.Pair().PostID() })
}

func startsOf(rows []storage.Edge) []storage.UserID {
	return storage.Each(rows, func(row storage.Edge) storage.UserID { return row.From })
}

// favoriteOf names the viewer's favorite of a post; false if the viewer is not signed in.
func favoriteOf(ctx context.Context, post storage.PostID) (storage.Pair, bool) {
	viewer, ok := identity.Of(ctx)
	return storage.Pair{From: viewer.ID, To: post.Author, Post: post.Number}, ok
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
		loaders.For(ctx).Edges(storage.Favorites).Prime(f.Row.Pair(), f.Row)
	}
	r.await(ctx, d, s.readsInverse())
	edge := s.below("favoriteEdge")
	level := []wanted{s.wantedViewer(ctx, viewer, true)}
	selectsPost := s.has("post") || s.has("favoriteEdge")
	if selectsPost {
		level = append(level, wantedPostIDs{[]storage.PostID{post}, append(s.of("post"), edge.of("node")...)})
	}
	fetch(ctx, level...)
	payload.Viewer = s.viewer(ctx, viewer, true)
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

// hasFavorited says whether the viewer has favorited a post, if that has been fetched.
func hasFavorited(ctx context.Context, post storage.PostID) (is storage.Result[bool]) {
	pair, signedIn := favoriteOf(ctx, post)
	if !signedIn {
		return is
	}
	r := loaders.For(ctx).Edges(storage.Favorites).Load(pair)
	return storage.Result[bool]{Value: r.Value.Type == storage.Favorited, Found: true, Err: r.Err}
}
