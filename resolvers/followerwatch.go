package resolvers

import (
	"context"
	"math"
	"slices"
	"time"

	"kith/graph/limits"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/resolvers/watch"
	"kith/storage"
	"kith/storage/events"
)

// edgeNews are edges of the viewer that begin or change, each sent as an A. After a gap they are read on the viewer's own shard.
type edgeNews[A any] struct {
	viewer storage.UserID
	sides  []storage.Side
	types  []storage.EdgeType
	// of is the edges of an event.
	of func(ctx context.Context, e events.Event) ([]storage.Edge, error)
	// omits reports whether an edge must not be sent; nil: none.
	omits func(ctx context.Context, row storage.Edge) bool
	// convert makes the answers.
	convert func(ctx context.Context, rows []storage.Edge) []A

	// By side:
	began  [2]storage.Micros   // edges that are not newer are known
	newest [2]storage.Micros   // the newest that has been read
	page   [2]storage.Position // where reading a gap continues; zero: it begins
}

// Begin reads the edges of the last minute: an edge that comes may be that old by the clock of
// another gateway.
func (n *edgeNews[A]) Begin(ctx context.Context) (known []storage.Edge, err error) {
	since := storage.MicrosOf(time.Now()) - watch.InFlight
	for i, side := range n.sides {
		n.began[i] = since
		for _, page := range n.pagesOf(ctx, side, storage.PageQuery{Limit: limits.MaxPage, Before: behind(since)}) {
			if page.Err != nil {
				return nil, page.Err
			}
			if len(page.Value) == limits.MaxPage {
				n.began[i] = max(n.began[i], page.Value[limits.MaxPage-1].UpdateTime)
			}
			known = append(known, page.Value...)
		}
	}
	return known, nil
}

// behind is the end of the edges that are newer than a time.
func behind(at storage.Micros) storage.Position {
	return storage.Position{UpdateTime: at, Peer: math.MaxInt64}
}

// pagesOf reads a page of the viewer's edges of each type.
func (n *edgeNews[A]) pagesOf(ctx context.Context, side storage.Side, query storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries := make([]storage.PageQuery, len(n.types))
	for i, kind := range n.types {
		queries[i] = query
		queries[i].Owner, queries[i].Type = n.viewer, kind
	}
	return loaders.Of(loaders.For(ctx), storage.PageLookups[side]).Fetch(queries)
}

func (n *edgeNews[A]) Read(ctx context.Context, e events.Event) (rows []storage.Edge, more bool, err error) {
	if e.Kind == events.Gap {
		rows, more, err = n.missed(ctx)
	} else {
		rows, err = n.of(ctx, e)
	}
	if err != nil {
		return nil, false, err
	}
	for _, row := range rows {
		for i, side := range n.sides {
			if side.Owner(row.Pair()) == n.viewer {
				n.newest[i] = watch.Reached(n.newest[i], row.UpdateTime)
			}
		}
	}
	if n.omits != nil {
		rows = slices.DeleteFunc(rows, func(row storage.Edge) bool { return n.omits(ctx, row) })
	}
	return rows, more, nil
}

// missed reads what may have changed since the newest edge that has been read, a page of each side at a time.
func (n *edgeNews[A]) missed(ctx context.Context) (rows []storage.Edge, more bool, err error) {
	page := n.page
	for i, side := range n.sides {
		if since := max(n.began[i], n.newest[i]-watch.Unheard); page[i] == (storage.Position{}) {
			page[i] = behind(since)
		}
		missed, rest, err := n.newer(ctx, side, page[i])
		if err != nil {
			return nil, false, err
		}
		rows, more = append(rows, missed...), more || rest
		if last := len(missed) - 1; last >= 0 {
			page[i] = side.Position(missed[last])
		}
	}
	if n.page = page; !more {
		clear(n.page[:])
	}
	return rows, more, nil
}

// newer reads the edges of a side that are newer than a position, oldest first. more is true if it
// has not reached the newest edge of some type.
func (n *edgeNews[A]) newer(ctx context.Context, side storage.Side, since storage.Position) (rows []storage.Edge, more bool, err error) {
	at := func(row storage.Edge) storage.Position { return side.Position(row) }
	var upTo storage.Position
	for _, page := range n.pagesOf(ctx, side, storage.PageQuery{Limit: limits.MaxPage, Backward: true, Before: since}) {
		if page.Err != nil {
			return nil, false, page.Err
		}
		if rows = append(rows, page.Value...); len(page.Value) == limits.MaxPage {
			if last := at(page.Value[0]); !more || last.Compare(upTo) > 0 {
				upTo, more = last, true
			}
		}
	}
	slices.SortFunc(rows, func(a, b storage.Edge) int { return at(b).Compare(at(a)) })
	if more {
		rows = slices.DeleteFunc(rows, func(row storage.Edge) bool { return at(row).Compare(upTo) < 0 })
	}
	return rows, more, nil
}

func (*edgeNews[A]) About(row storage.Edge) (storage.Pair, storage.Micros) {
	return row.Pair(), row.UpdateTime
}

func (n *edgeNews[A]) Send(ctx context.Context, rows []storage.Edge) []A { return n.convert(ctx, rows) }

// FollowerAdded sends each follow that begins and enters the viewer, with the user at its other end.
func (r subscriptions) FollowerAdded(ctx context.Context) (<-chan *model.FollowerAdded, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	begins := func(e events.Event) bool {
		return e.Side == storage.Inverse && e.Edge.To == viewer && e.Edge.Type == storage.Following
	}
	n := &edgeNews[*model.FollowerAdded]{
		viewer: viewer, sides: []storage.Side{storage.Inverse}, types: []storage.EdgeType{storage.Following},
		of: func(ctx context.Context, e events.Event) ([]storage.Edge, error) {
			if a, err := prefetch.AudienceOf(ctx); err != nil || a.Hides(e.Edge.From) { // a block may be there before the event
				return nil, err
			}
			return []storage.Edge{e.Edge}, nil
		},
		omits: func(ctx context.Context, row storage.Edge) bool { return prefetch.IsAbsent(ctx, row.From) },
		convert: func(ctx context.Context, rows []storage.Edge) []*model.FollowerAdded {
			s := payloadSelection(ctx)
			edge := s.below("edge")
			prefetch.Fetch(ctx, prefetch.Users{IDs: startsOf(rows), On: edge.of("node")}, s.viewerObjects(viewer))
			self := s.showViewer(ctx, viewer)
			return storage.Each(rows, func(row storage.Edge) *model.FollowerAdded {
				return &model.FollowerAdded{Edge: listedEdge(storage.Inverse, row, s.user(ctx, row.From, false, "edge", "node")), Viewer: self}
			})
		},
	}
	return watch.Run(ctx, r.Store, r.Hub.SubscribeNewest(ctx, begins, viewer), watch.ForPagedNews(n))
}
