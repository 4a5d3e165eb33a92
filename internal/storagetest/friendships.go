package storagetest

import (
	"fmt"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// friendships: what follows from requests on the shard of the user who is asked, where they arrive
// as rows of the inbox: early, late, more than once and in any order.
type friendships struct{ *harness }

func (s friendships) AnAcceptedRequestMakesTheOtherFollow(t *testing.T) {
	for _, n := range sizes {
		me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
		batch := make([]storage.Edge, n)
		var follows int64
		for i, id := range others {
			batch[i] = stateOf(storage.Inbox, me, id, []storage.EdgeType{storage.Accepted, storage.Declined, storage.Cancelled}[i%3*(i%2)], 5)
		}
		for i, got := range s.apply(t, storage.Inbox, batch...) {
			want := storage.Changed{Row: batch[i], Changed: true}
			if batch[i].Type == storage.Accepted {
				follows++
				want.Also = []storage.Written{{Row: storage.Row{Side: storage.Forward, Edge: follow(storage.Forward, me, others[i], 5)}}}
				wantEqual(t, "follow", s.edgeOf(t, storage.Forward, storage.Pair{From: me, To: others[i]}), want.Also[0].Edge)
			}
			wantApplied(t, fmt.Sprintf("answer %d of %d", i, n), got, want)
		}
		wantEqual(t, "counts", s.countsOf(t, me), storage.Counts{Following: follows, Version: 1})
	}
}

// If it is applied again, it makes no second follow, but it reports the follow that it made.
func (s friendships) ItDoesSoOnce(t *testing.T) {
	for _, n := range sizes {
		me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
		var batch []storage.Edge
		for _, id := range others {
			batch = append(batch, stateOf(storage.Inbox, me, id, storage.Accepted, 5))
		}
		first := s.apply(t, storage.Inbox, batch...)
		counts := s.countsOf(t, me)
		for i, got := range s.apply(t, storage.Inbox, batch...) {
			wantApplied(t, "again", got, storage.Changed{Row: batch[i], Also: first[i].Also})
		}
		wantEqual(t, "counts", s.countsOf(t, me), counts)

		s.change(t, me, changeAll(others, storage.None, 3)...) // the given time is earlier
		for i, got := range s.apply(t, storage.Inbox, batch...) {
			wantApplied(t, "after the follow was ended", got, storage.Changed{Row: batch[i]})
		}
		wantEqual(t, "count", s.countsOf(t, me).Following, 0)
	}
}

// An event that comes late undoes nothing that its owner has done since then.
func (s friendships) LateEventsUndoNothing(t *testing.T) {
	for _, c := range []struct {
		event storage.EdgeType
		now   storage.EdgeType // newer than the event
	}{{storage.Accepted, storage.None}, {storage.Removed, storage.Following}} {
		for _, time := range []int{10, 11} {
			me, other := s.newUsers(t, 1)[0].ID, s.id()
			row := edge(storage.Forward, me, other, c.now, at(time))
			s.apply(t, storage.Forward, row)
			event := stateOf(storage.Inbox, me, other, c.event, 10)
			wantApplied(t, "answer", s.apply(t, storage.Inbox, event)[0], storage.Changed{Row: event, Changed: true})
			wantEqual(t, "follow", s.edgeOf(t, storage.Forward, row.Pair()), row)
		}
	}
	// An older state that comes after a newer one does nothing at all.
	me, other := s.newUsers(t, 1)[0].ID, s.id()
	newer := stateOf(storage.Inbox, me, other, storage.Removed, 20)
	s.apply(t, storage.Inbox, newer)
	for _, state := range []storage.EdgeType{storage.Accepted, storage.Pending} {
		wantApplied(t, "late state", s.apply(t, storage.Inbox, stateOf(storage.Inbox, me, other, state, 10))[0], storage.Changed{Row: newer})
	}
	wantMissing(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, storage.Pair{From: me, To: other}), 1)
}

func (s friendships) ARemovedFriendNoLongerFollows(t *testing.T) {
	for _, n := range sizes {
		me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
		var batch []storage.Edge
		for _, id := range others {
			batch = append(batch, stateOf(storage.Inbox, me, id, storage.Removed, 9))
		}
		s.change(t, me, changeAll(others, storage.Following, 2)...)
		var reported [][]storage.Written
		for i, got := range s.apply(t, storage.Inbox, batch...) {
			ended := edge(storage.Forward, me, others[i], storage.None, at(9))
			wantApplied(t, "answer", got, storage.Changed{Row: batch[i], Changed: true, Also: []storage.Written{{Row: storage.Row{Side: storage.Forward, Edge: ended}}}})
			reported = append(reported, got.Also)
		}
		wantEqual(t, "count", s.countsOf(t, me).Following, 0)
		for i, got := range s.apply(t, storage.Inbox, batch...) {
			wantApplied(t, "again", got, storage.Changed{Row: batch[i], Also: reported[i]})
		}
	}
}

