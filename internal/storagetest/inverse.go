package storagetest

import (
	"fmt"
	"testing"

	"kith/storage"
)

// inverse: the other side of changed edges, written in the same transaction if it is in the same
// database.
type inverse struct{ *harness }

var withInverse = storage.ChangeOptions{Inverse: true}

func (s inverse) WithoutTheOptionItIsNotWritten(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, idsOf(s.newUsers(t, 8))
	counts := found(t, storage.CountLookups.Read(t.Context(), s.store, to...), len(to))
	for _, kind := range []storage.EdgeType{storage.Following, storage.Blocking, storage.None} {
		batch := changeAll(to, kind, 1)
		for i := range batch {
			batch[i].Ends = storage.Blocking
		}
		for _, got := range s.change(t, from, batch...) {
			wantEqual(t, "changed", got.Changed, true)
			wantEqual(t, "inverse", got.Inverse, false)
		}
		wantMissing(t, storage.EdgeLookups[storage.Inverse].Read(t.Context(), s.store, pairsFrom(from, to...)...), len(to))
		wantList(t, "counts", found(t, storage.CountLookups.Read(t.Context(), s.store, to...), len(to)), counts)
	}
}

func (s inverse) WhatIsLocalIsWritten(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, idsOf(s.newUsers(t, 40))
	for step, kind := range []storage.EdgeType{
		storage.Following, storage.Blocking, storage.None, storage.Blocking, storage.None, storage.Following, storage.None, storage.Following,
	} {
		before := found(t, storage.CountLookups.Read(t.Context(), s.store, to...), len(to))
		batch := changeAll(to, kind, step)
		for i := range batch {
			if step < 5 {
				batch[i].Ends = storage.Blocking
			}
		}
		answers := s.changeWith(t, from, withInverse, batch...)
		rows := storage.EdgeLookups[storage.Inverse].Read(t.Context(), s.store, pairsFrom(from, to...)...)
		now := found(t, storage.CountLookups.Read(t.Context(), s.store, to...), len(to))
		for i, got := range answers {
			local := s.local(t, from, to[i])
			what := fmt.Sprintf("step %d, local is %v: ", step, local)
			wantEqual(t, what+"changed", got.Changed, true)
			wantEqual(t, what+"inverse", got.Inverse, local)
			wantEqual(t, what+"row is there", rows[i].Found, local)
			if !local {
				wantEqual(t, what+"counts", now[i], before[i])
				continue
			}
			wantEqual(t, what+"row", rows[i].Value, got.Row)
			followers := int64(0)
			if kind == storage.Following {
				followers = 1
			}
			wantEqual(t, what+"count", now[i], storage.Counts{Follower: followers, Version: before[i].Version + 1})
		}
	}
}

func (s inverse) UnchangedOnesAreNotWritten(t *testing.T) {
	from, to := s.neighbours(t, 3)
	s.change(t, from, change(to[0], storage.Following, 1)) // only this side
	s.changeWith(t, from, withInverse, change(to[1], storage.Following, 2))
	counts := found(t, storage.CountLookups.Read(t.Context(), s.store, to...), 3)
	for _, got := range s.changeWith(t, from, withInverse,
		change(to[0], storage.Following, 3), change(to[1], storage.Following, 3), change(to[2], storage.None, 3)) {
		wantEqual(t, "changed", got.Changed, false)
		wantEqual(t, "inverse", got.Inverse, false)
	}
	wantFound(t, storage.EdgeLookups[storage.Inverse].Read(t.Context(), s.store, pairsFrom(from, to...)...), false, true, false)
	wantList(t, "counts", found(t, storage.CountLookups.Read(t.Context(), s.store, to...), 3), counts)
}

func (s inverse) RefusedOnesAreNotWritten(t *testing.T) {
	from, to := s.neighbours(t, 3)
	results := s.store.ChangeEdges(t.Context(), storage.Forward, from, changeAll(to, storage.Following, 1),
		storage.ChangeOptions{MaxFollowing: 1, Inverse: true})
	wantLimited(t, results, 1, 2)
	wantFound(t, storage.EdgeLookups[storage.Inverse].Read(t.Context(), s.store, pairsFrom(from, to...)...), true, false, false)
	for i, want := range []int64{1, 0, 0} {
		wantEqual(t, "count", s.countsOf(t, to[i]).Follower, want)
		wantEqual(t, "inverse", results[i].Value.Inverse, want == 1)
	}
}

