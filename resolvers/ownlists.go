package resolvers

import (
	"cmp"
	"context"
	"math"
	"slices"

	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// An ownList is a list that is read by itself: the users whom its owner blocks, its requests in one
// state, or its edges of a declared kind. It is read newest first, without hidden users.
type ownList struct {
	side  storage.Side
	owner storage.UserID
	item  int64 // the number of a declared kind; 0 for others
	kind  storage.EdgeType

	checked bool // only of users whose posts the audience sees: what a locked user does is for its followers

	newerThan storage.Micros // 0: no bound; otherwise only edges newer than that …
	upTo      storage.Micros // … or only edges that are not newer than that
}

// query asks for edges behind a position; zero is the beginning.
func (l ownList) query(after storage.Position, limit int) storage.PageQuery {
	q := storage.PageQuery{Owner: l.owner, Item: l.item, Type: l.kind, Limit: limit, After: after}
	if l.newerThan > 0 {
		q.Before = storage.Position{UpdateTime: l.newerThan, Peer: math.MaxInt64}
	}
	if l.upTo > 0 {
		first := storage.Position{UpdateTime: l.upTo + 1}
		if after == (storage.Position{}) || after.Compare(first) < 0 {
			q.After = first
		}
	}
	return q
}

// cursorsOf are those of edges of a declared kind.
func (l ownList) cursorsOf() prefetch.Cursors {
	return relationCursors(l.side, l.owner, l.item)
}

// page reads as much of a page as is needed.
func (l ownList) page(ctx context.Context, read loaders.Reader, a *social.Audience, args prefetch.PageArguments, cursors prefetch.Cursors, n fields.Needs) (p userPage, err error) {
	var at, peer int64
	if err := cursors.Read(ctx, "after", args.Text, &at, &peer); err != nil {
		return p, err
	}
	made := &edgesRead{}
	p.Complete, p.Made = true, made
	if n&fields.Total != 0 {
		var size social.Size
		size, p.Total.Err = l.sizeOf(ctx, read, a)
		p.Total.Value, p.Complete = size.Total, size.Complete
	}
	if n&fields.Rows == 0 {
		return p, nil
	}
	query := l.query(storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}, args.Size)
	var result storage.Result[social.Page[storage.Edge]]
	if l.checked {
		result.Value, result.Err = l.showChecked(ctx, read, a, query)
	} else {
		ahead := []storage.PageQuery{a.Ahead(query)}
		result = prefetch.AccessOf(ctx).Graph(read, a).Show(ctx, l.side, []storage.PageQuery{query}, ahead, storage.PageLookups[l.side].Read(ctx, read, ahead...))[0]
	}
	if result.Err != nil {
		return p, result.Err
	}
	shown := result.Value
	made.edges = shown.Rows
	takeUsers(&p, l.side, shown.Rows)
	p.Cursors = storage.Each(shown.Rows, func(e storage.Edge) string { return spelled(cursors, l.side, e) })
	var next func(*cursor.Sealer) string
	if shown.End != (storage.Place{}) { // it continues at the last user examined
		p.Complete = false
		next = func(seal *cursor.Sealer) string {
			return cursors.Spell(seal, int64(shown.End.CreatedAt), shown.End.Number)
		}
	}
	p.Info = prefetch.PageInfo(prefetch.OperationOf(ctx).Cursors, p.Cursors, shown.More, next)
	return p, nil
}

// readUsers answers the running field by a page of the users on the list, whom it reads.
func readUsers(ctx context.Context, l ownList, a *social.Audience, cursors prefetch.Cursors) (*model.UserConnection, error) {
	f := prefetch.Running(ctx)
	args, err := prefetch.ParsePart(ctx, f, cursors)
	if err != nil {
		return nil, err
	}
	p, err := l.page(ctx, loaders.For(ctx).Reader(), a, args, cursors, prefetch.PageNeedsOf(f))
	if err != nil {
		return nil, err
	}
	return readPage(ctx, f, &p), nil
}

// toChange is a page of the users on a list whom the running mutation changes, without the viewer: one of them has been counted. It has loaders of
// its own: those of the payload read the list again, as it is afterwards.
func (r *Resolver) toChange(ctx context.Context, viewer storage.UserID, l ownList, args prefetch.PageArguments, cursors prefetch.Cursors) (userPage, error) {
	a, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return userPage{}, err
	}
	before := loaders.For(loaders.Attach(ctx, cmp.Or(r.Reads, r.Store)))
	page, err := l.page(ctx, before.Reader(), a, args, cursors, fields.Rows)
	page.Rows = slices.DeleteFunc(page.Rows, func(id storage.UserID) bool { return id == viewer })
	if n := len(page.Rows); err == nil && n > 1 {
		_, err = r.actorOf(ctx, n-1)
	}
	return page, err
}

