package resolvers

import (
	"cmp"
	"context"

	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// placeList is a kind of list whose rows have places. Its pages are read with the level that they are on.
type placeList[Q comparable, R any] struct {
	kind  cursor.Kind
	pages func(*loaders.Loaders) *loaders.Loader[Q, []R]
	query func(e *access, of storage.PostID, after storage.Place, limit int) Q
	place func(R) storage.Place
	// ofUser says that who sees the list is decided here. Who sees a post sees its lists.
	ofUser bool
	// ahead reads what shows needs to know of the rows; nil: nothing.
	ahead func(e *access, a *social.Audience, rows []R) error
	// shows reports whether the audience may see a row.
	shows func(e *access, a *social.Audience, row R) bool
	// below is what the selection on the rows of a page needs.
	below func(ctx context.Context, a *social.Audience, rows []R, on []*selections.Object) wanted
}

var (
	userPosts = placeList[storage.PostsQuery, storage.Post]{
		kind: cursor.Posts, pages: (*loaders.Loaders).PostPages, place: storage.Post.Place, ofUser: true,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.PostsQuery {
			return storage.PostsQuery{Author: of.Author, After: after, Limit: limit}
		},
		shows: func(_ *access, a *social.Audience, p storage.Post) bool { return !a.Hides(p.Author) },
		below: func(_ context.Context, _ *social.Audience, rows []storage.Post, on []*selections.Object) wanted {
			return wanted{posts: rows, on: on}
		},
	}
	postComments = placeList[storage.CommentsQuery, storage.Comment]{
		kind: cursor.Comments, pages: (*loaders.Loaders).CommentPages, place: storage.Comment.Place,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.CommentsQuery {
			return storage.CommentsQuery{Post: of, After: after, Limit: limit}
		},
		shows: func(_ *access, a *social.Audience, c storage.Comment) bool { return !a.Hides(c.By) },
		below: func(_ context.Context, _ *social.Audience, rows []storage.Comment, on []*selections.Object) wanted {
			return wantedByComments(rows, on)
		},
	}
	userFavorites = placeList[storage.FavoritesQuery, storage.Edge]{
		kind: cursor.Favorites, pages: (*loaders.Loaders).FavoritePages, place: storage.FavoritePlace, ofUser: true,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.FavoritesQuery {
			return storage.FavoritesQuery{User: of.Author, After: after, Limit: limit}
		},
		ahead: func(e *access, a *social.Audience, rows []storage.Edge) error {
			for _, r := range e.loaders.Posts().Fetch(postsOfFavorites(rows)) {
				if r.Err != nil {
					return r.Err
				}
			}
			return e.fetchShown(a, storage.Each(rows, func(row storage.Edge) storage.UserID { return row.To }))
		},
		shows: func(e *access, a *social.Audience, row storage.Edge) bool {
			post := row.Pair().PostID()
			return e.loaders.Posts().Load(post).Found && e.isShown(a, post.Author)
		},
		below: func(ctx context.Context, a *social.Audience, rows []storage.Edge, on []*selections.Object) wanted {
			return wanted{posts: visiblePosts(ctx, a, postsOfFavorites(rows)), on: on}
		},
	}
	favoritedBy = placeList[storage.PageQuery, storage.Edge]{
		kind: cursor.FavoritedBy,
		pages: func(l *loaders.Loaders) *loaders.Loader[storage.PageQuery, []storage.Edge] {
			return l.Pages(storage.FavoriteInbox)
		},
		place: social.FavoritedByPlace,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.PageQuery {
			return storage.PageQuery{Owner: of.Author, Post: of.Number, After: positionAt(after), Limit: limit}
		},
		shows: func(_ *access, a *social.Audience, e storage.Edge) bool { return !a.Hides(e.From) },
		below: func(_ context.Context, _ *social.Audience, rows []storage.Edge, on []*selections.Object) wanted {
			return wanted{users: distinctOf(startsOf(rows)), exist: true, on: on}
		},
	}
)

// placeReads is pages of one field that are read together.
type placeReads[Q comparable, R any] struct {
	*placeList[Q, R]
	field *selections.Field
	of    []storage.PostID // whose lists they are: posts, or users without a number
	args  pageArguments
	asked *loaders.Asked[Q, []R]
}

// add adds a field of some users or posts to what a level reads. Wrong arguments are left to the field's resolver.
func (k *placeList[Q, R]) add(b *batch, request *requestState, f *selections.Field, of []storage.PostID) {
	if args, err := argument[pageArguments](request, f); err == nil && len(of) > 0 {
		b.places = append(b.places, &placeReads[Q, R]{placeList: k, field: f, of: of, args: args})
	}
}

// ask asks for one row more than each page shows.
func (p *placeReads[Q, R]) ask(e *access) loaders.Question {
	queries := storage.Each(p.of, func(of storage.PostID) Q { return p.query(e, of, p.args.after, p.args.size+1) })
	p.asked = p.pages(e.loaders).Ask(queries)
	return p.asked
}

// show keeps what the audience may see of the pages, and adds what is below them to the next level.
func (p *placeReads[Q, R]) show(ctx context.Context, b *batch, a *social.Audience) {
	e, request, results := accessOf(ctx), stateOf(ctx), p.asked.Results()
	if p.ahead != nil { // for all of them together; each reports the error of its own rows
		var all []R
		for i, r := range results {
			if shown, _ := p.isOpen(e, a, p.of[i]); shown {
				all = append(all, r.Value...)
			}
		}
		_ = p.ahead(e, a, all)
	}
	for i, r := range results {
		if shown, _ := p.isOpen(e, a, p.of[i]); !shown {
			continue
		}
		page, err := p.page(e, a, p.of[i], p.args, r)
		request.mu.Lock()
		request.answers.Put(answerName{p.field, p.of[i]}, storage.Result[social.Page[R]]{Value: page, Err: err})
		request.mu.Unlock()
		b.next = append(b.next, p.below(ctx, a, page.Rows, p.field.Below[0].Items))
	}
}

// isOpen reports whether the audience sees the list of a user or a post.
func (k *placeList[Q, R]) isOpen(e *access, a *social.Audience, of storage.PostID) (bool, error) {
	if !k.ofUser {
		return !a.Hides(of.Author), nil
	}
	return e.shows(a, of.Author)
}

// page fills a page, of which the first rows have been read.
func (k *placeList[Q, R]) page(e *access, a *social.Audience, of storage.PostID, args pageArguments, read storage.Result[[]R]) (page social.Page[R], err error) {
	ready := func(r storage.Result[[]R]) ([]R, error) {
		if r.Err == nil && k.ahead != nil {
			r.Err = k.ahead(e, a, r.Value)
		}
		return r.Value, r.Err
	}
	rows, err := ready(read)
	if err != nil {
		return page, err
	}
	return social.Show(&e.allowance, rows, args.size+1, args.size, func(row R) bool { return k.shows(e, a, row) }, k.place, func(after storage.Place, limit int) ([]R, error) {
		return ready(k.pages(e.loaders).Get(k.query(e, of, after, limit)))
	})
}

// answer is the page that has been read for the running field; nil if the audience does not see whose list it is.
func (k *placeList[Q, R]) answer(ctx context.Context, of storage.PostID) (*selections.Field, *social.Page[R], error) {
	f, request := planned(ctx), stateOf(ctx)
	if _, err := argument[pageArguments](request, f); err != nil {
		return nil, nil, err
	}
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	if open, err := k.isOpen(accessOf(ctx), a, of); err != nil || !open {
		return nil, nil, err
	}
	page, err := answerTo[social.Page[R]](request, answerName{f, of})
	if err != nil {
		return nil, nil, err
	}
	return f, &page, nil
}

// placeInfo reports what is behind a page. It ends at its last row, or where its budget ended.
func placeInfo[R any](r *Resolver, kind cursor.Kind, page social.Page[R], place func(R) storage.Place) (cursors []string, info *model.PageInfo) {
	cursors = storage.Each(page.Rows, func(row R) string { return spell(unsealed, kind, place(row)) })
	var next func(*cursor.Sealer) string
	if page.End != (storage.Place{}) {
		next = func(seal *cursor.Sealer) string { return spell(seal, kind, page.End) }
	}
	return cursors, r.pageInfo(cursors, page.More, next)
}

// addPosts adds what the fields of posts that have been read need. Their authors are read in
// the same level.
func (b *batch) addPosts(ctx context.Context, rows []storage.Post, on []*selections.Object) {
	request, ids := stateOf(ctx), storage.Each(rows, func(row storage.Post) storage.PostID { return row.PostID })
	for _, f := range fieldsOn(on) {
		switch f.Ahead {
		case fields.Author:
			b.addUsers(ctx, wanted{users: distinctOf(authorsOf(rows)), exist: true, on: f.Below})
		case fields.Comments:
			postComments.add(b, request, f, ids)
		case fields.HasFavorited:
			for _, id := range ids {
				if pair, signedIn := favoriteOf(ctx, id); signedIn {
					b.edges[storage.Favorites] = append(b.edges[storage.Favorites], pair)
				}
			}
		case fields.FavoritedBy:
			favoritedBy.add(b, request, f, ids)
		}
	}
}

// distinctOf lists ids, each once.
func distinctOf(ids []storage.UserID) []storage.UserID {
	var each idSet
	for _, id := range ids {
		each.Add(id, struct{}{})
	}
	return each.Keys()
}

// askNodes lists the questions about posts and comments by their ids.
func (b *batch) askNodes(l *loaders.Loaders) (asked []loaders.Question) {
	var posts []storage.PostID
	var comments []storage.CommentID
	var lists []storage.ListsQuery
	for _, w := range b.nodes {
		posts, comments, lists = append(posts, w.postIDs...), append(comments, w.comments...), append(lists, storage.Each(w.listIDs, oneList)...)
	}
	if len(posts) > 0 {
		asked = append(asked, l.Posts().Ask(posts))
	}
	if len(comments) > 0 {
		asked = append(asked, l.Comments().Ask(comments))
	}
	if len(lists) > 0 {
		asked = append(asked, l.UserLists().Ask(lists))
	}
	return asked
}

// showPosts adds what is below the posts, comments and lists that have been read, and that the audience may see, to the next level.
func (b *batch) showPosts(ctx context.Context, a *social.Audience) {
	for _, w := range b.nodes {
		for _, l := range seenLists(ctx, w.listIDs) { // each field reports its error
			if l.Found {
				b.next = append(b.next, wanted{lists: []storage.UserList{l.Value}, on: w.on})
			}
		}
		b.next = append(b.next, wanted{posts: visiblePosts(ctx, a, w.postIDs), on: w.on}, wantedByComments(visibleComments(ctx, a, w.comments), w.on))
	}
	for _, p := range b.places {
		p.show(ctx, b, a)
	}
}

// wantedByComments has the writers of comments read: comments of writers who do not exist are left out.
func wantedByComments(rows []storage.Comment, on []*selections.Object) wanted {
	by := storage.Each(rows, func(row storage.Comment) storage.UserID { return row.By })
	return wanted{users: distinctOf(by), exist: true, on: belowOf(aheadOn(fieldsOn(on), fields.Author, storage.Forward))}
}

// visiblePosts are the posts that exist and that the audience may see. All of the ids have been
// fetched.
func visiblePosts(ctx context.Context, a *social.Audience, ids []storage.PostID) (rows []storage.Post) {
	e := accessOf(ctx)
	for _, id := range ids {
		if r := e.loaders.Posts().Load(id); r.Found && e.isShown(a, id.Author) {
			rows = append(rows, r.Value)
		}
	}
	return rows
}

// postErr is why it is not known whether the audience sees a post.
func postErr(ctx context.Context, a *social.Audience, id storage.PostID) error {
	_, err := accessOf(ctx).shows(a, id.Author)
	return cmp.Or(loaders.For(ctx).Posts().Load(id).Err, err)
}

// visibleComments are the comments that the audience may see: the writer is not hidden, and the post
// may be seen.
func visibleComments(ctx context.Context, a *social.Audience, ids []storage.CommentID) (rows []storage.Comment) {
	e := accessOf(ctx)
	for _, id := range ids {
		if r := e.loaders.Comments().Load(id); r.Found && e.isShown(a, id.Author) && !a.Hides(r.Value.By) {
			rows = append(rows, r.Value)
		}
	}
	return rows
}
