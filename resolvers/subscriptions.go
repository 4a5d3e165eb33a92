package resolvers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"kith/accounts/identity"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/loaders"
	"kith/storage"
	"kith/storage/events"
)

// RelationshipChanged answers `relationshipChanged`. After an event it reads what it sends, and
// sends it only if it differs from what was sent before. So events that arrive twice or late, or
// are reported lost, do no harm.
func (r subscriptions) RelationshipChanged(ctx context.Context, texts []string) (<-chan *model.Relationship, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	list, err := parseUserIDs(texts, limits.MaxIDs)
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

func (w *watch) answers(ctx context.Context, e events.Event) ([]*model.Relationship, bool, error) {
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
	on := planned(ctx).Below
	fetch(ctx, wanted{pairs: pairs, on: on})
	list := relationshipsOf(ctx, pairs, on, here(ctx))
	if errs := graphql.GetErrors(ctx); len(errs) > 0 && slices.Contains(list, nil) {
		return nil, false, errs
	}
	maps.Copy(w.last, changed)
	return list, false, nil
}

// changed reads the edges with some of the users that differ from what the client knows.
func (w *watch) changed(ctx context.Context, others []storage.UserID) (map[storage.UserID]tie, error) {
	l := loaders.For(ctx)
	pairs := make([]storage.Pair, len(others))
	for i, id := range others {
		pairs[i] = storage.Pair{From: w.viewer, To: id}
	}
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

func (r subscriptions) NewFollowers(ctx context.Context) (<-chan *model.UserEdge, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		_, err := viewerOf(ctx)
		return nil, err
	}
	begins := func(e events.Event) bool {
		return e.Kind == events.Corrected || e.Kind == events.EdgeChanged && e.Edge.To == viewer.ID && e.Edge.Type == storage.Following
	}
	f := &newFollowers{viewer: viewer.ID, seen: map[storage.UserID]storage.Micros{}}
	return subscribe(ctx, r.Resolver, r.Hub.SubscribeNewest(ctx, begins, viewer.ID), f)
}

// newFollowers is the state of one newFollowers.
type newFollowers struct {
	viewer storage.UserID
	began  storage.Position                  // of the newest follower when the subscription began
	newest storage.Position                  // of the followers that are known
	page   storage.Position                  // where reading a gap continues; zero: it begins
	seen   map[storage.UserID]storage.Micros // when the users sent last began to follow
}

// maxSeen bounds the memory for recognising repeated events.
const maxSeen = 1000

// inFlight is how much older the rows that a gap hides may be than what a subscription has sent
// already: writers at several gateways commit in an order other than that of their times. Events
// that were sent are remembered, and not sent twice.
const inFlight = storage.Micros(10 * time.Second / time.Microsecond)

// noteSent notes the version of what has been sent. If that becomes too much, it forgets what is
// too old to be read again, or else everything.
func noteSent[K comparable](sent map[K]storage.Micros, what K, at storage.Micros) {
	if len(sent) >= maxSeen {
		maps.DeleteFunc(sent, func(_ K, old storage.Micros) bool { return old < at-inFlight })
	}
	if len(sent) >= maxSeen {
		clear(sent)
	}
	sent[what] = at
}

func (f *newFollowers) begin(ctx context.Context) error {
	r := loaders.For(ctx).Pages(storage.Inverse).Get(storage.PageQuery{Owner: f.viewer, Limit: 1})
	for _, e := range r.Value {
		f.newest = storage.PositionOf(storage.Inverse, e)
	}
	f.began = f.newest
	return r.Err
}

// answers are the followers of an event, oldest first. After a gap or a correction they come a page
// at a time.
func (f *newFollowers) answers(ctx context.Context, e events.Event) (list []*model.UserEdge, more bool, err error) {
	rows := []storage.Edge{e.Edge}
	if e.Kind != events.EdgeChanged {
		if rows, err = f.missed(ctx); err != nil {
			return nil, false, err
		}
		if more = len(rows) == maxFirst; more {
			f.page = storage.PositionOf(storage.Inverse, rows[len(rows)-1])
		} else {
			f.page = storage.Position{}
		}
	}
	var fresh []storage.Edge
	for _, row := range rows {
		if at := storage.PositionOf(storage.Inverse, row); at.Compare(f.newest) < 0 {
			f.newest = at
		}
		if row.UpdateTime <= f.seen[row.From] || isAbsent(ctx, row.From) {
			continue
		}
		noteSent(f.seen, row.From, row.UpdateTime)
		fresh = append(fresh, row)
	}
	return f.convert(ctx, fresh), more, nil
}

// missed reads the oldest followers that may have come since the newest one known.
func (f *newFollowers) missed(ctx context.Context) ([]storage.Edge, error) {
	since := f.page
	if since == (storage.Position{}) {
		since = storage.Position{UpdateTime: f.newest.UpdateTime - inFlight}
		if f.began.Compare(since) < 0 {
			since = f.began
		}
	}
	page := loaders.For(ctx).Pages(storage.Inverse).Get(storage.PageQuery{Owner: f.viewer, Limit: maxFirst, Before: since, Backward: true})
	oldestFirst := slices.Clone(page.Value)
	slices.Reverse(oldestFirst)
	return oldestFirst, page.Err
}

func (f *newFollowers) convert(ctx context.Context, rows []storage.Edge) []*model.UserEdge {
	sel := payloadSelection(ctx)
	ids := make([]storage.UserID, len(rows))
	for i, row := range rows {
		ids[i] = row.From
	}
	fetch(ctx, wanted{users: ids, on: sel.of("node")})
	edges := make([]*model.UserEdge, len(rows))
	for i, row := range rows {
		edges[i] = userEdge(storage.Inverse, row, sel.user(ctx, "node", row.From, false))
	}
	return edges
}
