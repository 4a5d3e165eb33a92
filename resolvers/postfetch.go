package resolvers

import (
	"cmp"
	"context"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// placeList is a kind of list whose rows have places: lists of what is known by an O each. Its pages are read with the level that they are on.
type placeList[O any, Q comparable, R any] struct {
	kind  cursor.Kind
	of    func(O) storage.PostID // whose list it is: a post, or a user without a number
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
	userPosts = placeList[storage.UserID, storage.PostsQuery, storage.Post]{
		kind: cursor.Posts, of: userName, pages: (*loaders.Loaders).PostPages, place: storage.Post.Place, ofUser: true,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.PostsQuery {
			return storage.PostsQuery{Author: of.Author, After: after, Limit: limit}
		},
		shows: func(_ *access, a *social.Audience, p storage.Post) bool { return !a.Hides(p.Author) },
		below: func(_ context.Context, _ *social.Audience, rows []storage.Post, on []*selections.Object) wanted {
			return wantedPosts{rows, on}
		},
	}
	postComments = placeList[storage.Post, storage.CommentsQuery, storage.Comment]{
		kind: cursor.Comments, of: postName, pages: (*loaders.Loaders).CommentPages, place: storage.Comment.Place,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.CommentsQuery {
			return storage.CommentsQuery{Post: of, After: after, Limit: limit}
		},
		shows: func(_ *access, a *social.Audience, c storage.Comment) bool { return !a.Hides(c.By) },
		below: func(_ context.Context, _ *social.Audience, rows []storage.Comment, on []*selections.Object) wanted {
			return wantedComments{rows, on}
		},
	}
	userFavorites = placeList[storage.UserID, storage.FavoritesQuery, storage.Edge]{
		kind: cursor.Favorites, of: userName, pages: (*loaders.Loaders).FavoritePages, place: storage.FavoritePlace, ofUser: true,
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
			return wantedPosts{visiblePosts(ctx, a, postsOfFavorites(rows)), on}
		},
	}
	favoritedBy = placeList[storage.Post, storage.PageQuery, storage.Edge]{
		kind: cursor.FavoritedBy, of: postName,
		pages: func(l *loaders.Loaders) *loaders.Loader[storage.PageQuery, []storage.Edge] {
			return l.Pages(storage.FavoriteInbox)
		},
		place: social.FavoritedByPlace,
		query: func(_ *access, of storage.PostID, after storage.Place, limit int) storage.PageQuery {
			return storage.PageQuery{Owner: of.Author, Post: of.Number, After: positionAt(after), Limit: limit}
		},
		shows: func(_ *access, a *social.Audience, e storage.Edge) bool { return !a.Hides(e.From) },
		below: func(_ context.Context, _ *social.Audience, rows []storage.Edge, on []*selections.Object) wanted {
			return wantedUsers{ids: distinctOf(startsOf(rows)), exist: true, on: on}
		},
	}
)

// Parse implements [selections.Read].
func (k *placeList[O, Q, R]) Parse(ctx context.Context, f *selections.Field) any {
	return parsedAs(pageOf(ctx, f, k.kind))
}

// ask asks for one row more than each page shows. When it is known who is in the audience, what it may see of the pages is kept, and what is below them is next.
func (k *placeList[O, Q, R]) ask(ctx context.Context, b *batch, f *selections.Field, objects []O) {
	args, err := argument[pageArguments](b.request, f)
	if err != nil {
		return
	}
	of := storage.Each(objects, k.of)
	if k.ofUser {
		b.addOpens(storage.FavoriteInbox, storage.Each(of, func(id storage.PostID) storage.UserID { return id.Author }))
	}
	read := k.pages(b.loaders).Ask(storage.Each(of, func(of storage.PostID) Q { return k.query(b.access, of, args.after, args.size+1) }))
	b.ask(read)
	b.seen = append(b.seen, func(ctx context.Context, a *social.Audience) {
		results := read.Results()
		if k.ahead != nil { // for all of them together; each reports the error of its own rows
			var all []R
			for i, r := range results {
				if shown, _ := k.isOpen(b.access, a, of[i]); shown {
					all = append(all, r.Value...)
				}
			}
			_ = k.ahead(b.access, a, all)
		}
		for i, r := range results {
			p := k.page(b.access, a, of[i], args, r)
			b.request.mu.Lock()
			b.request.answers.Put(answerName{f.Same, of[i]}, p)
			b.request.mu.Unlock()
			b.next = append(b.next, k.below(ctx, a, p.rows, f.Below[0].Items))
		}
	})
}

