package resolvers

import (
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
	pages *storage.LookupKind[Q, []R]
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

// Parse implements [selections.Read].
func (k *placeList[O, Q, R]) Parse(ctx context.Context, f *selections.Field) any {
	return parsedAs(pageOf(ctx, f, k.kind))
}

// ask asks for one row more than each page shows. When it is known who is in the audience, what it may see of the pages is kept, and what is below them is next.
func (k *placeList[O, Q, R]) ask(_ context.Context, b *batch, f *selections.Field, objects []O) {
	args, err := argument[pageArguments](b.request, f)
	if err != nil {
		return
	}
	of := storage.Each(objects, k.of)
	if k.ofUser {
		b.addOpens(storage.FavoriteInbox, storage.Each(of, func(id storage.PostID) storage.UserID { return id.Author }))
	}
	read := loaders.Of(b.loaders, k.pages).Ask(storage.Each(of, func(of storage.PostID) Q { return k.query(b.access, of, args.after, args.size+1) }))
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
			return ready(loaders.Of(e.loaders, k.pages).Get(k.query(e, of, after, limit)))
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

// writer is a user of each object, who is read in the object's level. into is where the user is put.
func writer[R, M any](of func(R) storage.UserID, into func(*M) (storage.UserID, **model.User)) *inset[R, M] {
	ask := func(ctx context.Context, b *batch, f *selections.Field, rows []R) {
		wantedUsers{ids: distinctOf(storage.Each(rows, of)), exist: true, on: f.Below}.add(ctx, b)
	}
	return insetOf(ask, func(ctx context.Context, made []*M, aliases []*selections.Field, at paths) {
		ids := storage.Each(made, func(m *M) storage.UserID { id, _ := into(m); return id })
		for i, u := range usersOf(ctx, wantedUsers{ids: ids, exist: true, on: belowOf(aliases)}, at) {
			_, user := into(made[i])
			*user = u
		}
	})
}