// A row that was written there in another way is counted from its earlier state.
func (s inverse) AnOlderRowIsReplaced(t *testing.T) {
	for _, old := range allTypes {
		from, to := s.neighbours(t, 1)
		s.apply(t, storage.Inverse, storage.Edge{From: from, To: to[0], Type: old, UpdateTime: at(1)})
		got := s.changeWith(t, from, withInverse, change(to[0], storage.Following, 2))[0]
		wantEqual(t, "inverse", got.Inverse, true)
		wantEqual(t, "row", s.edgeOf(t, storage.Inverse, got.Row.Pair()), got.Row)
		wantEqual(t, "count", s.countsOf(t, to[0]).Follower, 1)
	}
}

func (s inverse) ANewerRowStays(t *testing.T) {
	for _, time := range []int{5, 6} { // also of the same time
		from, to := s.neighbours(t, 2)
		row := storage.Edge{From: from, To: to[0], Type: storage.Blocking, UpdateTime: at(time)}
		s.apply(t, storage.Inverse, row)
		counts := s.countsOf(t, to[0])
		got := s.changeWith(t, from, withInverse, change(to[0], storage.Following, 5), change(to[1], storage.Following, 5))
		wantList(t, "inverse", []bool{got[0].Inverse, got[1].Inverse}, []bool{false, true})
		wantEqual(t, "row", s.edgeOf(t, storage.Inverse, row.Pair()), row)
		wantEqual(t, "counts", s.countsOf(t, to[0]), counts)
		wantEqual(t, "row of this side", s.edgeOf(t, storage.Forward, row.Pair()), got[0].Row)
	}
}

func (s inverse) PeersWithoutCountsGetThem(t *testing.T) {
	from, _ := s.neighbours(t, 0)
	var to []storage.UserID
	for len(to) < 3 {
		if id := s.id(); s.local(t, from, id) {
			to = append(to, id)
		}
	}
	s.changeWith(t, from, withInverse, change(to[0], storage.Following, 1), change(to[1], storage.Blocking, 1), change(to[2], storage.None, 1))
	results := storage.CountLookups.Read(t.Context(), s.store, to...)
	wantFound(t, results, true, true, false) // nothing was ended, and nothing is counted
	wantEqual(t, "count", results[0].Value.Follower, 1)
	wantEqual(t, "count of who is blocked", results[1].Value.Follower, 0)
}

func (s inverse) ChangesOfOneUserEndAlike(t *testing.T) {
	from, to := s.neighbours(t, 2)
	before := s.countsOf(t, to[0]).Version
	got := s.changeWith(t, from, withInverse,
		change(to[0], storage.Following, 1),
		change(to[0], storage.None, 1),
		change(to[1], storage.Following, 1),
		change(to[0], storage.Following, 1),
		change(to[0], storage.Following, 9), // exists already
		change(to[1], storage.None, 1),
	)
	for i, want := range []bool{true, true, true, true, false, true} {
		wantEqual(t, fmt.Sprintf("inverse of change %d", i), got[i].Inverse, want)
	}
	for i, last := range []int{3, 5} {
		wantEqual(t, "row of this side", s.edgeOf(t, storage.Forward, got[last].Row.Pair()), got[last].Row)
		wantEqual(t, "row", s.edgeOf(t, storage.Inverse, got[last].Row.Pair()), got[last].Row)
		wantEqual(t, "count", s.countsOf(t, to[i]).Follower, int64(1-i))
	}
	wantEqual(t, "version", s.countsOf(t, to[0]).Version, before+1)
}

// local reports whether two users are in the same database.
func (h *harness) local(t *testing.T, a, b storage.UserID) bool {
	t.Helper()
	shards := storage.NewShardMap(len(h.store.Ping(t.Context())))
	return shards.Of(a) == shards.Of(b)
}

// neighbours makes a user and n others in the same database.
func (h *harness) neighbours(t *testing.T, n int) (storage.UserID, []storage.UserID) {
	t.Helper()
	from := h.newUsers(t, 1)[0].ID
	var near []storage.UserID
	for len(near) < n {
		if id := h.newUsers(t, 1)[0].ID; h.local(t, from, id) {
			near = append(near, id)
		}
	}
	return from, near
}

// changeAll is the same change towards each user.
func changeAll(to []storage.UserID, kind storage.EdgeType, n int) []storage.EdgeChange {
	return storage.Each(to, func(id storage.UserID) storage.EdgeChange { return change(id, kind, n) })
}
