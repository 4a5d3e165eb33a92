package resolvers

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"kith/accounts/identity"
	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// favoriteList names a page of the posts that a user has favorited, favoritedByList a page of the users
// who have favorited a post.
type (
	favoriteList struct {
		user storage.UserID
		page placePage
	}
	favoritedByList struct {
		post storage.PostID
		page placePage
	}
)

type favoritesListed struct {
	*selections.Field
	favoriteList
}

type favoritedByListed struct {
	*selections.Field
	favoritedByList
}

// favoriteReads is what one level asks about favorites.
type favoriteReads struct {
	lists []favoritesListed
	by    []favoritedByListed

	askedLists *loaders.Asked[storage.FavoritesQuery, []storage.Edge]
	askedBy    *loaders.Asked[storage.FavoritedByQuery, []storage.Edge]
}

// ask lists the questions of a level.
func (p *favoriteReads) ask(l *loaders.Loaders) (asked []loaders.Question) {
	if len(p.lists) > 0 {
		queries := make([]storage.FavoritesQuery, len(p.lists))
		for i, list := range p.lists {
			queries[i] = storage.FavoritesQuery{User: list.user, After: list.page.after, Limit: list.page.asked()}
		}
		p.askedLists = l.FavoritePages().Ask(queries)
		asked = append(asked, p.askedLists)
	}
	if len(p.by) > 0 {
		queries := make([]storage.FavoritedByQuery, len(p.by))
		for i, list := range p.by {
			queries[i] = favoritedByQuery(list.post, list.page.after, list.page.asked())
		}
		p.askedBy = l.FavoritedBy().Ask(queries)
		asked = append(asked, p.askedBy)
	}
	return asked
}

func favoritedByQuery(post storage.PostID, after storage.Place, limit int) storage.FavoritedByQuery {
	return storage.FavoritedByQuery{Post: post, After: storage.Position{UpdateTime: after.CreatedAt, Peer: storage.UserID(after.Number)}, Limit: limit}
}

// showFavorites keeps the favorites that have been read and that the audience may see, and adds what
// is below them to the next level. The posts of all lists are one look-up.
func (b *batch) showFavorites(ctx context.Context, a *social.Audience) {
	l, p, request := loaders.For(ctx), &b.favorites, stateOf(ctx)
	if p.askedLists != nil {
		var ids []storage.PostID
		for i, r := range p.askedLists.Results() {
			if !a.Hides(p.lists[i].user) {
				ids = append(ids, postsOfFavorites(r.Value)...)
			}
		}
		l.Posts().Fetch(ids)
		for i, r := range p.askedLists.Results() {
			list := p.lists[i]
			if a.Hides(list.user) {
				continue
			}
			page, err := a.ShowFavorites(r.Value, list.page.asked(), list.page.size, l.Posts().Fetch, func(after storage.Place, limit int) ([]storage.Edge, error) {
				r := l.FavoritePages().Get(storage.FavoritesQuery{User: list.user, After: after, Limit: limit})
				return r.Value, r.Err
			})
			if r.Err != nil {
				err = r.Err
			}
			keep(request, &request.favorites, list.favoriteList, page, err)
			if items := list.Below[0].Items; items != nil {
				b.next = append(b.next, wanted{posts: visiblePosts(ctx, a, postsOfFavorites(page.Rows)), on: items})
			}
		}
	}
	if p.askedBy != nil {
		for i, r := range p.askedBy.Results() {
			list := p.by[i]
			page, err := a.ShowFavoritedBy(r.Value, list.page.asked(), list.page.size, func(after storage.Place, limit int) ([]storage.Edge, error) {
				r := l.FavoritedBy().Get(favoritedByQuery(list.post, after, limit))
				return r.Value, r.Err
			})
			if r.Err != nil {
				err = r.Err
			}
			keep(request, &request.favoritedBy, list.favoritedByList, page, err)
			if items := list.Below[0].Items; items != nil && len(page.Rows) > 0 {
				b.next = append(b.next, wanted{users: distinctOf(usersOfFavorites(page.Rows)), exist: true, on: items})
			}
		}
	}
}

