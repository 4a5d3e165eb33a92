package storagetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// states: which users can be seen.
type states struct{ *harness }

var allStates = []storage.UserState{storage.Active, storage.Deactivated, storage.Deleting, storage.Deleted}

func (s states) EverybodyIsActiveAtFirst(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	for _, is := range found(t, storage.StateLookups.Read(t.Context(), s.store, user, s.id(), user), 3) {
		wantEqual(t, "state", is, storage.UserStanding{})
	}
	s.setState(t, user, storage.Active, 1, false)
	wantList(t, "changes", s.changesOf(t, user), nil)
}

func (s states) OneLeadsToAnother(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	for n, state := range []storage.UserState{storage.Deactivated, storage.Active, storage.Deactivated, storage.Deleting} {
		s.setState(t, user, state, n+1, true)
		s.wantState(t, user, state)
		s.setState(t, user, state, n+100, false)
		wantList(t, "changes", s.changesOf(t, user), []storage.StateChange{changedTo(user, state, n+1)})
	}
	active := s.newUsers(t, 1)[0].ID
	s.setState(t, active, storage.Deleting, 1, true)
	s.wantState(t, active, storage.Deleting)
}

func (s states) NothingElseDoes(t *testing.T) {
	for _, from := range allStates[:3] {
		for _, to := range allStates {
			allowed := from <= storage.Deactivated && to <= storage.Deleting
			if allowed || from == to {
				continue
			}
			user := s.newUsers(t, 1)[0].ID
			if from != storage.Active {
				s.setState(t, user, from, 1, true)
			}
			before := s.countsOf(t, user)
			changed, err := s.store.SetState(t.Context(), user, to, at(2))
			wantIs(t, err, storage.ErrForbidden)
			wantEqual(t, "changed", changed, false)
			s.wantState(t, user, from)
			wantEqual(t, "counts", s.countsOf(t, user), before)
		}
	}
}

func (s states) NobodyHasNone(t *testing.T) {
	ids := s.ids(2)
	s.apply(t, storage.Inverse, follow(storage.Inverse, ids[1], s.id(), 1))
	for _, id := range ids {
		for _, state := range allStates {
			changed, err := s.store.SetState(t.Context(), id, state, at(1))
			wantIs(t, err, storage.ErrUserUnknown)
			wantEqual(t, "changed", changed, false)
		}
		s.wantState(t, id, storage.Active)
	}
}

func (s states) TheVersionRisesWithAChange(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	for _, step := range []struct {
		state storage.UserState
		rises bool
	}{{storage.Active, false}, {storage.Deactivated, true}, {storage.Deactivated, false}, {storage.Active, true}, {storage.Deleting, true}} {
		before := s.countsOf(t, user)
		s.setState(t, user, step.state, 1, step.rises)
		now := s.countsOf(t, user)
		wantEqual(t, "the version rose", now.Version > before.Version, step.rises)
		now.Version = before.Version
		wantEqual(t, "counts", now, before)
	}
}

// A reader of changes finds the next change after the last one it read, even if the clock went back.
func (s states) TheTimeOfChangesRises(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	s.setState(t, user, storage.Deactivated, 1000, true)
	s.setState(t, user, storage.Active, 3, true)
	wantList(t, "changes", s.changesOf(t, user), []storage.StateChange{changedTo(user, storage.Active, 1001)})
	s.setState(t, user, storage.Deactivated, 2000, true)
	wantList(t, "changes", s.changesOf(t, user), []storage.StateChange{changedTo(user, storage.Deactivated, 2000)})
}

func (s states) ChangesAreListedInOrder(t *testing.T) {
	users := s.newUsers(t, 12)
	want := make(map[storage.StateChange]storage.UserState)
	for i, user := range users {
		n := 500_000 + i/4 // several at the same time
		s.setState(t, user.ID, storage.Deactivated, n, true)
		want[storage.StateChange{At: at(n), User: user.ID}] = storage.Deactivated
	}
	begin := storage.StateChange{At: at(499_999)}
	for _, limit := range []int{1, 2, 5, 100} {
		n := 0
		for shard := range s.store.Shards() {
			for _, c := range s.changes(t, shard, begin, limit) {
				state, ok := want[storage.StateChange{At: c.At, User: c.User}]
				check.That(t, ok && state == c.State, "with limit %d: %+v was not changed", limit, c)
				n++
			}
		}
		wantEqual(t, fmt.Sprintf("changes with limit %d", limit), n, len(want))
	}
}

