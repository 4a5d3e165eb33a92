package resolvers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/resolvers/watch"
	"kith/storage"
	"kith/storage/events"
)

// RequestChanged sends requests as they are on the viewer's own shard.
func (r subscriptions) RequestChanged(ctx context.Context, kind *model.RequestKind) (<-chan *model.RequestChanged, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	asks := func(of model.RequestKind) bool { return kind == nil || *kind == of }
	w := &requestWatch{
		r: r.Resolver, viewer: viewer,
		friends: asks(model.RequestKindFriend), follows: asks(model.RequestKindFollow),
		waiting: map[storage.Pair]storage.Micros{},
	}
	return watch.Run(ctx, r.Store, r.Hub.SubscribeNewest(ctx, w.concerns, viewer), watch.ForNews(w))
}

// requestWatch tells of the viewer's requests that change, of one kind or both. A request to follow that has ended leaves the row of a follow,
// or of none. Pending requests are remembered, to tell their ends from other changes of such rows.
type requestWatch struct {
	r                *Resolver
	viewer           storage.UserID
	friends, follows bool                            // the client asks for these
	waiting          map[storage.Pair]storage.Micros // requests to follow, by the time of their rows
	made             sync.Map                        // pairs with an event that waits and says that a request to follow was made: newer ones take its place
}

func (w *requestWatch) concerns(e events.Event) bool {
	if w.follows && isMade(e) {
		w.made.Store(e.Edge.Pair(), nil)
	}
	return w.friends && e.Side == storage.Inbox || w.follows && e.Side == storage.Inverse
}

// isMade reports whether an event says that a request to follow was made.
func isMade(e events.Event) bool {
	return e.Side == storage.Inverse && e.Edge.Type == storage.Requested
}

func (w *requestWatch) Read(ctx context.Context, e events.Event, since storage.Micros) (rows []model.RequestRow, err error) {
	var friends, follows []storage.Edge
	if w.friends && (e.Kind == events.Gap || e.Side == storage.Inbox) {
		friends, err = w.changedFriends(ctx, e, since)
	}
	if w.follows && (e.Kind == events.Gap || e.Side == storage.Inverse) && err == nil {
		follows, err = w.changedFollows(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	w.note(follows)
	for _, row := range friends {
		rows = append(rows, model.RequestRow{Edge: row, Kind: model.RequestKindFriend})
	}
	for _, row := range follows {
		rows = append(rows, model.RequestRow{Edge: row, Kind: model.RequestKindFollow})
	}
	return rows, nil
}

type requestKey struct {
	pair storage.Pair
	kind model.RequestKind
}

func (*requestWatch) About(row model.RequestRow) (requestKey, storage.Micros) {
	return requestKey{row.Pair(), row.Kind}, row.UpdateTime
}

// Send does not fail: what Read has noted, it does not return again.
func (w *requestWatch) Send(ctx context.Context, rows []model.RequestRow) ([]model.RequestRow, []*model.RequestChanged, error) {
	rows = storage.Filter(rows, func(row model.RequestRow) bool {
		return !prefetch.IsAbsent(ctx, row.From) && !prefetch.IsAbsent(ctx, row.To)
	})
	if len(rows) == 0 {
		return nil, nil, nil
	}
	s := payloadSelection(ctx)
	self := s.readViewer(ctx, w.viewer, prefetch.RowsOn(rows, s.of("request")))
	return rows, storage.Each(w.r.requestsOf(ctx, rows, s.of("request"), s.at(ctx, "request")), func(one *model.Request) *model.RequestChanged {
		return &model.RequestChanged{Request: one, Viewer: self}
	}), nil
}

// changedFriends reads rows of requests to be friends.
func (w *requestWatch) changedFriends(ctx context.Context, e events.Event, since storage.Micros) (rows []storage.Edge, err error) {
	for _, side := range requestSides[model.RequestKindFriend] {
		if e.Kind == events.Gap {
			missed, failed := edgesSince(ctx, since, w.viewer, side, storage.Pending, storage.Accepted, storage.Declined, storage.Cancelled, storage.Removed)
			rows, err = append(rows, missed...), cmp.Or(err, failed)
		} else if side.Owner(e.Edge.Pair()) == w.viewer {
			row := loaders.Of(loaders.For(ctx), storage.EdgeLookups[side]).Get(e.Edge.Pair())
			if err = cmp.Or(err, row.Err); row.Found && row.Value.Type != storage.None {
				rows = append(rows, row.Value)
			}
		}
	}
	return rows, err
}

// maxWaiting is how many requests to follow of each side are remembered.
const maxWaiting = 500

// changedFollows reads the rows of requests to follow that differ from what the client knows, oldest first.
func (w *requestWatch) changedFollows(ctx context.Context, e events.Event) (rows []storage.Edge, err error) {
	pairs := slices.Collect(maps.Keys(w.waiting))
	if e.Kind != events.Gap {
		pair := e.Edge.Pair()
		_, known := w.waiting[pair]
		if _, made := w.made.LoadAndDelete(pair); !known && (made || isMade(e)) {
			w.waiting[pair], known = 0, true // until it has been read, which may fail
		}
		if !known {
			return nil, nil
		}
		pairs = []storage.Pair{pair}
	}
	l := loaders.For(ctx)
	for _, side := range requestSides[model.RequestKindFollow] {
		own := storage.Filter(pairs, func(p storage.Pair) bool { return side.Owner(p) == w.viewer })
		if e.Kind == events.Gap {
			newest := loaders.Of(l, storage.PageLookups[side]).Get(storage.PageQuery{Owner: w.viewer, Type: storage.Requested, Limit: maxWaiting})
			err = cmp.Or(err, newest.Err)
			for _, row := range newest.Value {
				_, known := w.waiting[row.Pair()]
				if _, told := w.made.Load(row.Pair()); !known && !told { // its event waits
					own = append(own, row.Pair())
				}
			}
		}
		for _, row := range loaders.Of(l, storage.EdgeLookups[side]).Fetch(own) {
			if err = cmp.Or(err, row.Err); row.Value.UpdateTime != w.waiting[row.Value.Pair()] {
				rows = append(rows, row.Value)
			}
		}
	}
	slices.SortFunc(rows, func(a, b storage.Edge) int { return cmp.Compare(a.UpdateTime, b.UpdateTime) })
	return rows, err
}

// note remembers rows of requests to follow, and forgets the oldest of each side beyond the bound.
func (w *requestWatch) note(rows []storage.Edge) {
	for _, row := range rows {
		delete(w.waiting, row.Pair())
		if row.Type == storage.Requested {
			w.waiting[row.Pair()] = row.UpdateTime
		}
	}
	if len(w.waiting) <= maxWaiting {
		return
	}
	for _, side := range requestSides[model.RequestKindFollow] {
		own := slices.DeleteFunc(slices.Collect(maps.Keys(w.waiting)), func(p storage.Pair) bool { return side.Owner(p) != w.viewer })
		slices.SortFunc(own, func(a, b storage.Pair) int { return cmp.Compare(w.waiting[b], w.waiting[a]) })
		for _, oldest := range own[min(maxWaiting, len(own)):] {
			delete(w.waiting, oldest)
		}
	}
}