// keep keeps a page for the resolver of its field.
func keep[K comparable](request *requestState, of *few[K, storage.Result[social.Page[storage.Edge]]], name K, page social.Page[storage.Edge], err error) {
	request.mu.Lock()
	defer request.mu.Unlock()
	of.put(name, storage.Result[social.Page[storage.Edge]]{Value: page, Err: err})
}

func postsOfFavorites(rows []storage.Edge) []storage.PostID {
	ids := make([]storage.PostID, len(rows))
	for i, row := range rows {
		ids[i] = row.Pair().PostID()
	}
	return ids
}

func usersOfFavorites(rows []storage.Edge) []storage.UserID {
	ids := make([]storage.UserID, len(rows))
	for i, row := range rows {
		ids[i] = row.From
	}
	return ids
}

// favoriteOf names the viewer's favorite of a post; false if the viewer is not signed in.
func favoriteOf(ctx context.Context, post storage.PostID) (storage.Pair, bool) {
	viewer, ok := identity.Of(ctx)
	return storage.Pair{From: viewer.ID, To: post.Author, Post: post.Number}, ok
}

func (r userFields) Favorites(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.FavoriteConnection, error) {
	f, request := planned(ctx), stateOf(ctx)
	args, err := argument[placePage](request, f)
	if err != nil {
		return nil, err
	}
	a, err := audienceOf(ctx)
	if err != nil || a.Hides(obj.UserID) {
		return nil, err
	}
	page := mustHave(request, &request.favorites, favoriteList{obj.UserID, args})
	if page.Err != nil {
		return nil, page.Err
	}
	rows := page.Value.Rows
	c := &model.FavoriteConnection{
		PageInfo: args.info(cursor.Favorites, r.Cursors, placesOf(rows, storage.FavoritePlace), page.Value.More, page.Value.End),
		Nodes:    make([]*model.Post, len(rows)), Edges: make([]*model.FavoriteEdge, len(rows)),
	}
	if items := f.Below[0].Items; items != nil {
		posts := visiblePosts(ctx, a, postsOfFavorites(rows))
		c.Nodes = postsOf(ctx, posts, items, itemPaths(ctx, f))
	}
	for i, row := range rows {
		c.Edges[i] = favoriteEdge(row, c.Nodes[i])
	}
	return c, nil
}

func favoriteEdge(row storage.Edge, node *model.Post) *model.FavoriteEdge {
	return &model.FavoriteEdge{Cursor: placeCursor(cursor.Favorites, storage.FavoritePlace(row)), Node: node, FavoritedAt: row.UpdateTime.Time()}
}

func placesOf(rows []storage.Edge, place func(storage.Edge) storage.Place) []storage.Place {
	places := make([]storage.Place, len(rows))
	for i, row := range rows {
		places[i] = place(row)
	}
	return places
}

// FavoritedBy answers `favoritedBy` of a post. A user that no longer exists has favorited nothing.
func (r postFields) FavoritedBy(ctx context.Context, obj *model.Post, _ *int32, _ *string) (*model.FavoritedByConnection, error) {
	f, request := planned(ctx), stateOf(ctx)
	args, err := argument[placePage](request, f)
	if err != nil {
		return nil, err
	}
	if _, err := audienceOf(ctx); err != nil {
		return nil, err
	}
	page := mustHave(request, &request.favoritedBy, favoritedByList{obj.Row.PostID, args})
	if page.Err != nil {
		return nil, page.Err
	}
	c := &model.FavoritedByConnection{
		PageInfo: args.info(cursor.FavoritedBy, r.Cursors, placesOf(page.Value.Rows, social.FavoritedByPlace), page.Value.More, page.Value.End),
	}
	rows := page.Value.Rows
	c.Nodes = make([]*model.User, len(rows))
	if items := f.Below[0].Items; items != nil {
		l := loaders.For(ctx)
		rows = slices.DeleteFunc(slices.Clone(rows), func(row storage.Edge) bool { // the user has been deleted meanwhile
			user := l.Users.Load(row.From)
			return !user.Found && user.Err == nil
		})
		c.Nodes = usersOf(ctx, wanted{users: usersOfFavorites(rows), exist: true, on: items}, itemPaths(ctx, f))
	}
	c.Edges = make([]*model.FavoritedByEdge, len(rows))
	for i, row := range rows {
		c.Edges[i] = &model.FavoritedByEdge{
			Cursor: placeCursor(cursor.FavoritedBy, social.FavoritedByPlace(row)), Node: c.Nodes[i], FavoritedAt: row.UpdateTime.Time(),
		}
	}
	return c, nil
}

