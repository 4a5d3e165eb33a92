package resolvers

import (
	"cmp"
	"context"
	"math"
	"slices"

	"kith/graph/model"
	"kith/loaders"
	"kith/storage"
	"kith/storage/events"
)

// FriendRequestChanged answers `friendRequestChanged`. After an event it reads what it sends on
// the viewer's own shard, and sends only rows that are newer than those before. So events that
// arrive twice or late, or are reported lost, do no harm.
func (r subscriptions) FriendRequestChanged(ctx context.Context) (<-chan *model.FriendRequest, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	ofRequests := func(e events.Event) bool { return e.Kind == events.RequestChanged || e.Kind == events.Corrected }
	w := &requestWatch{resolver: r.Resolver, viewer: viewer, sent: map[storage.Pair]storage.Micros{}}
	return subscribe(ctx, r.Resolver, r.Hub.SubscribeNewest(ctx, ofRequests, viewer), w)
}

// requestWatch is the state of one friendRequestChanged.
type requestWatch struct {
	resolver *Resolver
	viewer   storage.UserID
	began    [len(requestSides)]storage.Micros   // the newest when the subscription began, by side
	newest   [len(requestSides)]storage.Micros   // the newest that the client knows
	page     [len(requestSides)]storage.Position // where reading a gap continues; zero: it begins
	sent     map[storage.Pair]storage.Micros     // of the requests sent last
}

// stored are the states that rows of requests have.
var stored = [...]storage.EdgeType{storage.Pending, storage.Accepted, storage.Declined, storage.Cancelled, storage.Removed}

func (w *requestWatch) begin(ctx context.Context) error {
	for i, side := range requestSides {
		for _, page := range w.pages(ctx, side, storage.PageQuery{Limit: 1}) {
			if page.Err != nil {
				return page.Err
			}
			for _, row := range page.Value {
				w.newest[i] = max(w.newest[i], row.UpdateTime)
			}
		}
	}
	w.began = w.newest
	return nil
}

// pages reads a page of the viewer's requests in each state.
func (w *requestWatch) pages(ctx context.Context, side storage.Side, query storage.PageQuery) []storage.Result[[]storage.Edge] {
	queries := make([]storage.PageQuery, len(stored))
	for i, state := range stored {
		queries[i] = query
		queries[i].Owner, queries[i].Type = w.viewer, state
	}
	return loaders.For(ctx).Pages(side).Fetch(queries)
}

// missed reads the requests of a side that are newer than a position, oldest first. more is true if it
// has not reached the newest request of some state.
func (w *requestWatch) missed(ctx context.Context, side storage.Side, since storage.Position) (rows []storage.Edge, more bool, err error) {
	at := func(row storage.Edge) storage.Position { return storage.PositionOf(side, row) }
	var upTo storage.Position
	for _, page := range w.pages(ctx, side, storage.PageQuery{Limit: maxFirst, Backward: true, Before: since}) {
		if page.Err != nil {
			return nil, false, page.Err
		}
		if rows = append(rows, page.Value...); len(page.Value) == maxFirst {
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

func (w *requestWatch) answers(ctx context.Context, e events.Event) (list []*model.FriendRequest, more bool, err error) {
	var rows []storage.Edge
	switch e.Kind {
	case events.RequestChanged:
		rows, err = w.row(ctx, e.Edge.Pair())
	case events.Gap, events.Corrected:
		page := w.page
		for i, side := range requestSides {
			if since := max(w.began[i], w.newest[i]-inFlight); page[i] == (storage.Position{}) && since > 0 {
				page[i] = storage.Position{UpdateTime: since, Peer: math.MaxInt64}
			}
			missed, rest, failed := w.missed(ctx, side, page[i])
			rows, more, err = append(rows, missed...), more || rest, cmp.Or(err, failed)
			if n := len(missed); n > 0 {
				page[i] = storage.PositionOf(side, missed[n-1])
			}
		}
		if err == nil {
			w.page = page
		}
		if err == nil && !more {
			clear(w.page[:])
		}
	}
	if err != nil {
		return nil, false, err
	}
	rows = slices.DeleteFunc(rows, func(row storage.Edge) bool { return !w.isNews(row) })
	if len(rows) == 0 {
		return nil, more, nil
	}
	on := planned(ctx).Below
	fetch(ctx, wantedByRequests(rows, on)...)
	return w.resolver.requestsOf(ctx, rows, on, here(ctx)), more, nil
}

// row reads a request where the viewer has it.
func (w *requestWatch) row(ctx context.Context, pair storage.Pair) ([]storage.Edge, error) {
	r := loaders.For(ctx).Edges(w.sideOf(pair)).Get(pair)
	if r.Err != nil || !r.Found || r.Value.Type == storage.None {
		return nil, r.Err
	}
	return []storage.Edge{r.Value}, nil
}

func (w *requestWatch) sideOf(pair storage.Pair) storage.Side {
	if pair.From == w.viewer {
		return storage.Requests
	}
	return storage.Inbox
}

// isNews reports whether a row is new to the client, and notes that the client now knows it.
func (w *requestWatch) isNews(row storage.Edge) bool {
	pair := row.Pair()
	if row.UpdateTime <= w.sent[pair] {
		return false
	}
	noteSent(w.sent, pair, row.UpdateTime)
	for i, side := range requestSides {
		if side == w.sideOf(pair) {
			w.newest[i] = max(w.newest[i], row.UpdateTime)
		}
	}
	return true
}