// Both users have asked before they saw the other's request. The requests accept each other, and
// later events about them change nothing.
func (s friendships) RequestsThatCrossAcceptEachOther(t *testing.T) {
	for _, n := range sizes {
		for _, state := range []storage.EdgeType{storage.Pending, storage.Accepted} {
			me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
			var asked, batch []storage.Edge
			for i, id := range others {
				asked = append(asked, stateOf(storage.Requests, me, id, storage.Pending, 10+i%2*20)) // before and after the other
				batch = append(batch, stateOf(storage.Inbox, me, id, state, 20))
			}
			s.apply(t, storage.Requests, asked...)
			// Even a follow that was ended later than the requests is made again, with a time after its end.
			s.apply(t, storage.Forward, edge(storage.Forward, me, others[0], storage.None, at(25)))
			var reported [][]storage.Written
			for i, got := range s.apply(t, storage.Inbox, batch...) {
				row := stateOf(storage.Requests, me, others[i], storage.Accepted, 21+i%2*10) // newer than both
				made := follow(storage.Forward, me, others[i], 20)
				if i == 0 {
					made.UpdateTime = at(26)
				}
				want := []storage.Written{{Row: storage.Row{Side: storage.Requests, Edge: row}}, {Row: storage.Row{Side: storage.Forward, Edge: made}}}
				wantApplied(t, fmt.Sprintf("answer %d of %d", i, n), got, storage.Changed{Row: batch[i], Changed: true, Also: want})
				reported = append(reported, got.Also)
			}
			counts := s.countsOf(t, me)
			wantEqual(t, "count", counts.Following, int64(n))
			for i, got := range s.apply(t, storage.Inbox, batch...) {
				wantApplied(t, "again", got, storage.Changed{Row: batch[i], Also: reported[i]})
			}
			wantEqual(t, "counts", s.countsOf(t, me), counts)
		}
	}
}

// Whether one of them has expired is judged by the times of both, because stores have no clock.
func (s friendships) AnExpiredRequestDoesNotCross(t *testing.T) {
	ttl := int(storage.DefaultRequestTTL.Microseconds())
	for _, c := range []struct {
		mine, other int
		meet        bool
	}{{0, ttl, true}, {0, ttl + 1, false}, {ttl, 0, true}, {ttl + 1, 0, false}} {
		me, other := s.newUsers(t, 1)[0].ID, s.id()
		s.apply(t, storage.Requests, stateOf(storage.Requests, me, other, storage.Pending, c.mine))
		got := s.apply(t, storage.Inbox, stateOf(storage.Inbox, me, other, storage.Pending, c.other))[0]
		wantEqual(t, fmt.Sprintf("%+v: met", c), len(got.Also) > 0, c.meet)
	}
}

func (s friendships) ARequestIsNoMoreThanThat(t *testing.T) {
	for _, mine := range []storage.EdgeType{noRow, storage.Accepted, storage.Declined, storage.Cancelled, storage.Removed} {
		me, other := s.newUsers(t, 1)[0].ID, s.id()
		if mine != noRow {
			s.apply(t, storage.Requests, stateOf(storage.Requests, me, other, mine, 1))
		}
		event := stateOf(storage.Inbox, me, other, storage.Pending, 2)
		wantApplied(t, "answer", s.apply(t, storage.Inbox, event)[0], storage.Changed{Row: event, Changed: true})
		wantMissing(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, storage.Pair{From: me, To: other}), 1)
	}
}

// If one user blocks the other, nothing follows from a request.
func (s friendships) ABlockIsStronger(t *testing.T) {
	for _, state := range []storage.EdgeType{storage.Accepted, storage.Pending} {
		for _, own := range []bool{true, false} {
			me, other := s.newUsers(t, 1)[0].ID, s.id()
			if own {
				s.change(t, me, block(other, 1))
			} else {
				s.apply(t, storage.Inverse, edge(storage.Inverse, me, other, storage.Blocking, at(1)))
			}
			s.apply(t, storage.Requests, stateOf(storage.Requests, me, other, storage.Pending, 2))
			event := stateOf(storage.Inbox, me, other, state, 3)
			wantApplied(t, "answer", s.apply(t, storage.Inbox, event)[0], storage.Changed{Row: event, Changed: true})
			wantEqual(t, "request", s.edgeOf(t, storage.Requests, storage.Pair{From: me, To: other}).Type, storage.Pending)
			wantEqual(t, "count", s.countsOf(t, me).Following, 0)
		}
	}
}

