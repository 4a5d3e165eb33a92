package prefetch

import (
	"context"

	"kith/graph/cursor"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// PlaceList is a kind of list whose rows have places: a field of objects that are known by an O each. Its pages are read with the level
// that they are on.
type PlaceList[O any, Q comparable, R any] struct {
	Kind  cursor.Kind
	Of    func(O) storage.PostID // whose list it is: a post, or a user without a number
	Pages *storage.LookupKind[Q, []R]
	Query func(e *Access, of storage.PostID, after storage.Place, limit int) Q
	Place func(R) storage.Place
	// OfUser says that it is decided here who sees the list. The lists of a post are shown to
	// everybody who sees the post.
	OfUser bool
	// Ahead reads what Shows needs to know of the rows; nil: nothing.
	Ahead func(e *Access, a *social.Audience, rows []R) error
	// Shows reports whether the audience may see a row.
	Shows func(e *Access, a *social.Audience, row R) bool
	// Below is what the selection on the rows of a page needs.
	Below func(ctx context.Context, a *social.Audience, rows []R, on []*selections.Object) Objects
}

// Behind is the Query of most kinds.
func Behind(_ *Access, of storage.PostID, after storage.Place, limit int) storage.PlaceQuery {
	return storage.PlaceQuery{Of: of, After: after, Limit: limit}
}

// Parse implements [selections.Read].
func (k *PlaceList[O, Q, R]) Parse(ctx context.Context, f *selections.Field) any {
	return Parsed(ParsePage(ctx, f, k.Kind))
}

// Ask asks for one row more than each page shows. Once the audience is known, it keeps the rows that the audience may see, and then asks for the
// selections below them.
func (k *PlaceList[O, Q, R]) Ask(_ context.Context, level *Level, f *selections.Field, objects []O) {
	args, err := ArgumentsOf[PageArguments](level.Request, f)
	if err != nil {
		return
	}
	of := storage.Each(objects, k.Of)
	if k.OfUser {
		level.AddOpens(storage.FavoriteInbox, storage.Each(of, func(id storage.PostID) storage.UserID { return id.Author }))
	}
	read := loaders.Of(level.Loaders, k.Pages).Ask(storage.Each(of, func(of storage.PostID) Q { return k.Query(level.Access, of, args.After, args.Size+1) }))
	level.Ask(read)
	level.Seen = append(level.Seen, func(ctx context.Context, a *social.Audience) {
		results := read.Results()
		if k.Ahead != nil { // for all of them together; each reports the error of its own rows
			var all []R
			for i, r := range results {
				if shown, _ := k.isOpen(level.Access, a, of[i]); shown {
					all = append(all, r.Value...)
				}
			}
			_ = k.Ahead(level.Access, a, all)
		}
		for i, r := range results {
			p := k.page(level.Access, a, of[i], args, r)
			level.Request.Put(PageName{f.Same, of[i]}, p)
			level.Next = append(level.Next, k.Below(ctx, a, p.Rows, f.Below[0].Items))
		}
	})
}

// isOpen reports whether the audience sees the list of a user or a post.
func (k *PlaceList[O, Q, R]) isOpen(e *Access, a *social.Audience, of storage.PostID) (bool, error) {
	if !k.OfUser {
		return !a.Hides(of.Author), nil
	}
	return e.Shows(a, of.Author)
}

// page fills a page, of which the first rows have been read.
func (k *PlaceList[O, Q, R]) page(e *Access, a *social.Audience, of storage.PostID, args PageArguments, read storage.Result[[]R]) *Page[R] {
	e, a, reasons := e.Noticing(a)
	if open, err := k.isOpen(e, a, of); err != nil || !open {
		return &Page[R]{Err: err, IsClosed: true, Why: reasons}
	}
	ready := func(r storage.Result[[]R]) ([]R, error) {
		if r.Err == nil && k.Ahead != nil {
			r.Err = k.Ahead(e, a, r.Value)
		}
		return r.Value, r.Err
	}
	var shown social.Page[R]
	rows, err := ready(read)
	if err == nil {
		shown, err = social.Show(e.Left(), rows, args.Size+1, args.Size, func(row R) bool { return k.Shows(e, a, row) }, k.Place, func(after storage.Place, limit int) ([]R, error) {
			return ready(loaders.Of(e.Loaders, k.Pages).Get(k.Query(e, of, after, limit)))
		})
	}
	p := PageOfPlaces(e.Cursors, k.Kind, shown, k.Place)
	p.Err, p.Why = err, reasons
	return p
}

// PageOfPlaces is a page of rows with what is behind it. It ends at its last row, or where its budget ended.
func PageOfPlaces[R any](sealer *cursor.Sealer, kind cursor.Kind, shown social.Page[R], place func(R) storage.Place) *Page[R] {
	p := &Page[R]{Rows: shown.Rows, Complete: shown.End == storage.Place{}}
	p.Cursors = storage.Each(shown.Rows, func(row R) string { return Spell(Unsealed, kind, place(row)) })
	var next func(*cursor.Sealer) string
	if shown.End != (storage.Place{}) {
		next = func(seal *cursor.Sealer) string { return Spell(seal, kind, shown.End) }
	}
	p.Info = PageInfo(sealer, p.Cursors, shown.More, next)
	return p
}
