package memory

import (
	"context"
	"fmt"
	"slices"

	"kith/storage"
)

// ChangeRequest implements [storage.RequestChanger].
func (s *Store) ChangeRequest(ctx context.Context, request storage.Pair, change storage.RequestChange, o storage.RequestOptions) (storage.ChangedRequest, error) {
	if err := ctx.Err(); err != nil {
		return storage.ChangedRequest{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, counted := s.counts[request.From]; !counted {
		return storage.ChangedRequest{}, fmt.Errorf("change the request of user %d: %w", request.From, storage.ErrUserUnknown)
	}
	w := s.writer()
	rows, err := w.act(request, change, o)
	if err != nil {
		return storage.ChangedRequest{}, fmt.Errorf("change the request of user %d to %d: %w", request.From, request.To, err)
	}
	if o.Inverse {
		rows = w.carry(rows)
	}
	if change.Act == storage.Ask && change.Message != "" && s.row(storage.Requests, request).Type == storage.Pending && len(rows) > 0 {
		s.messages[request] = change.Message
	}
	if change.Act == storage.Ask && len(rows) > 0 {
		s.activeOn(request.From, change.At)
	}
	w.commit()
	return storage.ChangedRequest{
		Row:     s.row(storage.Requests, request),
		Changed: len(rows) > 0,
		Written: eachOnce(rows),
	}, nil
}

// act judges what somebody does, and writes the rows of this side, the request first;
// none where nothing changes.
func (w *writer) act(request storage.Pair, change storage.RequestChange, o storage.RequestOptions) ([]storage.Written, error) {
	s := w.store
	row := s.row(storage.Requests, request)
	pending := func(side storage.Side, pair storage.Pair) bool {
		edge := s.row(side, pair)
		return edge.Type == storage.Pending && change.At-edge.UpdateTime <= storage.Micros(o.TTL.Microseconds())
	}
	isPending := pending(storage.Requests, request)
	become := func(state storage.EdgeType) []storage.Written {
		return w.write(storage.Requests, request, state, change.At)
	}

	switch change.Act {
	case storage.Ask:
		switch {
		case s.blocked(request):
			return nil, storage.ErrForbidden
		case row.Type == storage.Accepted && s.stands(request):
			return nil, nil
		case pending(storage.Inbox, storage.Pair{From: request.To, To: request.From}):
			return w.accept(request, change, o)
		case isPending:
			return nil, nil
		case row.Type == storage.Declined && change.At-row.UpdateTime < storage.Micros(o.Pause.Microseconds()):
			return nil, fmt.Errorf("it was declined: %w", storage.ErrForbidden)
		}
		asked := 0
		for to := range s.tables[storage.Requests][request.From] {
			if pending(storage.Requests, storage.Pair{From: request.From, To: to}) {
				asked++
			}
		}
		if o.MaxPending > 0 && asked >= o.MaxPending {
			return nil, fmt.Errorf("%d are pending: %w", asked, storage.ErrLimitReached)
		}
		return become(storage.Pending), nil

	case storage.Accept:
		switch {
		case s.blocked(request):
			return nil, storage.ErrForbidden
		case row.Type == storage.Accepted:
			return nil, nil
		case !isPending:
			return nil, storage.ErrNoRequest
		}
		return w.accept(request, change, o)

	case storage.Decline, storage.Cancel:
		state := storage.Declined
		if change.Act == storage.Cancel {
			state = storage.Cancelled
		}
		switch {
		case row.Type == state:
			return nil, nil
		case !isPending:
			return nil, storage.ErrNoRequest
		}
		return become(state), nil

	case storage.Remove:
		if !s.areFriends(request) {
			return nil, nil
		}
		return append(become(storage.Removed), w.write(storage.Forward, request, storage.None, change.At)...), nil
	}
	return nil, fmt.Errorf("act %d is unknown", change.Act)
}

// accept makes the request accepted and From follow To.
func (w *writer) accept(request storage.Pair, change storage.RequestChange, o storage.RequestOptions) ([]storage.Written, error) {
	if w.store.row(storage.Forward, request).Type != storage.Following {
		if err := w.store.mayFollow(request, o.MaxFollowing); err != nil {
			return nil, err
		}
	}
	return append(
		w.write(storage.Requests, request, storage.Accepted, change.At),
		w.makeFollow(request, change.At)...), nil
}

// stands tells whether the friendship of an accepted request has not been ended: From
// follows To, and To, whose follow may be on its way, has not ended it since.
func (s *Store) stands(request storage.Pair) bool {
	back := s.row(storage.Inverse, storage.Pair{From: request.To, To: request.From})
	ended := back.Type != storage.Following && back.UpdateTime > s.row(storage.Requests, request).UpdateTime
	return s.row(storage.Forward, request).Type == storage.Following && !ended
}

// areFriends tells whether From follows To, and To follows From or is about to, because
// one has accepted the other.
func (s *Store) areFriends(pair storage.Pair) bool {
	back := storage.Pair{From: pair.To, To: pair.From}
	return s.row(storage.Forward, pair).Type == storage.Following &&
		(s.row(storage.Inverse, back).Type == storage.Following ||
			s.row(storage.Requests, pair).Type == storage.Accepted ||
			s.row(storage.Inbox, back).Type == storage.Accepted)
}

// eachOnce keeps of rows that were written more than once the last, at the place of
// the first.
func eachOnce(rows []storage.Written) []storage.Written {
	var once []storage.Written
	for _, row := range rows {
		same := func(w storage.Written) bool { return w.Side == row.Side && w.Edge.Pair() == row.Edge.Pair() }
		i := slices.IndexFunc(once, same)
		switch {
		case i < 0:
			once = append(once, row)
		case once[i].Edge.UpdateTime < row.Edge.UpdateTime:
			once[i] = row
		}
	}
	return once
}
