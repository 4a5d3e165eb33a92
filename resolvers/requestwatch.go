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
	n := &requestNews{r: r.Resolver, viewer: viewer}
	if kind == nil || *kind == model.RequestKindFriend {
		sides := requestSides[model.RequestKindFriend]
		n.friends = &edgeNews[*model.RequestChanged]{
			viewer: viewer, sides: sides[:],
			types: []storage.EdgeType{storage.Pending, storage.Accepted, storage.Declined, storage.Cancelled, storage.Removed},
			of: func(ctx context.Context, e events.Event) ([]storage.Edge, error) {
				side := storage.Inbox
				if e.Edge.From == viewer {
					side = storage.Requests
				}
				row := loaders.Of(loaders.For(ctx), storage.EdgeLookups[side]).Get(e.Edge.Pair())
				if row.Err != nil || !row.Found || row.Value.Type == storage.None {
					return nil, row.Err
				}
				return []storage.Edge{row.Value}, nil
			},
		}
	}
	if kind == nil || *kind == model.RequestKindFollow {
		n.waiting = map[storage.Pair]storage.Micros{}
	}
	concerns := func(e events.Event) bool {
		if n.waiting != nil && n.isMade(e) {
			n.made.Store(e.Edge.Pair(), nil)
		}
		return n.friends != nil && e.Side == storage.Inbox || n.waiting != nil && e.Side == storage.Inverse
	}
	return watch.Run(ctx, r.Store, r.Hub.SubscribeNewest(ctx, concerns, viewer), watch.ForPagedNews(n))
}

// requestNews are requests of the viewer that change. A request to follow that has ended leaves the row of a follow, or of none. Pending
// requests are remembered, to tell their ends from other changes of such rows.
type requestNews struct {
	r       *Resolver
	viewer  storage.UserID
	friends *edgeNews[*model.RequestChanged] // nil: the client does not ask for these
	waiting map[storage.Pair]storage.Micros  // requests to follow, by the time of their rows; nil: the client does not ask for these
	made    sync.Map                         // pairs with an event that waits and says that a request to follow was made: newer ones take its place
}

// isMade reports whether an event says that a request to follow was made.
func (*requestNews) isMade(e events.Event) bool {
	return e.Side == storage.Inverse && e.Edge.Type == storage.Requested
}

// maxWaiting is how many requests to follow of each side are remembered.
const maxWaiting = 500

type requestKey struct {
	pair storage.Pair
	kind model.RequestKind
}

func (*requestNews) About(row model.RequestRow) (requestKey, storage.Micros) {
	return requestKey{row.Pair(), row.Kind}, row.UpdateTime
}

func (n *requestNews) Begin(ctx context.Context) (known []model.RequestRow, err error) {
	if n.friends != nil {
		rows, err := n.friends.Begin(ctx)
		if err != nil {
			return nil, err
		}
		known = storage.Each(rows, func(row storage.Edge) model.RequestRow {
			return model.RequestRow{Edge: row, Kind: model.RequestKindFriend}
		})
	}
	newest, err := n.newest(ctx)
	n.note(newest)
	n.made.Range(func(pair, _ any) bool { // those that are among them as well are news all the same: their events wait
		n.waiting[pair.(storage.Pair)] = 0
		return true
	})
	return known, err
}

// newest reads the newest requests to follow of both sides.
func (n *requestNews) newest(ctx context.Context) (rows []storage.Edge, err error) {
	if n.waiting == nil {
		return nil, nil
	}
	for _, side := range requestSides[model.RequestKindFollow] {
		page := loaders.Of(loaders.For(ctx), storage.PageLookups[side]).Get(storage.PageQuery{Owner: n.viewer, Type: storage.Requested, Limit: maxWaiting})
		if page.Err != nil {
			return nil, page.Err
		}
		rows = append(rows, page.Value...)
	}
	return rows, nil
}

// note remembers rows of requests to follow, and forgets the oldest of each side beyond the bound.
func (n *requestNews) note(rows []storage.Edge) {
	for _, row := range rows {
		delete(n.waiting, row.Pair())
		if row.Type == storage.Requested {
			n.waiting[row.Pair()] = row.UpdateTime
		}
	}
	if len(n.waiting) <= maxWaiting {
		return
	}
	for _, side := range requestSides[model.RequestKindFollow] {
		own := slices.DeleteFunc(slices.Collect(maps.Keys(n.waiting)), func(p storage.Pair) bool { return side.Owner(p) != n.viewer })
		slices.SortFunc(own, func(a, b storage.Pair) int { return cmp.Compare(n.waiting[b], n.waiting[a]) })
		for _, oldest := range own[min(maxWaiting, len(own)):] {
			delete(n.waiting, oldest)
		}
	}
}

func (n *requestNews) Read(ctx context.Context, e events.Event) (rows []model.RequestRow, more bool, err error) {
	follows, err := n.follows(ctx, e)
	if err != nil {
		return nil, false, err
	}
	var friends []storage.Edge
	if n.friends != nil && (e.Kind == events.Gap || e.Side == storage.Inbox) {
		if friends, more, err = n.friends.Read(ctx, e); err != nil {
			return nil, false, err
		}
	}
	n.note(follows)
	add := func(kind model.RequestKind, list []storage.Edge) {
		for _, row := range list {
			if !prefetch.IsAbsent(ctx, row.From) && !prefetch.IsAbsent(ctx, row.To) {
				rows = append(rows, model.RequestRow{Edge: row, Kind: kind})
			}
		}
	}
	add(model.RequestKindFriend, friends)
	add(model.RequestKindFollow, follows)
	return rows, more, nil
}

// follows reads the rows of requests to follow that differ from what the client knows.
func (n *requestNews) follows(ctx context.Context, e events.Event) (rows []storage.Edge, err error) {
	pairs := []storage.Pair{e.Edge.Pair()}
	_, known := n.waiting[pairs[0]]
	if _, made := n.made.LoadAndDelete(pairs[0]); !known && n.waiting != nil && (made || n.isMade(e)) {
		n.waiting[pairs[0]], known = 0, true // until it has been read, which may fail
	}
	if !known {
		pairs = nil
	}
	if e.Kind == events.Gap {
		newest, err := n.newest(ctx)
		if err != nil {
			return nil, err
		}
		all := maps.Clone(n.waiting)
		for _, row := range newest {
			all[row.Pair()] = row.UpdateTime
		}
		pairs = slices.Collect(maps.Keys(all))
	}
	for _, side := range requestSides[model.RequestKindFollow] {
		own := storage.Filter(pairs, func(p storage.Pair) bool { return side.Owner(p) == n.viewer })
		for i, row := range loaders.Of(loaders.For(ctx), storage.EdgeLookups[side]).Fetch(own) {
			if row.Err != nil {
				return nil, row.Err
			}
			if row.Value.UpdateTime != n.waiting[own[i]] {
				rows = append(rows, row.Value)
			}
		}
	}
	slices.SortFunc(rows, func(a, b storage.Edge) int { return cmp.Compare(a.UpdateTime, b.UpdateTime) })
	return rows, nil
}

func (n *requestNews) Send(ctx context.Context, rows []model.RequestRow) []*model.RequestChanged {
	s := payloadSelection(ctx)
	prefetch.Fetch(ctx, prefetch.RowsOn(rows, s.of("request")), s.viewerObjects(n.viewer))
	requests, self := n.r.requestsOf(ctx, rows, s.of("request"), s.at(ctx, "request")), s.showViewer(ctx, n.viewer)
	return storage.Each(requests, func(one *model.Request) *model.RequestChanged {
		return &model.RequestChanged{Request: one, Viewer: self}
	})
}
