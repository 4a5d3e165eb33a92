package storagetest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about the states of users and about deleting them.

type statesAgain struct{ *oracle.Store }

func (s statesAgain) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	_, err := s.Store.SetState(ctx, user, state, at)
	return err == nil && state != storage.Active, err
}

type forbidsNothing struct{ *oracle.Store }

func (s forbidsNothing) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	changed, err := s.Store.SetState(ctx, user, state, at)
	if errors.Is(err, storage.ErrForbidden) {
		return false, nil
	}
	return changed, err
}

type statesOfNobody struct{ *oracle.Store }

func (s statesOfNobody) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	changed, err := s.Store.SetState(ctx, user, state, at)
	if errors.Is(err, storage.ErrUserUnknown) {
		return false, nil // like an UPDATE that found no row
	}
	return changed, err
}

// statesKeepVersion subtracts from versions what changes of states have added.
type statesKeepVersion struct{ *counting }

func (s statesKeepVersion) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	changed, err := s.Store.SetState(ctx, user, state, at)
	if changed {
		s.add(user, -1)
	}
	return changed, err
}

// statesByClock reports the times that were given.
type statesByClock struct {
	*oracle.Store
	mu    sync.Mutex
	given map[storage.UserID]storage.Micros
}

func (s *statesByClock) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, err := s.Store.SetState(ctx, user, state, at)
	if changed {
		s.given[user] = at
	}
	return changed, err
}

func (s *statesByClock) Bundle(ctx context.Context, b *storage.Bundle) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Store.Bundle(ctx, b)
	if l := storage.StateChangeLookups.In(b); l != nil {
		for _, r := range l.Results {
			for i, c := range r.Value {
				r.Value[i].At = cmp.Or(s.given[c.User], c.At)
			}
		}
	}
}

type unlockedStates struct{ *oracle.Store }

func (s unlockedStates) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	before := storage.StateLookups.Read(ctx, s, user)[0].Value.State
	time.Sleep(time.Millisecond) // as between two statements
	_, err := s.Store.SetState(ctx, user, state, at)
	return err == nil && before != state, err
}

// endsOwnRows does not end the other sides.
type endsOwnRows struct{ *oracle.Store }

func (s endsOwnRows) EndEdges(ctx context.Context, _ storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	return endEach(ctx, s.Store, rows, at, func(r storage.Row) []storage.Side { return []storage.Side{r.Side} })
}

// endsOlder leaves the other side if it is newer than the tombstone.
type endsOlder struct{ *oracle.Store }

func (s endsOlder) EndEdges(ctx context.Context, _ storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	return endEach(ctx, s.Store, rows, at, func(r storage.Row) []storage.Side { return []storage.Side{r.Side.Other(), r.Side} })
}

// endEach ends rows one by one, on some sides.
func endEach(ctx context.Context, s *oracle.Store, rows []storage.Row, at storage.Micros, sides func(storage.Row) []storage.Side) []storage.Result[storage.Edge] {
	results := make([]storage.Result[storage.Edge], len(rows))
	for i, row := range rows {
		end := row.Edge.Pair().Edge(storage.None, max(at, row.Edge.UpdateTime+1))
		results[i] = storage.Result[storage.Edge]{Value: end, Found: true}
		for _, side := range sides(row) {
			s.Apply(ctx, side, []storage.Edge{end}, storage.IfNewer)
		}
	}
	return results
}

// endsFollowsOnly forgets all other tables.
type endsFollowsOnly struct{ *oracle.Store }

func (s endsFollowsOnly) EndEdges(ctx context.Context, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	follows := slices.DeleteFunc(slices.Clone(rows), func(r storage.Row) bool { return r.Side.Truth() != rows[0].Side.Truth() })
	ended := s.Store.EndEdges(ctx, user, follows, at)
	return append(ended, make([]storage.Result[storage.Edge], len(rows)-len(ended))...)
}

// marksOutlive keeps the marks of follows that end with their user.
type marksOutlive struct {
	*oracle.Store
	kept map[storage.Pair]storage.EdgeMark
}

func (s marksOutlive) EndEdges(ctx context.Context, user storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	for _, r := range rows {
		pair := r.Edge.Pair()
		if m := storage.MarkLookups.Read(ctx, s.Store, pair)[0]; m.Found {
			s.kept[pair] = m.Value
		}
	}
	return s.Store.EndEdges(ctx, user, rows, at)
}

func (s marksOutlive) marks(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.EdgeMark] {
	results := storage.MarkLookups.Read(ctx, s.Store, pairs...)
	for i, pair := range pairs {
		if mark, kept := s.kept[pair]; kept && results[i].Err == nil {
			results[i] = storage.Result[storage.EdgeMark]{Value: mark, Found: true}
		}
	}
	return results
}

func (s marksOutlive) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.MarkLookups.Instead(ctx, b, s.marks)
	s.Store.Bundle(ctx, b)
}

// restsOtherwise has handles of erased users free at another time.
type restsOtherwise struct {
	*oracle.Store
	by storage.Micros
}

func (s restsOtherwise) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	handle := storage.UserLookups.Read(ctx, s, user)[0].Value.Handle
	err := s.Store.Erase(ctx, user, at)
	if err == nil {
		err = s.Claim(ctx, handle, user, at+storage.HandleRest+s.by)
	}
	return err
}

type erasesAnybody struct{ *oracle.Store }

func (s erasesAnybody) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	s.SetState(ctx, user, storage.Deleting, at)
	return s.Store.Erase(ctx, user, at)
}

// erasesHandleAgain removes the handle even if another user has it by then.
type erasesHandleAgain struct {
	*oracle.Store
	mu      sync.Mutex
	handles map[storage.UserID]string
}

func (s *erasesHandleAgain) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if handle, again := s.handles[user]; again {
		return s.Claim(ctx, handle, user, at)
	}
	s.handles[user] = storage.UserLookups.Read(ctx, s, user)[0].Value.Handle
	return s.Store.Erase(ctx, user, at)
}

// erasesOneStep leaves marks beyond the first thousand.
type erasesOneStep struct {
	*oracle.Store
	erased map[storage.UserID]bool
}

func (s *erasesOneStep) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	s.erased[user] = true
	return s.Store.Erase(ctx, user, at)
}

func (s *erasesOneStep) marks(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.EdgeMark] {
	results := storage.MarkLookups.Read(ctx, s.Store, pairs...)
	for i := 1000; i < len(pairs); i++ {
		if s.erased[pairs[i].From] {
			results[i] = storage.Result[storage.EdgeMark]{Value: storage.EdgeMark{Remark: "x"}, Found: true}
		}
	}
	return results
}

func (s *erasesOneStep) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.MarkLookups.Instead(ctx, b, s.marks)
	s.Store.Bundle(ctx, b)
}

// erasedIs is all that erasing again answers.
type erasedIs struct {
	*oracle.Store
	err error
}

func (s erasedIs) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	if storage.StateLookups.Read(ctx, s, user)[0].Value.State == storage.Deleted {
		return s.err
	}
	return s.Store.Erase(ctx, user, at)
}