// isOpen reports whether the audience sees the list of a user or a post.
func (k *placeList[O, Q, R]) isOpen(e *access, a *social.Audience, of storage.PostID) (bool, error) {
	if !k.ofUser {
		return !a.Hides(of.Author), nil
	}
	return e.shows(a, of.Author)
}

// page fills a page, of which the first rows have been read.
func (k *placeList[O, Q, R]) page(e *access, a *social.Audience, of storage.PostID, args pageArguments, read storage.Result[[]R]) *rowsPage[R] {
	if open, err := k.isOpen(e, a, of); err != nil || !open {
		return &rowsPage[R]{page: page{err: err, isClosed: true}}
	}
	ready := func(r storage.Result[[]R]) ([]R, error) {
		if r.Err == nil && k.ahead != nil {
			r.Err = k.ahead(e, a, r.Value)
		}
		return r.Value, r.Err
	}
	var shown social.Page[R]
	rows, err := ready(read)
	if err == nil {
		shown, err = social.Show(&e.allowance, rows, args.size+1, args.size, func(row R) bool { return k.shows(e, a, row) }, k.place, func(after storage.Place, limit int) ([]R, error) {
			return ready(k.pages(e.loaders).Get(k.query(e, of, after, limit)))
		})
	}
	p := pageOfPlaces(e.resolver, k.kind, shown, k.place)
	p.err = err
	return p
}

// pageOfPlaces is a page of rows with what is behind it. It ends at its last row, or where its budget ended.
func pageOfPlaces[R any](r *Resolver, kind cursor.Kind, shown social.Page[R], place func(R) storage.Place) *rowsPage[R] {
	p := &rowsPage[R]{rows: shown.Rows}
	p.cursors = storage.Each(shown.Rows, func(row R) string { return spell(unsealed, kind, place(row)) })
	var next func(*cursor.Sealer) string
	if shown.End != (storage.Place{}) {
		next = func(seal *cursor.Sealer) string { return spell(seal, kind, shown.End) }
	}
	p.info = r.pageInfo(p.cursors, shown.More, next)
	return p
}

var (
	// postAuthor is who has written a post.
	postAuthor = writer(func(p storage.Post) storage.UserID { return p.Author },
		func(p *model.Post) (storage.UserID, **model.User) { return p.Row.Author, &p.Author })
	// commentAuthor is who has written a comment.
	commentAuthor = writer(writerOf, func(c *model.Comment) (storage.UserID, **model.User) { return c.Row.By, &c.Author })
)

func writerOf(row storage.Comment) storage.UserID { return row.By }

// writer is a user of each object, who is read in the object's level. into is where the user is put.
func writer[R, M any](of func(R) storage.UserID, into func(*M) (storage.UserID, **model.User)) *part[R, M] {
	ask := func(ctx context.Context, b *batch, f *selections.Field, rows []R) {
		wantedUsers{ids: distinctOf(storage.Each(rows, of)), exist: true, on: f.Below}.add(ctx, b)
	}
	return partOf(ask, func(ctx context.Context, made []*M, aliases []*selections.Field, at paths) {
		ids := storage.Each(made, func(m *M) storage.UserID { id, _ := into(m); return id })
		for i, u := range usersOf(ctx, wantedUsers{ids: ids, exist: true, on: belowOf(aliases)}, at) {
			_, user := into(made[i])
			*user = u
		}
	})
}

// wantedComments has the writers of comments read: comments of writers who do not exist are left out.
type wantedComments wantedRows[storage.Comment]

func (w wantedComments) add(ctx context.Context, b *batch) {
	wantedUsers{ids: distinctOf(storage.Each(w.rows, writerOf)), exist: true}.add(ctx, b)
	wantedRows[storage.Comment](w).add(ctx, b)
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