// showChecked shows a page of edges that enter the owner, and are checked.
func (l ownList) showChecked(ctx context.Context, read loaders.Reader, a *social.Audience, q storage.PageQuery) (social.Page[storage.Edge], error) {
	e, size := prefetch.AccessOf(ctx), q.Limit
	more := func(after storage.Place, limit int) ([]storage.Edge, error) {
		q.After, q.Limit = prefetch.PositionAt(after), limit
		rows := storage.PageLookups[l.side].Read(ctx, read, q)[0]
		return rows.Value, cmp.Or(rows.Err, e.FetchShown(a, startsOf(rows.Value)))
	}
	rows, err := more(storage.Place{CreatedAt: q.After.UpdateTime, Number: int64(q.After.Peer)}, size+1)
	if err != nil {
		return social.Page[storage.Edge]{}, err
	}
	shows := func(row storage.Edge) bool { return e.IsShown(a, row.From) }
	return social.Show(e.Left(), rows, size+1, size, shows, social.FavoritedByPlace, more)
}

// Bounds on counting a list.
const (
	// maxCounted is how far a list is counted, and maxChecked one whose users are checked: it has so many, or more.
	maxCounted, maxChecked = 10_000, 200
	// maxProbed is how many hidden users are looked up on the list. If there are more, the list is read instead, of which a row takes no less time.
	maxProbed = 5000
	// fewProbed is how many are, even if the list is shorter.
	fewProbed = 10
	// countStep is how many of the list's edges are then read at a time.
	countStep = 1000
)

// sizeOf counts the users on the list whom the audience sees.
func (l ownList) sizeOf(ctx context.Context, read loaders.Reader, a *social.Audience) (social.Size, error) {
	count := func() (social.Size, error) {
		if !l.checked {
			return l.sizeCounted(ctx, read, a)
		}
		shown, err := l.showChecked(ctx, read, a, l.query(storage.Position{}, maxChecked))
		return social.Size{Total: int64(len(shown.Rows)), Complete: !shown.More}, err
	}
	if l.item != 0 && !l.checked { // it may be worked out together with others, and takes one look-up for all of them
		return count()
	}
	return prefetch.Shared(ctx, l, count)
}

// sizeCounted counts without reading the list, unless it has no more users than would be looked up on it. If the request cannot afford either, the
// total is a lower bound.
func (l ownList) sizeCounted(ctx context.Context, read loaders.Reader, a *social.Audience) (size social.Size, err error) {
	all, err := l.count(ctx, read, l.newerThan)
	if err != nil {
		return size, err
	}
	newer := int64(0)
	if l.upTo > 0 {
		if newer, err = l.count(ctx, read, l.upTo); err != nil {
			return size, err
		}
	}
	hidden := int64(a.HidesAtMost())
	rows, isRead := hidden, hidden > maxProbed || hidden > fewProbed && all <= hidden
	if isRead {
		rows = min(all, maxCounted)
	}
	switch {
	case !prefetch.AccessOf(ctx).Graph(read, a).MayExamine(int(rows)):
		return social.Size{Total: max(0, all-newer-hidden)}, nil
	case isRead:
		return l.sizeRead(ctx, read, a)
	}
	pairs := storage.Each(a.Hidden(), func(id storage.UserID) storage.Pair {
		pair := l.side.Pair(l.owner, id)
		pair.Item = l.item
		return pair
	})
	n := all - newer
	for _, e := range storage.EdgeLookups[l.side].Read(ctx, read, pairs...) {
		if e.Err != nil {
			return size, e.Err
		}
		isOn := e.Found && e.Value.Type == l.kind && e.Value.UpdateTime > l.newerThan && (l.upTo == 0 || e.Value.UpdateTime <= l.upTo)
		if isOn && a.Hides(l.side.Peer(e.Value.Pair())) {
			n--
		}
	}
	return social.Size{Total: max(n, 0), Complete: l.item != 0 || all < maxCounted}, nil
}

// count counts the edges of the list's kind that are newer than a time, hidden users included.
func (l ownList) count(ctx context.Context, read loaders.Reader, since storage.Micros) (int64, error) {
	if l.item != 0 { // these are counted where they lie
		n := storage.KindLookups.Read(ctx, read, storage.OwnerKind{Owner: l.owner, Kind: l.item})[0]
		if l.side.IsInverse() {
			return n.Value.Incoming, n.Err
		}
		return n.Value.Outgoing, n.Err
	}
	query := storage.EdgeCountQuery{Owner: l.owner, Type: l.kind, Since: since, Limit: maxCounted}
	t := storage.EdgeCountLookups[l.side].Read(ctx, read, query)[0]
	return int64(t.Value), t.Err
}

// sizeRead counts by reading, up to maxCounted edges.
func (l ownList) sizeRead(ctx context.Context, read loaders.Reader, a *social.Audience) (size social.Size, err error) {
	var after storage.Position
	for examined := 0; examined < maxCounted; examined += countStep {
		page := storage.PageLookups[l.side].Read(ctx, read, l.query(after, countStep))[0]
		if page.Err != nil {
			return social.Size{}, page.Err
		}
		for _, row := range page.Value {
			if after = l.side.Position(row); !a.Hides(after.Peer) {
				size.Total++
			}
		}
		if len(page.Value) < countStep {
			size.Complete = true
			break
		}
	}
	return size, nil
}
