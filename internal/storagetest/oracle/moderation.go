package oracle

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/judge"
)

// Moderate implements [storage.Store].
func (s *Store) Moderate(ctx context.Context, e storage.ModerationEntry) (storage.ModerationEntry, bool, error) {
	if err := ctx.Err(); err != nil {
		return e, false, err
	}
	defer s.write(ctx)()
	changed, err := s.moderate(&e)
	if err != nil || !changed {
		return e, false, err
	}
	at := e.At
	for _, other := range s.moderation {
		if other.Owner == e.Owner {
			e.At = max(e.At, other.At+1)
		}
	}
	s.moderation = append(s.moderation, e)
	if e.Action <= storage.Reinstated {
		s.suspend(e.User, e.Until, at)
	}
	return e, true, nil
}

// moderate says whether an entry changes something. It removes posts and comments.
func (s *Store) moderate(e *storage.ModerationEntry) (changed bool, err error) {
	switch e.Action {
	case storage.PostRemoved:
		return s.deletePost(storage.PostID{Author: e.Owner, Number: e.Number}), nil
	case storage.CommentRemoved:
		c := s.deleteComment(storage.CommentID{Author: e.Owner, Number: e.Number}, e.Owner)
		e.User = c.By
		return c.Number != 0, nil
	case storage.UserReported, storage.PostReported:
		if _, exists := s.users[e.Owner]; !exists {
			return false, fmt.Errorf("report by %d: %w", e.Owner, storage.ErrUserUnknown)
		}
		var last storage.Micros
		for _, other := range s.moderation {
			if other.Owner == e.Owner && other.User == e.User && other.Action == e.Action && other.Number == e.Number {
				last = max(last, other.At)
			}
		}
		return judge.Report(last, *e), nil
	}
	state := s.states[e.User]
	if _, exists := s.users[e.User]; !exists && state.State != storage.Deleted {
		return false, fmt.Errorf("suspend user %d: %w", e.User, storage.ErrUserUnknown)
	}
	s.change.AddStanding(e.User)
	return judge.Suspension(state.State, state.SuspendedUntil, *e)
}

// suspend sets until when a user is suspended, 0 for never, as a change of its state.
func (s *Store) suspend(user storage.UserID, until, at storage.Micros) {
	s.changeState(user, s.states[user].State, at)
	state := s.states[user]
	state.SuspendedUntil = until
	s.states[user] = state
	s.raiseVersion(user)
}

// lastSuspension is the newest entry that suspends or reinstates a user; the zero one if there is none.
func (s *Store) lastSuspension(user storage.UserID) (last storage.ModerationEntry) {
	for _, e := range s.moderation {
		if e.User == user && e.Action <= storage.Reinstated && e.At > last.At {
			last = e
		}
	}
	return last
}

// findModeration answers [storage.ModerationLookups].
func (s *Store) findModeration(q storage.PlaceQuery) ([]storage.ModerationEntry, bool) {
	list := slices.DeleteFunc(slices.Clone(s.moderation), func(e storage.ModerationEntry) bool { return q.Of.Author != 0 && e.User != q.Of.Author })
	return pageOf(list, storage.ModerationEntry.Place, q.After, q.Limit), true
}

// restoreModeration adds an entry, whose user gets the time at.
func (s *Store) restoreModeration(e storage.ModerationEntry, at storage.Micros) storage.Result[bool] {
	if slices.ContainsFunc(s.moderation, func(other storage.ModerationEntry) bool { return compareKeys(e, other) == 0 }) {
		return storage.Result[bool]{Found: true}
	}
	s.moderation = append(s.moderation, e)
	if _, exists := s.users[e.User]; exists && e.Action <= storage.Reinstated {
		s.change.AddStanding(e.User)
		s.suspend(e.User, s.lastSuspension(e.User).Until, at)
	}
	return storage.Result[bool]{Value: true, Found: true}
}

func compareKeys(a, b storage.ModerationEntry) int {
	return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.At, b.At))
}

// Moderation implements [contents.Moment].
func (m *moment) Moderation(ctx context.Context, after storage.ModerationEntry, limit int) ([]storage.ModerationEntry, error) {
	page := slices.DeleteFunc(slices.Clone(m.moderation), func(e storage.ModerationEntry) bool { return compareKeys(e, after) <= 0 })
	slices.SortFunc(page, compareKeys)
	return page[:min(limit, len(page))], ctx.Err()
}