// Favorite answers `favorite`, unfavoriteAt `unfavorite`.
func (r mutations) Favorite(ctx context.Context, id string) (*model.FavoritePayload, error) {
	return r.changeFavorite(ctx, id, r.Relations.Favorite)
}

func (r mutations) Unfavorite(ctx context.Context, id string) (*model.FavoritePayload, error) {
	return r.changeFavorite(ctx, id, r.Relations.Unfavorite)
}

func (r *Resolver) changeFavorite(ctx context.Context, id string, change func(context.Context, storage.UserID, storage.PostID) (social.Favored, error)) (*model.FavoritePayload, error) {
	viewer, post, err := r.actorAndPost(ctx, id)
	if err != nil {
		return nil, err
	}
	f, err := change(ctx, viewer, post)
	switch {
	case errors.Is(err, storage.ErrPostUnknown):
		return nil, errNoPost
	case err != nil:
		return nil, clientError(err)
	}
	s, d := payloadSelection(ctx), done{viewer: viewer, stale: f.Stale}
	payload := &model.FavoritePayload{Changed: f.Changed}
	if f.Row.UpdateTime > 0 {
		d.token = consistency.Token{markOf(storage.Row{Side: storage.Favorites, Edge: f.Row})}
		if !f.Inverse {
			d.late = d.token
		}
		if text := r.Tokens.Text(d.token); text != "" {
			payload.ConsistencyToken = &text
		}
		loaders.For(ctx).Edges(storage.Favorites).Prime(f.Row.Pair(), f.Row)
	}
	r.await(ctx, d, s.readsInverse())
	edge := s.below("favoriteEdge")
	level := []wanted{{users: []storage.UserID{viewer}, exist: s.has("viewer"), on: s.of("viewer")}}
	selectsPost := s.has("post") || s.has("favoriteEdge")
	if selectsPost {
		level = append(level, wanted{postIDs: []storage.PostID{post}, on: append(s.of("post"), edge.of("node")...)})
	}
	fetch(ctx, level...)
	payload.Viewer = s.user(ctx, "viewer", viewer, true)
	if !selectsPost {
		return payload, nil
	}
	if row := loaders.For(ctx).Posts().Load(post); row.Err != nil {
		failAt(ctx, here(ctx, cmp.Or(s.key("post"), s.key("favoriteEdge")))(0), row.Err)
	}
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range visiblePosts(ctx, a, []storage.PostID{post}) {
		payload.Post = s.post(ctx, row)
		if f.Row.Type == storage.Favorited && s.has("favoriteEdge") {
			at := here(ctx, s.key("favoriteEdge"), edge.key("node"))
			payload.FavoriteEdge = favoriteEdge(f.Row, postsOf(ctx, []storage.Post{row}, edge.of("node"), at)[0])
		}
	}
	return payload, nil
}

// hasFavorited says whether the viewer has favorited a post, if that was selected and has been
// fetched.
func hasFavorited(ctx context.Context, post storage.PostID, on []*selections.Object) (is storage.Result[bool]) {
	pair, signedIn := favoriteOf(ctx, post)
	if !signedIn || aheadOn(fieldsOn(on), fields.HasFavorited, storage.Forward) == nil {
		return is
	}
	r := loaders.For(ctx).Edges(storage.Favorites).Load(pair)
	return storage.Result[bool]{Value: r.Value.Type == storage.Favorited, Found: true, Err: r.Err}
}
