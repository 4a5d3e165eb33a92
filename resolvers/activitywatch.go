package resolvers

import (
	"context"
	"slices"

	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/resolvers/watch"
	"kith/social"
	"kith/storage"
	"kith/storage/events"
)

// ActivityAdded reads the group of an event again, so that it sends the same as `activity` answers.
func (r subscriptions) ActivityAdded(ctx context.Context) (<-chan *model.ActivityAdded, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	w := activityWatch{r.Resolver, viewer}
	concerns := func(e events.Event) bool { _, is := w.markOf(e); return is }
	return watch.Run(ctx, r.Store, r.Hub.SubscribeNewest(ctx, concerns, viewer), watch.ForNews(w))
}

// activityWatch is one activityAdded.
type activityWatch struct {
	resolver *Resolver
	viewer   storage.UserID
}

// markOf is what an event adds for the viewer; its time is 0 if the event does not tell it.
func (w activityWatch) markOf(e events.Event) (m social.ActivityMark, is bool) {
	if e.Post.News == storage.PostCommented {
		return social.ActivityMark{Kind: social.PostCommented, Post: e.Post.Number}, e.Post.Author == w.viewer
	}
	return social.ActivityOfRow(storage.Row{Side: e.Side, Edge: e.Edge}, w.viewer)
}

func (w activityWatch) Read(ctx context.Context, e events.Event, since storage.Micros) (rows []social.ActivityGroup, err error) {
	var part activityPart
	of, known := w.markOf(e)
	for kind := range part.kinds {
		part.kinds[kind] = w.resolver.servesActivity(activityKinds[kind]) && (!known || social.ActivityKind(kind) == of.Kind)
	}
	if of.At > 0 { // it may arrive long after its time, by replication
		since = min(since, of.At-1)
	}
	a, err := w.resolver.activity(ctx, w.viewer, part)
	if err != nil {
		return nil, err
	}
	if known { // a group that has not changed would tell that somebody who is hidden, or muted, has done something
		if by, err := w.by(ctx, e); err != nil || by == 0 || a.LeavesOut(by) {
			return nil, err
		}
	}
	rows, _, err = a.Newer(ctx, since)
	rows = storage.Filter(rows, func(g social.ActivityGroup) bool { // a group that others have joined has events of its own
		return !known || g.Post == of.Post && (of.At == 0 || g.Day() == of.Day())
	})
	slices.Reverse(rows)
	return rows, err
}

// by is who has done what an event adds for the viewer; 0: it is gone.
func (w activityWatch) by(ctx context.Context, e events.Event) (storage.UserID, error) {
	switch {
	case e.Post.News == storage.PostCommented:
		c := loaders.Of(loaders.For(ctx), storage.CommentLookups).Get(storage.CommentID{Author: w.viewer, Number: e.Post.Comment})
		return c.Value.By, c.Err
	case e.Edge.From == w.viewer:
		return e.Edge.To, nil
	}
	return e.Edge.From, nil
}

// activityState is a group as a client knows it.
type activityState struct {
	group social.ActivityMark // of its day
	state uint64
}

// About knows a group by what it is made of: its time is that of the last one, and clocks differ.
func (activityWatch) About(g social.ActivityGroup) (activityState, storage.Micros) {
	return activityState{social.ActivityMark{At: g.Day(), Kind: g.Kind, Post: g.Post}, g.State}, g.At
}

func (w activityWatch) Send(ctx context.Context, rows []social.ActivityGroup) ([]social.ActivityGroup, []*model.ActivityAdded, error) {
	s := payloadSelection(ctx)
	on := s.below("edge").of("node")
	self := s.readViewer(ctx, w.viewer, prefetch.RowsOn(rows, on))
	nodes := activityOf(ctx, w.viewer, rows, on, s.at(ctx, "edge", "node"))
	list := make([]*model.ActivityAdded, len(rows))
	for i, g := range rows {
		list[i] = &model.ActivityAdded{Edge: &model.ActivityEdge{Cursor: spellActivity(prefetch.Unsealed, g.ActivityMark), Node: nodes[i]}, Viewer: self}
	}
	return rows, list, nil
}