func (s states) OneOfSeveralAtOnceChangesIt(t *testing.T) {
	user := s.newUsers(t, 1)[0].ID
	var changed [workers]bool
	together(func(worker int) {
		var err error
		changed[worker], err = s.store.SetState(t.Context(), user, storage.Deactivated, at(1))
		check.That(t, err == nil, "%v", err)
	})
	n := 0
	for _, c := range changed {
		if c {
			n++
		}
	}
	wantEqual(t, "changes", n, 1)
}

// setState changes a state and checks what is reported.
func (h *harness) setState(t *testing.T, user storage.UserID, state storage.UserState, n int, want bool) {
	t.Helper()
	changed, err := h.store.SetState(t.Context(), user, state, at(n))
	must.OK(t, err)
	wantEqual(t, "changed", changed, want)
}

func (h *harness) wantState(t *testing.T, user storage.UserID, want storage.UserState) {
	t.Helper()
	wantEqual(t, "state", one(t, h, storage.StateLookups, user).State, want)
}

func changedTo(user storage.UserID, state storage.UserState, n int) storage.StateChange {
	return storage.StateChange{At: at(n), User: user, State: state}
}

// changesOf returns all listed changes of a user.
func (h *harness) changesOf(t *testing.T, user storage.UserID) []storage.StateChange {
	t.Helper()
	var list []storage.StateChange
	for shard := range h.store.Shards() {
		for _, c := range h.changes(t, shard, storage.StateChange{}, 100) {
			if c.User == user {
				list = append(list, c)
			}
		}
	}
	return list
}

// changes reads the changes of a shard page by page, and checks their order.
func (h *harness) changes(t *testing.T, shard int, after storage.StateChange, limit int) []storage.StateChange {
	t.Helper()
	var list []storage.StateChange
	for {
		page := one(t, h, storage.StateChangeLookups, storage.ShardQuery[storage.StateChange]{Shard: shard, After: after, Limit: limit})
		must.That(t, len(page) <= limit, "%d changes, want %d at most", len(page), limit)
		for _, c := range page {
			must.That(t, cmp.Or(cmp.Compare(after.At, c.At), cmp.Compare(after.User, c.User)) < 0, "%+v comes behind %+v", c, after)
			after = c
		}
		if len(page) == 0 {
			return list
		}
		list = append(list, page...)
	}
}

// rows: all rows of an owner, for callers that have to end them.
type rows struct{ *harness }

func (s rows) AllButTombstonesAscend(t *testing.T, side storage.Side) {
	owner, peers := s.id(), s.sortedIDs(12)
	var want []storage.Edge
	for i, peer := range peers {
		row := edge(side, owner, peer, typesOf(side)[i%3], at(100-i))
		s.apply(t, side, row, edge(side, s.id(), peer, typesOf(side)[1], at(1)))
		if row.Type != storage.None {
			want = append(want, row)
		}
	}
	for _, limit := range []int{1, 3, 8, 100} {
		var got []storage.Edge
		for after := storage.UserID(0); len(got) <= len(want); after = side.Peer(got[len(got)-1].Pair()) {
			page := s.rows(t, storage.RowsQuery{Side: side, Owner: owner, After: after, Limit: limit})
			must.That(t, len(page) <= limit, "%d rows, want %d at most", len(page), limit)
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
		}
		wantList(t, fmt.Sprintf("rows with limit %d", limit), got, want)
	}
	for skip := range 3 {
		got := s.rows(t, storage.RowsQuery{Side: side, Owner: owner, Limit: len(want), Any: true, Skip: skip})
		rest := slices.DeleteFunc(slices.Clone(want), func(e storage.Edge) bool { return !slices.Contains(got, e) })
		wantList(t, fmt.Sprintf("any rows but %d", skip), got, rest)
		wantEqual(t, "how many", len(got), len(want)-skip)
	}
}

func (s rows) EveryTypeIsThere(t *testing.T) {
	for _, side := range []storage.Side{storage.Requests, storage.Inbox} {
		owner, peers := s.id(), s.sortedIDs(5)
		for i, peer := range slices.Backward(peers) {
			pair := side.Pair(owner, peer)
			s.apply(t, side, storage.Edge{From: pair.From, To: pair.To, Type: storage.Pending + storage.EdgeType(i), UpdateTime: at(1)})
		}
		got := s.rows(t, storage.RowsQuery{Side: side, Owner: owner, Limit: 100})
		for i, row := range got {
			wantEqual(t, "type", row.Type, storage.Pending+storage.EdgeType(i))
		}
		wantEqual(t, "rows", len(got), len(peers))
	}
}
