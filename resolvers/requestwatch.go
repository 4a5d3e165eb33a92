package resolvers

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/events"
	"kith/graph/model"
	"kith/loaders"
	"kith/storage"
)

// friendRequestChangedAt answers `friendRequestChanged`. What it sends has been read
// after the event, on the viewer's own shard, and is newer than what it sent before; so
// events that come twice, or late, or are lost with notice, do no harm.
func (r *Resolver) friendRequestChangedAt(ctx context.Context) (<-chan *model.FriendRequest, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	ofRequests := func(e events.Event) bool { return e.Kind == events.RequestChanged }
	w := &requestWatch{resolver: r, viewer: viewer, told: map[storage.Pair]storage.Micros{}}
	source := r.Hub.SubscribeWhere(ctx, ofRequests, viewer)
	if err := w.begin(ctx); err != nil {
		return nil, err
	}
	changed := make(chan *model.FriendRequest)
	go func() {
		defer close(changed)
		defer ended(ctx, source)
		defer survive(ctx)
		for e := range source.Events() {
			for _, request := range w.changes(ctx, e) {
				select {
				case changed <- request:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return changed, nil
}

// requestWatch is the state of one friendRequestChanged.
type requestWatch struct {
	resolver *Resolver
	viewer   storage.UserID
	newest   [len(requestSides)]storage.Micros // that the client knows of, by side
	told     map[storage.Pair]storage.Micros   // of those told of last
}

// stored are the states that rows of requests have.
var stored = [...]storage.EdgeType{storage.Pending, storage.Accepted, storage.Declined, storage.Cancelled, storage.Removed}

// begin reads what is newest when the subscription starts.
func (w *requestWatch) begin(ctx context.Context) error {
	for i, side := range requestSides {
		rows, err := w.since(ctx, side, 0, 1)
		if err != nil {
			return err
		}
		for _, row := range rows {
			w.newest[i] = max(w.newest[i], row.UpdateTime)
		}
	}
	return nil
}

// since reads the newest requests of a side that changed after a time, some of each
// state, oldest first.
func (w *requestWatch) since(ctx context.Context, side storage.Side, at storage.Micros, most int) ([]storage.Edge, error) {
	queries := make([]storage.PageQuery, len(stored))
	for i, state := range stored {
		queries[i] = storage.PageQuery{Owner: w.viewer, Type: state, Limit: most}
		if at > 0 {
			queries[i].Before = storage.Position{UpdateTime: at, Peer: math.MaxInt64}
		}
	}
	var rows []storage.Edge
	for _, r := range w.resolver.Store.Pages(ctx, side, queries) {
		if r.Err != nil {
			return nil, r.Err
		}
		rows = append(rows, r.Value...)
	}
	slices.SortFunc(rows, func(a, b storage.Edge) int { return cmp.Compare(a.UpdateTime, b.UpdateTime) })
	return rows, nil
}

// changes returns what an event has changed for the client.
func (w *requestWatch) changes(ctx context.Context, e events.Event) []*model.FriendRequest {
	ctx, cancel := context.WithTimeout(loaders.Attach(ctx, w.resolver.Store), perEvent)
	defer cancel()
	var rows []storage.Edge
	switch e.Kind {
	case events.RequestChanged:
		rows = w.row(ctx, e.Edge.Pair())
	case events.Gap:
		for i, side := range requestSides {
			missed, err := w.since(ctx, side, w.newest[i], maxFirst)
			if err != nil {
				return nil // the next event, or the next gap, reads again
			}
			rows = append(rows, missed...)
		}
	}
	rows = slices.DeleteFunc(rows, func(row storage.Edge) bool { return !w.isNews(row) })
	if len(rows) == 0 {
		return nil
	}
	sel := selectedHere(ctx)
	fetch(ctx, wantedByRequests(ctx, rows, sel)...)
	return w.resolver.requestsOf(ctx, rows, sel, func(int) []ast.Path { return []ast.Path{below(ctx)} })
}

// row reads a request where the viewer has it.
func (w *requestWatch) row(ctx context.Context, pair storage.Pair) []storage.Edge {
	r := w.resolver.Store.Edges(ctx, w.sideOf(pair), []storage.Pair{pair})[0]
	if r.Err != nil || !r.Found || r.Value.Type == storage.None {
		return nil
	}
	return []storage.Edge{r.Value}
}

func (w *requestWatch) sideOf(pair storage.Pair) storage.Side {
	if pair.From == w.viewer {
		return storage.Requests
	}
	return storage.Inbox
}

// isNews tells whether the client does not know a row yet, and notes that it does now.
func (w *requestWatch) isNews(row storage.Edge) bool {
	pair := row.Pair()
	if row.UpdateTime <= w.told[pair] {
		return false
	}
	if len(w.told) >= maxSeen {
		clear(w.told)
	}
	w.told[pair] = row.UpdateTime
	for i, side := range requestSides {
		if side == w.sideOf(pair) {
			w.newest[i] = max(w.newest[i], row.UpdateTime)
		}
	}
	return true
}
