package resolvers

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/99designs/gqlgen/graphql"

	"kith/graph/apierr"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/resolvers/watch"
	"kith/storage"
	"kith/storage/events"
)

// RelationshipChanged answers `relationshipChanged`. After an event it reads what it sends, and sends it only if it differs from what was
// sent before. So events that arrive twice or late, or are reported lost, do no harm.
func (r subscriptions) RelationshipChanged(ctx context.Context, texts []string) (<-chan *model.RelationshipChanged, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	list, err := parseUserIDs("userIds", texts)
	if err != nil {
		return nil, err
	}
	if len(list.Wrong) > 0 { // the answers have no path for it
		return nil, list.Wrong[0].Err
	}
	w := &relationshipWatch{viewer: viewer, others: map[storage.UserID]bool{}, last: map[storage.UserID]tie{}}
	for _, id := range list.Good {
		if id != viewer { // nobody follows itself
			w.others[id] = true
		}
	}
	return watch.Run(ctx, r.Store, r.Hub.SubscribeNewest(ctx, w.concerns, viewer), w)
}

// Changes answers `changes`.
func (r subscriptions) Changes(ctx context.Context, after *string, kinds []model.ChangeKind) (<-chan *model.ChangeEvent, error) {
	if err := admin(ctx); err != nil {
		return nil, err
	}
	if r.Resolver.Changes == nil {
		return nil, apierr.NotPossible.Error("nothing here tells what changes")
	}
	return watch.Stream(ctx, func(give func(*model.ChangeEvent) error) error { return r.Resolver.Changes(ctx, after, kinds, give) }), nil
}

// relationshipWatch is the state of one relationshipChanged.
type relationshipWatch struct {
	viewer storage.UserID
	others map[storage.UserID]bool
	last   map[storage.UserID]tie // what the client knows
}

// tie is what the relationship between the viewer and another user is made of: both edges and, if they are selected, both requests,
// the mutes, the ends of these, and the mark.
type tie [9]any

func (w *relationshipWatch) concerns(e events.Event) bool {
	return e.Has(storage.Beside) || e.Side.IsInverse() && w.others[w.peer(e.Edge)]
}

// peer is the user of an edge who is not the viewer.
func (w *relationshipWatch) peer(e storage.Edge) storage.UserID {
	if e.From == w.viewer {
		return e.To
	}
	return e.From
}

func (w *relationshipWatch) Begin(ctx context.Context) (err error) {
	w.last, err = w.changed(ctx, slices.Sorted(maps.Keys(w.others)))
	return err
}

func (w *relationshipWatch) Answers(ctx context.Context, e events.Event) ([]*model.RelationshipChanged, bool, error) {
	s := payloadSelection(ctx)
	on := s.of("relationship")
	others := []storage.UserID{w.peer(e.Edge)}
	switch {
	case e.User != nil && prefetch.NeedsOf(ctx, on)&(fields.Mark|fields.Mute) == 0: // what lies beside rows raises the version of the counts
		return nil, false, nil
	case others[0] == 0:
		others = slices.Sorted(maps.Keys(w.others))
	}
	changed, err := w.changed(ctx, others)
	if err != nil || len(changed) == 0 {
		return nil, false, err
	}
	pairs := pairsFrom(w.viewer, slices.Sorted(maps.Keys(changed)))
	prefetch.Fetch(ctx, relationshipPairs{pairs, on}, s.viewerObjects(w.viewer))
	list, viewer := relationshipsOf(ctx, pairs, on, s.at(ctx, "relationship")), s.showViewer(ctx, w.viewer)
	if errs := graphql.GetErrors(ctx); len(errs) > 0 && slices.Contains(list, nil) {
		return nil, false, errs
	}
	maps.Copy(w.last, changed)
	return storage.Each(list, func(one *model.Relationship) *model.RelationshipChanged {
		return &model.RelationshipChanged{Relationship: one, Viewer: viewer}
	}), false, nil
}

// changed reads the relationships with some of the users that differ from what the client knows.
func (w *relationshipWatch) changed(ctx context.Context, others []storage.UserID) (map[storage.UserID]tie, error) {
	l, on := loaders.For(ctx), payloadSelection(ctx).of("relationship")
	pairs := storage.Each(others, func(id storage.UserID) storage.Pair { return storage.Pair{From: w.viewer, To: id} })
	ties := make([]tie, len(others))
	failed := cmp.Or(tied(ties, 0, loaders.Of(l, storage.EdgeLookups[storage.Forward]).Fetch(pairs)), tied(ties, 1, loaders.Of(l, storage.EdgeLookups[storage.Inverse]).Fetch(seenFrom(storage.Inverse, pairs))))
	for i, side := range requestSides[model.RequestKindFriend] {
		if payloadSelection(ctx).below("relationship").has([...]string{"sentRequest", "receivedRequest"}[i]) {
			failed = cmp.Or(failed, tied(ties, 2+i, loaders.Of(l, storage.EdgeLookups[side]).Fetch(seenFrom(side, pairs))))
		}
	}
	needs := prefetch.NeedsOf(ctx, on)
	for i, scope := range model.AllMuteScope {
		if needs&fields.Mute != 0 {
			mutes := storage.Each(pairs, func(p storage.Pair) storage.Pair { return muteKinds[scope].Pair(p.From, p.To) })
			failed = cmp.Or(failed, tied(ties, 4+i, loaders.Of(l, storage.EdgeLookups[storage.Relations]).Fetch(mutes)), tied(ties, 6+i, loaders.Of(l, storage.DetailLookups).Fetch(mutes)))
		}
	}
	if needs&fields.Mark != 0 {
		failed = cmp.Or(failed, tied(ties, 8, loaders.Of(l, storage.MarkLookups).Fetch(pairs)))
	}
	changed := map[storage.UserID]tie{}
	for i, id := range others {
		if prefetch.IsAbsent(ctx, id) { // what becomes of it is not told
			continue
		}
		if last, known := w.last[id]; !known || ties[i] != last {
			changed[id] = ties[i]
		}
	}
	return changed, failed
}

// tied adds a part that has been read to ties.
func tied[V any](ties []tie, part int, rows []storage.Result[V]) (failed error) {
	for i, row := range rows {
		ties[i][part], failed = row.Value, cmp.Or(failed, row.Err)
	}
	return failed
}