// Each edge of a batch is judged after the edges before it, with what follows from them.
func (s friendships) EdgesOfOnePairAreJudgedInTurn(t *testing.T) {
	for _, n := range sizes { // of pairs
		me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
		var batch []storage.Edge
		for n, state := range []storage.EdgeType{storage.Pending, storage.Accepted, storage.Removed, storage.Pending, storage.Accepted} {
			for _, id := range others {
				batch = append(batch, stateOf(storage.Inbox, me, id, state, 1+n))
			}
		}
		for i, got := range s.apply(t, storage.Inbox, batch...) {
			must.That(t, got.Changed, "edge %d of %d was not written", i, n)
		}
		for _, row := range found(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, pairsFrom(me, others...)...), n) {
			wantEqual(t, "follow", row, follow(storage.Forward, me, row.To, 5))
		}
		wantEqual(t, "counts", s.countsOf(t, me), storage.Counts{Following: int64(n), Version: 1})
	}
}

// With the option, a friendship between two users of one database is one transaction.
func (s friendships) WhatIsLocalIsWrittenAtOnce(t *testing.T) {
	me, near := s.neighbours(t, 3)
	o := briefly
	o.Inverse = true
	do := func(request storage.Pair, act storage.EdgeType, n int) []storage.Written {
		t.Helper()
		got, err := Request(t.Context(), s.store, request, storage.EdgeChange{Type: act, At: at(n)}, o)
		wantIs(t, err, nil)
		wantEqual(t, "row", got.Row, s.edgeOf(t, storage.Requests, request))
		for _, row := range got.Written() {
			wantEqual(t, "inverse of "+row.Side.String(), row.Inverse, true)
			wantEqual(t, "other side of "+row.Side.String(), s.edgeOf(t, row.Side.Replica(), row.Edge.Pair()), row.Edge)
			wantEqual(t, row.Side.String(), s.edgeOf(t, row.Side, row.Edge.Pair()), row.Edge)
		}
		return got.Written()
	}
	friends := func(want int64) {
		t.Helper()
		wantEqual(t, "friends", s.countsOf(t, me).Friend, want)
	}
	mine, theirs := storage.Pair{From: me, To: near[0]}, storage.Pair{From: near[0], To: me}
	wantEqual(t, "asked", len(do(mine, storage.Pending, 1)), 1)
	wantEqual(t, "accepted", len(do(mine, storage.Accepted, 2)), 3) // and both follow
	friends(1)
	wantEqual(t, "removed", len(do(mine, storage.Removed, 3)), 3)
	friends(0)
	wantEqual(t, "asked by the other", len(do(theirs, storage.Pending, 4)), 1)
	wantEqual(t, "asked back", len(do(mine, storage.Pending, 5)), 4) // both requests are accepted
	friends(1)
	wantEqual(t, "removed by the other", len(do(theirs, storage.Removed, 6)), 3)
	friends(0)

	// The other's request exists, but has not arrived.
	other := storage.Pair{From: near[1], To: me}
	s.apply(t, storage.Requests, stateOf(storage.Requests, other.From, other.To, storage.Pending, 1))
	wantEqual(t, "asked at once", len(do(storage.Pair{From: me, To: near[1]}, storage.Pending, 2)), 4)
	friends(1)
	for _, who := range []storage.UserID{me, near[1]} {
		counts := s.countsOf(t, who)
		counts.Version = 0
		wantEqual(t, "counts", counts, storage.Counts{Following: 1, Follower: 1, Friend: 1})
	}
	// A block prevents all of this.
	s.changeWith(t, near[2], withInverse, block(me, 1))
	_, err := Request(t.Context(), s.store, storage.Pair{From: me, To: near[2]}, storage.EdgeChange{Type: storage.Pending, At: at(2)}, o)
	wantIs(t, err, storage.ErrForbidden)
}

// Without the option only the shard of the user who asks is written.
func (s friendships) WithoutTheOptionTheInboxIsNotWritten(t *testing.T) {
	me, near := s.neighbours(t, 1)
	request := storage.Pair{From: me, To: near[0]}
	counts := s.countsOf(t, near[0])
	for n, act := range []storage.EdgeType{storage.Pending, storage.Accepted, storage.Removed, storage.Pending, storage.Cancelled} {
		for _, row := range s.act(t, request, act, n).Written() {
			wantEqual(t, "inverse", row.Inverse, false)
		}
	}
	wantMissing(t, storage.EdgeLookups[storage.Inbox].Read(t.Context(), s.store, request), 1)
	wantMissing(t, storage.EdgeLookups[storage.Inverse].Read(t.Context(), s.store, request), 1)
	wantEqual(t, "counts", s.countsOf(t, near[0]), counts)
}
