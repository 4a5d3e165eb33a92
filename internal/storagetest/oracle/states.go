package oracle

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/judge"
)

// SetState implements [storage.Store].
func (s *Store) SetState(ctx context.Context, user storage.UserID, state storage.UserState, at storage.Micros) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	defer s.write(ctx)()
	old := s.states[user].State
	if _, exists := s.users[user]; !exists && old != storage.Deleted {
		return false, fmt.Errorf("set the state of user %d: %w", user, storage.ErrUserUnknown)
	}
	s.change.AddStanding(user)
	if changes, err := judge.State(user, old, state); err != nil || !changes {
		return false, err
	}
	s.changeState(user, state, at)
	s.raiseVersion(user)
	return true, nil
}

// changeState makes the times of a user's changes rise.
func (s *Store) changeState(user storage.UserID, state storage.UserState, at storage.Micros) {
	change := s.states[user]
	change.At, change.User, change.State = max(at, change.At+1), user, state
	s.states[user] = change
}

// findStates answers [storage.StateLookups].
func (s *Store) findStates(user storage.UserID) (storage.UserStanding, bool) {
	is := storage.UserStanding{State: s.states[user].State}
	if is.Until = s.states[user].SuspendedUntil; is.Until != 0 {
		is.Reason = s.lastSuspension(user).Reason
	}
	return is, true
}

// findStateChanges answers [storage.StateChangeLookups].
func (s *Store) findStateChanges(q storage.ShardQuery[storage.StateChange]) ([]storage.StateChange, bool) {
	order := func(a, b storage.StateChange) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.User, b.User))
	}
	var changes []storage.StateChange
	for _, change := range on(s, q.Shard, s.states, itself) {
		if order(change, q.After) > 0 {
			changes = append(changes, change)
		}
	}
	slices.SortFunc(changes, order)
	return changes[:min(len(changes), q.Limit)], true
}

// EndEdges implements [storage.Store].
func (s *Store) EndEdges(ctx context.Context, _ storage.UserID, rows []storage.Row, at storage.Micros) []storage.Result[storage.Edge] {
	results := make([]storage.Result[storage.Edge], len(rows))
	if err := ctx.Err(); err != nil {
		return refuse(results, err)
	}
	defer s.write(ctx)()
	pairs := make([]storage.Pair, len(rows))
	for i, row := range rows {
		pairs[i] = row.Edge.Pair()
	}
	j := s.judge(pairs...)
	for i, row := range rows {
		results[i] = storage.Result[storage.Edge]{Value: j.End(pairs[i], at, row.Side, row.Side.Other()), Found: true}
	}
	s.save(j)
	return results
}

// Erase implements [storage.Store].
func (s *Store) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	defer s.write(ctx)()
	state := s.states[user].State
	if state < storage.Deleting {
		return fmt.Errorf("erase user %d: %w", user, storage.ErrForbidden)
	}
	maps.DeleteFunc(s.identities, func(_ storage.Identity, link storage.LinkedIdentity) bool { return link.User == user })
	s.erasePosts(user)
	if state == storage.Deleted {
		return nil
	}
	if handle := s.users[user].Handle; s.handles[handle].owner == user {
		s.handles[handle] = claim{user, at + judge.HandleRest}
	}
	maps.DeleteFunc(s.marks, func(pair storage.Pair, _ storage.EdgeMark) bool { return pair.From == user })
	maps.DeleteFunc(s.messages, func(pair storage.Pair, _ string) bool { return pair.From == user })
	s.change.AddStanding(user)
	s.change.AddPost(storage.PostEdited, storage.PostAt{PostID: storage.PostID{Author: user}})
	maps.DeleteFunc(s.seen, func(what storage.Seen, _ storage.Micros) bool { return what.User == user })
	maps.DeleteFunc(s.imports, func(id storage.ImportID, _ []storage.ImportPart) bool { return id.Owner == user })
	maps.DeleteFunc(s.lists, func(id storage.ListID, _ storage.UserList) bool { return id.Owner == user })
	delete(s.users, user)
	delete(s.passwords, user)
	delete(s.counts, user)
	delete(s.active, user)
	s.changeState(user, storage.Deleted, at)
	return nil
}
