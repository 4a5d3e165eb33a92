package resolvers

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/model"
	"kith/loaders"
	"kith/storage"
	"kith/storage/events"
)

// RelationshipChanged answers `relationshipChanged`. After an event it reads what it sends, and
// sends it only if it differs from what was sent before. So events that arrive twice or late, or
// are reported lost, do no harm.
func (r subscriptions) RelationshipChanged(ctx context.Context, texts []string) (<-chan *model.RelationshipChanged, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	list, err := parseUserIDs("userIds", texts)
	if err != nil {
		return nil, err
	}
	if len(list.wrong) > 0 { // the answers have no path for it
		return nil, list.wrong[0].err
	}
	w := &watch{viewer: viewer, others: map[storage.UserID]bool{}, last: map[storage.UserID]tie{}}
	for _, id := range list.good {
		if id != viewer { // nobody follows itself
			w.others[id] = true
		}
	}
	return subscribe(ctx, r.Resolver, r.Hub.SubscribeNewest(ctx, w.concerns, viewer), w)
}

// watch is the state of one relationshipChanged.
type watch struct {
	viewer storage.UserID
	others map[storage.UserID]bool
	last   map[storage.UserID]tie // what the client knows
}

// tie is both edges between the viewer and another user.
type tie struct{ out, back storage.Edge }

func (w *watch) concerns(e events.Event) bool {
	return e.Kind == events.Corrected || w.others[w.other(e.Edge)]
}

// other is the user of an edge who is not the viewer.
func (w *watch) other(e storage.Edge) storage.UserID {
	if e.From == w.viewer {
		return e.To
	}
	return e.From
}

func (w *watch) begin(ctx context.Context) (err error) {
	w.last, err = w.changed(ctx, slices.Collect(maps.Keys(w.others)))
	return err
}

func (w *watch) answers(ctx context.Context, e events.Event) ([]*model.RelationshipChanged, bool, error) {
	others := []storage.UserID{w.other(e.Edge)}
	switch e.Kind {
	case events.Gap, events.Corrected:
		others = slices.Collect(maps.Keys(w.others))
	case events.EdgeChanged:
	default:
		return nil, false, nil
	}
	changed, err := w.changed(ctx, others)
	if err != nil || len(changed) == 0 {
		return nil, false, err
	}
	var pairs []storage.Pair
	for id := range changed {
		pairs = append(pairs, storage.Pair{From: w.viewer, To: id})
	}
	s := payloadSelection(ctx)
	on := s.of("relationship")
	fetch(ctx, wanted{pairs: pairs, on: on}, s.wantedViewer(ctx, w.viewer, true))
	list, viewer := relationshipsOf(ctx, pairs, on, here(ctx, s.key("relationship"))), s.viewer(ctx, w.viewer, true)
	if errs := graphql.GetErrors(ctx); len(errs) > 0 && slices.Contains(list, nil) {
		return nil, false, errs
	}
	maps.Copy(w.last, changed)
	return storage.Each(list, func(one *model.Relationship) *model.RelationshipChanged {
		return &model.RelationshipChanged{Relationship: one, Viewer: viewer}
	}), false, nil
}

// changed reads the edges with some of the users that differ from what the client knows.
func (w *watch) changed(ctx context.Context, others []storage.UserID) (map[storage.UserID]tie, error) {
	l := loaders.For(ctx)
	pairs := storage.Each(others, func(id storage.UserID) storage.Pair { return storage.Pair{From: w.viewer, To: id} })
	out := l.Edges(storage.Forward).Fetch(pairs)
	back := l.Edges(storage.Inverse).Fetch(seenFrom(storage.Inverse, pairs))
	changed := map[storage.UserID]tie{}
	for i, id := range others {
		if err := cmp.Or(out[i].Err, back[i].Err); err != nil {
			return nil, err
		}
		now := tie{out[i].Value, back[i].Value}
		if last, known := w.last[id]; !known || now != last {
			changed[id] = now
		}
	}
	return changed, nil
}
