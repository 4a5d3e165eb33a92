package resolvers

import (
	"cmp"
	"context"
	"math"
	"slices"

	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/resolvers/watch"
	"kith/storage"
	"kith/storage/events"
)

// FollowerAdded sends each follow that begins and enters the viewer, with the user at its other end.
func (r subscriptions) FollowerAdded(ctx context.Context) (<-chan *model.FollowerAdded, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	begins := func(e events.Event) bool {
		return e.Side == storage.Inverse && e.Edge.To == viewer && e.Edge.Type == storage.Following
	}
	return watch.Run(ctx, r.Store, r.Hub.SubscribeNewest(ctx, begins, viewer), watch.ForNews(followerWatch{viewer}))
}

// followerWatch is one followerAdded.
type followerWatch struct{ viewer storage.UserID }

func (w followerWatch) Read(ctx context.Context, e events.Event, since storage.Micros) ([]storage.Edge, error) {
	if e.Kind == events.Gap {
		return edgesSince(ctx, since, w.viewer, storage.Inverse, storage.Following)
	}
	return []storage.Edge{e.Edge}, nil
}

func (followerWatch) About(row storage.Edge) (storage.Pair, storage.Micros) {
	return row.Pair(), row.UpdateTime
}

func (w followerWatch) Send(ctx context.Context, rows []storage.Edge) ([]storage.Edge, []*model.FollowerAdded, error) {
	a, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	rows = storage.Filter(rows, func(row storage.Edge) bool { return !a.Hides(row.From) }) // a block may be there before the event
	if len(rows) == 0 {
		return nil, nil, nil
	}
	s := payloadSelection(ctx)
	self := s.readViewer(ctx, w.viewer, prefetch.Users{IDs: startsOf(rows), On: s.below("edge").of("node")})
	return rows, storage.Each(rows, func(row storage.Edge) *model.FollowerAdded {
		return &model.FollowerAdded{Edge: listedEdge(storage.Inverse, row, s.user(ctx, row.From, false, "edge", "node")), Viewer: self}
	}), nil
}

// edgesSince reads the edges of a user on a side that are newer than a time, oldest first. Of each type it reads the newest.
func edgesSince(ctx context.Context, since storage.Micros, owner storage.UserID, side storage.Side, types ...storage.EdgeType) (rows []storage.Edge, err error) {
	queries := storage.Each(types, func(kind storage.EdgeType) storage.PageQuery {
		return storage.PageQuery{Owner: owner, Type: kind, Limit: watch.MaxSeen, Before: storage.Position{UpdateTime: since, Peer: math.MaxInt64}}
	})
	for _, page := range loaders.Of(loaders.For(ctx), storage.PageLookups[side]).Fetch(queries) {
		rows, err = append(rows, page.Value...), cmp.Or(err, page.Err)
	}
	slices.SortFunc(rows, func(a, b storage.Edge) int { return side.Position(b).Compare(side.Position(a)) })
	return rows, err
}
