package resolvers

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/events"
	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/subscription"
	"kith/identity"
	"kith/loaders"
	"kith/storage"
)

// perEvent is how long reading what one event is about may take.
const perEvent = 10 * time.Second

// relationshipChangedAt answers `relationshipChanged`. What it sends has been read
// after the event, and differs from what it sent before; so events that come
// twice, or late, or are lost with notice, do no harm.
func (r *Resolver) relationshipChangedAt(ctx context.Context, texts []string) (<-chan *model.Relationship, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	list, err := parseUserIDs(texts, maxIDs)
	if err != nil {
		return nil, err
	}
	if len(list.wrong) > 0 { // there is no place in the answers for it
		return nil, list.wrong[0].err
	}
	others := list.good
	w := &watch{store: r.Store, viewer: viewer, others: map[storage.UserID]bool{}, last: map[storage.UserID]tie{}}
	for _, id := range others {
		w.others[id] = true
	}
	source := r.Hub.SubscribeWhere(ctx, w.concerns, viewer)
	if err := w.begin(ctx, others); err != nil {
		return nil, err
	}
	changed := make(chan *model.Relationship)
	go func() {
		defer close(changed)
		defer ended(ctx, source)
		defer survive(ctx)
		for e := range source.Events() {
			for _, relationship := range w.changes(ctx, e) {
				select {
				case changed <- relationship:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return changed, nil
}

// ended tells a client that was dropped why.
func ended(ctx context.Context, source *events.Subscription) {
	if errors.Is(source.Err(), events.ErrSlow) {
		subscription.Fail(ctx, apierr.Unavailable("more has changed than could be told in time: subscribe again, and read what you missed"))
	}
}

// survive ends a subscription that panics, and nothing else.
func survive(ctx context.Context) {
	if reason := recover(); reason != nil {
		subscription.Fail(ctx, fmt.Errorf("panic in a subscription: %v\n%s", reason, debug.Stack()))
	}
}

// watch is the state of one relationshipChanged.
type watch struct {
	store  storage.Reader
	viewer storage.UserID
	others map[storage.UserID]bool
	last   map[storage.UserID]tie // what the client knows
}

// tie is both edges between the viewer and another user.
type tie struct{ out, back storage.Edge }

func (w *watch) concerns(e events.Event) bool { return w.others[w.other(e.Edge)] }

// other is whom an edge is about besides the viewer.
func (w *watch) other(e storage.Edge) storage.UserID {
	if e.From == w.viewer {
		return e.To
	}
	return e.From
}

// begin reads how things stand when the subscription starts.
func (w *watch) begin(ctx context.Context, others []storage.UserID) error {
	ctx, cancel := context.WithTimeout(loaders.Attach(ctx, w.store), perEvent)
	defer cancel()
	for _, id := range others {
		w.last[id] = tie{}
	}
	_, err := w.read(ctx, others)
	return err
}

// changes returns what an event has changed for the client.
func (w *watch) changes(ctx context.Context, e events.Event) []*model.Relationship {
	ctx, cancel := context.WithTimeout(loaders.Attach(ctx, w.store), perEvent)
	defer cancel()
	others := []storage.UserID{w.other(e.Edge)}
	switch e.Kind {
	case events.Gap:
		others = others[:0]
		for id := range w.others {
			others = append(others, id)
		}
	case events.EdgeChanged:
	default:
		return nil
	}
	changed, err := w.read(ctx, others)
	if err != nil || len(changed) == 0 {
		return nil // the next event, or the next gap, reads again
	}
	pairs := make([]storage.Pair, len(changed))
	for i, id := range changed {
		pairs[i] = storage.Pair{From: w.viewer, To: id}
	}
	sel := selectedHere(ctx)
	fetch(ctx, wanted{pairs: pairs, sel: sel})
	return relationshipsOf(ctx, pairs, sel, func(int) ast.Path { return below(ctx) })
}

// read returns those of the users whose edges are not what the client knows.
func (w *watch) read(ctx context.Context, others []storage.UserID) (changed []storage.UserID, err error) {
	l := loaders.For(ctx)
	pairs := make([]storage.Pair, len(others))
	for i, id := range others {
		pairs[i] = storage.Pair{From: w.viewer, To: id}
	}
	out := l.Edges(storage.Forward).Fetch(ctx, pairs)
	back := l.Edges(storage.Inverse).Fetch(ctx, seenFrom(storage.Inverse, pairs))
	for i, id := range others {
		if out[i].Err != nil {
			return nil, out[i].Err
		}
		if back[i].Err != nil {
			return nil, back[i].Err
		}
		if now := (tie{out[i].Value, back[i].Value}); now != w.last[id] {
			w.last[id] = now
			changed = append(changed, id)
		}
	}
	return changed, nil
}

// newFollowersAt answers `newFollowers`.
func (r *Resolver) newFollowersAt(ctx context.Context) (<-chan *model.UserEdge, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		_, err := viewerOf(ctx)
		return nil, err
	}
	begins := func(e events.Event) bool {
		return e.Kind == events.EdgeChanged && e.Edge.To == viewer.ID && e.Edge.Type == storage.Following
	}
	f := &newFans{store: r.Store, viewer: viewer.ID, seen: map[storage.UserID]storage.Micros{}}
	source := r.Hub.SubscribeWhere(ctx, begins, viewer.ID)
	if err := f.begin(ctx); err != nil {
		return nil, err
	}
	fans := make(chan *model.UserEdge)
	go func() {
		defer close(fans)
		defer ended(ctx, source)
		defer survive(ctx)
		for e := range source.Events() {
			for _, edge := range f.edges(ctx, e) {
				select {
				case fans <- edge:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return fans, nil
}

// newFans is the state of one newFollowers.
type newFans struct {
	store  storage.Reader
	viewer storage.UserID
	newest storage.Position                  // of the fans that are known
	seen   map[storage.UserID]storage.Micros // when those told of last followed
}

// maxSeen bounds what is remembered to tell an event that comes twice.
const maxSeen = 1000

func (f *newFans) begin(ctx context.Context) error {
	query := storage.PageQuery{Owner: f.viewer, Limit: 1}
	r := f.store.Pages(ctx, storage.Inverse, []storage.PageQuery{query})[0]
	for _, e := range r.Value {
		f.newest = storage.PositionOf(storage.Inverse, e)
	}
	return r.Err
}

// edges returns the fans that an event tells of, oldest first.
func (f *newFans) edges(ctx context.Context, e events.Event) []*model.UserEdge {
	ctx, cancel := context.WithTimeout(loaders.Attach(ctx, f.store), perEvent)
	defer cancel()
	rows := []storage.Edge{e.Edge}
	if e.Kind == events.Gap {
		rows = f.missed(ctx)
	}
	var fresh []storage.Edge
	for _, row := range rows {
		if row.UpdateTime <= f.seen[row.From] {
			continue
		}
		if len(f.seen) >= maxSeen {
			clear(f.seen)
		}
		f.seen[row.From] = row.UpdateTime
		if at := storage.PositionOf(storage.Inverse, row); at.Compare(f.newest) < 0 {
			f.newest = at
		}
		fresh = append(fresh, row)
	}
	return f.convert(ctx, fresh)
}

// missed reads the fans that came since the newest one known.
func (f *newFans) missed(ctx context.Context) []storage.Edge {
	query := storage.PageQuery{Owner: f.viewer, Limit: maxFirst, Before: f.newest, Backward: true}
	rows := f.store.Pages(ctx, storage.Inverse, []storage.PageQuery{query})[0].Value
	oldestFirst := make([]storage.Edge, 0, len(rows))
	for i := len(rows) - 1; i >= 0; i-- {
		oldestFirst = append(oldestFirst, rows[i])
	}
	return oldestFirst
}

func (f *newFans) convert(ctx context.Context, rows []storage.Edge) []*model.UserEdge {
	sel := payloadSelection(ctx, "UserEdge")
	ids := make([]storage.UserID, len(rows))
	for i, row := range rows {
		ids[i] = row.From
	}
	fetch(ctx, wanted{users: ids, sel: sel.of("node")})
	edges := make([]*model.UserEdge, len(rows))
	for i, row := range rows {
		at := storage.PositionOf(storage.Inverse, row)
		edges[i] = &model.UserEdge{
			Cursor:     cursor.Encode(cursor.Followers, int64(at.UpdateTime), int64(at.Peer)),
			Node:       sel.user(ctx, "node", row.From, false),
			FollowedAt: timeOf(row.UpdateTime),
		}
	}
	return edges
}
