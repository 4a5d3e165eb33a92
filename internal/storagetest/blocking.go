package storagetest

import (
	"fmt"
	"testing"

	"kith/internal/must"
	"kith/storage"
)

// blocking: what a block ends and what it prevents, on the shard of either user. Blocked requests
// are in requests.
type blocking struct{ *harness }

// sizes are numbers of edges that engines may write in different ways: one by one, in one
// statement, in bulk, and in bulk with one more.
var sizes = []int{1, 3, 64, 130, 1001}

func (s blocking) FollowsAreRefusedBothWays(t *testing.T) {
	me, other := s.newUsers(t, 1)[0].ID, s.id()
	s.change(t, me, block(other, 1))
	wantOnlyRefused(t, storage.ErrForbidden, s.store.ChangeEdges(t.Context(), storage.Forward, me, []storage.EdgeChange{
		change(other, storage.Following, 2)}, storage.ChangeOptions{}), 0)

	blocked := s.newUsers(t, 1)[0].ID
	s.apply(t, storage.Inverse, edge(storage.Inverse, blocked, other, storage.Blocking, at(1)))
	wantOnlyRefused(t, storage.ErrForbidden, s.store.ChangeEdges(t.Context(), storage.Forward, blocked, []storage.EdgeChange{
		change(other, storage.Following, 2)}, storage.ChangeOptions{}), 0)
	wantMissing(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, storage.Pair{From: blocked, To: other}), 1)
	wantEqual(t, "count", s.countsOf(t, blocked).Following, 0)
}

// Every third of the others blocks the user, and the user blocks every fifth.
func (s blocking) OnlyWhoIsInABlockIsRefused(t *testing.T) {
	for _, n := range sizes {
		me, to := s.newUsers(t, 1)[0].ID, s.ids(n)
		var inverse []storage.Edge
		var own []storage.EdgeChange
		var refused []int
		for i, id := range to {
			if i%3 == 0 {
				inverse = append(inverse, edge(storage.Inverse, me, id, storage.Blocking, at(1)))
			}
			if i%5 == 0 {
				own = append(own, block(id, 1))
			}
			if i%3 == 0 || i%5 == 0 {
				refused = append(refused, i)
			}
		}
		s.apply(t, storage.Inverse, inverse...)
		s.change(t, me, own...)
		results := s.store.ChangeEdges(t.Context(), storage.Forward, me, changeAll(to, storage.Following, 2), withInverse)
		wantOnlyRefused(t, storage.ErrForbidden, results, refused...)
		wantEqual(t, fmt.Sprintf("count of %d", n), s.countsOf(t, me).Following, int64(n-len(refused)))
	}
}

// A block is reported before the limit, whether the limit is reached or not. Neither matters to an
// edge that already exists.
func (s blocking) ABlockIsReportedBeforeTheLimit(t *testing.T) {
	me, to := s.newUsers(t, 1)[0].ID, s.ids(3)
	s.change(t, me, change(to[0], storage.Following, 1), block(to[1], 1))
	one := storage.ChangeOptions{MaxFollowing: 1}
	results := s.store.ChangeEdges(t.Context(), storage.Forward, me, []storage.EdgeChange{
		change(to[1], storage.Following, 2), change(to[2], storage.Following, 2), change(to[0], storage.Following, 2)}, one)
	wantIs(t, results[0].Err, storage.ErrForbidden)
	wantIs(t, results[1].Err, storage.ErrLimitReached)
	wantAnswer(t, "the follow that is there", results[2].Value, storage.Changed{
		Row: storage.Edge{From: me, To: to[0], Type: storage.Following, UpdateTime: at(1)}})
}

// Blocks that exist, follows and their ends do not matter to the limit; a block that has ended makes room.
func (s blocking) OnlyBlocksBeyondTheLimitAreRefused(t *testing.T) {
	me, to := s.newUsers(t, 1)[0].ID, s.ids(6)
	two := storage.ChangeOptions{MaxBlocks: 2}
	s.changeWith(t, me, two, change(to[5], storage.Following, 1), block(to[0], 1))
	wantLimited(t, s.store.ChangeEdges(t.Context(), storage.Forward, me, []storage.EdgeChange{
		block(to[0], 2), block(to[1], 2), block(to[2], 2), unblock(to[0], 2), block(to[3], 2), block(to[5], 2), change(to[4], storage.Following, 2),
	}, two), 2, 5)
	wantLimited(t, s.store.ChangeEdges(t.Context(), storage.Forward, me, []storage.EdgeChange{block(to[2], 3)}, two), 0)
	s.changeWith(t, me, two, unblock(to[1], 4))
	s.changeWith(t, me, two, block(to[2], 5))
	s.change(t, me, block(to[0], 6))
}

// The reverse follow ends when the block arrives, whether it is older or newer than the block.
func (s blocking) AnAppliedBlockEndsTheFollowBack(t *testing.T) {
	for _, n := range sizes {
		me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
		back := make([]storage.Edge, n)
		batch := make([]storage.Edge, n)
		for i, id := range others {
			back[i] = follow(storage.Forward, me, id, 40*(i%2)) // some older than the block, some newer
			batch[i] = edge(storage.Inverse, me, id, storage.Blocking, at(20))
			if i%7 == 3 {
				batch[i] = follow(storage.Inverse, me, id, 20) // no block
			}
		}
		s.apply(t, storage.Forward, back...)
		s.apply(t, storage.Inverse, follow(storage.Inverse, me, others[0], 5)) // a friend, until then
		before := s.countsOf(t, me)
		var left, friends int64
		for i, got := range s.apply(t, storage.Inverse, batch...) {
			want := storage.Changed{Row: batch[i], Changed: true}
			if batch[i].Type == storage.Blocking {
				back[i].Type, back[i].UpdateTime = storage.None, at([]int{20, 41}[i%2])
				want.Also = []storage.Written{{Row: storage.Row{Side: storage.Forward, Edge: back[i]}}}
			} else {
				left, friends = left+1, friends+1
			}
			wantApplied(t, fmt.Sprintf("answer %d of %d", i, n), got, want)
		}
		wantList(t, "rows", found(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, pairsOf(back)...), n), back)
		wantEqual(t, "friends before", before.Friend, 1)
		wantEqual(t, fmt.Sprintf("counts of %d", n), s.countsOf(t, me),
			storage.Counts{Following: left, Follower: friends, Friend: friends, Version: before.Version + 1})
	}
}

// The same holds for many users who are blocked by one.
func (s blocking) EachOfManyOwnersLosesItsOwn(t *testing.T) {
	for _, n := range sizes {
		owners, other, third := s.ids(n), s.id(), s.id()
		var forward, inverse []storage.Edge
		for _, owner := range owners {
			forward = append(forward, follow(storage.Forward, owner, other, 1), follow(storage.Forward, owner, third, 1))
			inverse = append(inverse, edge(storage.Inverse, owner, other, storage.Blocking, at(2)))
		}
		s.apply(t, storage.Forward, forward...)
		for i, got := range s.apply(t, storage.Inverse, inverse...) {
			must.That(t, len(got.Also) == 1 && got.Also[0].Edge.From == owners[i], "owner %d of %d: got %+v", i, n, got.Also)
		}
		for _, got := range found(t, storage.CountLookups.Read(t.Context(), s.store, owners...), n) {
			wantEqual(t, "count", got.Following, 1)
		}
	}
}

func (s blocking) AnAppliedBlockCancelsThePendingRequest(t *testing.T) {
	for _, n := range sizes {
		me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
		requests := make([]storage.Edge, n)
		batch := make([]storage.Edge, n)
		for i, id := range others {
			kind := []storage.EdgeType{storage.Pending, storage.Accepted, storage.Declined, storage.Pending, storage.Cancelled, storage.Removed}[i%6]
			requests[i] = stateOf(storage.Requests, me, id, kind, 10*(i%4))
			batch[i] = edge(storage.Inverse, me, id, storage.Blocking, at(20))
		}
		s.apply(t, storage.Requests, requests...)
		for i, got := range s.apply(t, storage.Inverse, batch...) {
			want := storage.Changed{Row: batch[i], Changed: true}
			if requests[i].Type == storage.Pending {
				requests[i].Type, requests[i].UpdateTime = storage.Cancelled, max(at(20), requests[i].UpdateTime+1)
				want.Also = []storage.Written{{Row: storage.Row{Side: storage.Requests, Edge: requests[i]}}}
			}
			wantApplied(t, fmt.Sprintf("answer %d of %d", i, n), got, want)
		}
		wantList(t, "requests", found(t, storage.EdgeLookups[storage.Requests].Read(t.Context(), s.store, pairsOf(requests)...), n), requests)
	}
}

// A block of one's own also cancels the request, whether the block is made or applied. A block
// lasts longer than a request, so the age of the request does not matter.
func (s blocking) AnOwnBlockCancelsThePendingRequest(t *testing.T) {
	for _, made := range []bool{true, false} {
		for _, time := range []int{3, 20} {
			me, other := s.newUsers(t, 1)[0].ID, s.id()
			request := stateOf(storage.Requests, me, other, storage.Pending, time)
			s.apply(t, storage.Requests, request)
			row := edge(storage.Forward, me, other, storage.Blocking, at(9))
			var also []storage.Written
			if made {
				also = s.change(t, me, block(other, 9))[0].Also
			} else {
				also = s.apply(t, storage.Forward, row)[0].Also
			}
			request.Type, request.UpdateTime = storage.Cancelled, at(max(9, time+1))
			wantWritten(t, "returned", also, []storage.Written{{Row: storage.Row{Side: storage.Requests, Edge: request}}})
			wantEqual(t, "request", s.edgeOf(t, storage.Requests, request.Pair()), request)
			wantEqual(t, "block", s.edgeOf(t, storage.Forward, row.Pair()), row)
		}
	}
}

func (s blocking) BlockingAgainReportsNothing(t *testing.T) {
	me, other := s.newUsers(t, 1)[0].ID, s.id()
	s.apply(t, storage.Requests, stateOf(storage.Requests, me, other, storage.Pending, 1))
	row := s.change(t, me, block(other, 2))[0].Row
	wantAnswer(t, "answer", s.change(t, me, block(other, 3))[0], storage.Changed{Row: row})
}

// An unblock that has arrived first is newer, so the follow after it is legal.
func (s blocking) ALateBlockDoesNothing(t *testing.T) {
	for _, n := range sizes {
		me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
		unblocks, late := make([]storage.Edge, n), make([]storage.Edge, n)
		for i, id := range others {
			unblocks[i] = edge(storage.Inverse, me, id, storage.None, at(20))
			late[i] = edge(storage.Inverse, me, id, storage.Blocking, at(10+i%11)) // the same time as well
		}
		s.apply(t, storage.Inverse, unblocks...)
		s.change(t, me, changeAll(others, storage.Following, 15)...)
		counts := s.countsOf(t, me)
		for i, got := range s.apply(t, storage.Inverse, late...) {
			wantApplied(t, "answer", got, storage.Changed{Row: unblocks[i]})
		}
		wantEqual(t, "counts", s.countsOf(t, me), counts)
		for _, row := range found(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, pairsFrom(me, others...)...), n) {
			wantEqual(t, "type", row.Type, storage.Following)
		}
	}
}

// The program that applied the block the first time may have ended before it propagated what followed.
func (s blocking) ARedeliveredBlockReportsAgain(t *testing.T) {
	for _, n := range sizes {
		me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
		var follows, requests, batch []storage.Edge
		for _, id := range others {
			follows = append(follows, follow(storage.Forward, me, id, 1))
			requests = append(requests, stateOf(storage.Requests, me, id, storage.Pending, 1))
			batch = append(batch, edge(storage.Inverse, me, id, storage.Blocking, at(2)))
		}
		s.apply(t, storage.Forward, follows...)
		s.apply(t, storage.Requests, requests...)
		first := s.apply(t, storage.Inverse, batch...)
		counts := s.countsOf(t, me)
		for _, rule := range []storage.Rule{storage.IfNewer, storage.IfAbsent} {
			for i, again := range s.applyRule(t, storage.Inverse, rule, batch...) {
				wantEqual(t, "rows reported", len(first[i].Also), 2)
				wantApplied(t, "again", again, storage.Changed{Row: batch[i], Also: first[i].Also})
			}
		}
		wantEqual(t, "counts", s.countsOf(t, me), counts)
	}
}

// An unblock may have been applied before the block comes again. What the block has ended still
// has to be propagated.
func (s blocking) ABlockThatIsPastReportsWhatItHasEnded(t *testing.T) {
	for _, n := range sizes {
		me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
		var follows, requests, blocks, unblocks []storage.Edge
		for _, id := range others {
			follows = append(follows, follow(storage.Forward, me, id, 1))
			requests = append(requests, stateOf(storage.Requests, me, id, storage.Pending, 1))
			blocks = append(blocks, edge(storage.Inverse, me, id, storage.Blocking, at(2)))
			unblocks = append(unblocks, edge(storage.Inverse, me, id, storage.None, at(3)))
		}
		s.apply(t, storage.Forward, follows...)
		s.apply(t, storage.Requests, requests...)
		first := s.apply(t, storage.Inverse, blocks...)
		s.apply(t, storage.Inverse, unblocks...)
		for i, past := range s.apply(t, storage.Inverse, blocks...) {
			wantEqual(t, "rows reported", len(first[i].Also), 2)
			wantApplied(t, "past", past, storage.Changed{Row: unblocks[i], Also: first[i].Also})
		}
	}
}

func (s blocking) AnUnfollowDoesNotEndABlock(t *testing.T) {
	me, to := s.newUsers(t, 1)[0].ID, s.ids(2)
	rows := []storage.Edge{s.change(t, me, block(to[0], 1))[0].Row, s.change(t, me, block(to[1], 1))[0].Row}
	counts := s.countsOf(t, me)
	for i, ends := range []storage.EdgeType{0, storage.Following} { // 0 stands for Following
		got := s.changeWith(t, me, withInverse, storage.EdgeChange{To: to[i], Type: storage.None, Ends: ends, At: at(5)})[0]
		wantAnswer(t, "answer", got, storage.Changed{Row: rows[i]})
	}
	wantList(t, "rows", found(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, pairsOf(rows)...), 2), rows)
	wantEqual(t, "counts", s.countsOf(t, me), counts)
}

func (s blocking) AnUnblockDoesNotEndAFollow(t *testing.T) {
	me, to := s.newUsers(t, 1)[0].ID, s.ids(2)
	row := s.change(t, me, change(to[0], storage.Following, 1))[0].Row
	counts := s.countsOf(t, me)
	got := s.changeWith(t, me, withInverse, unblock(to[0], 5), unblock(to[1], 5))
	wantAnswer(t, "answer", got[0], storage.Changed{Row: row})
	wantAnswer(t, "answer where nothing is", got[1], storage.Changed{Row: storage.Edge{From: me, To: to[1]}})
	wantFound(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, pairsFrom(me, to...)...), true, false)
	wantEqual(t, "counts", s.countsOf(t, me), counts)
}

// An unblock restores nothing, and both users may follow again.
func (s blocking) AfterAnUnblockBothMayFollow(t *testing.T) {
	users := idsOf(s.newUsers(t, 2))
	me, other := users[0], users[1]
	s.change(t, me, change(other, storage.Following, 1), block(other, 2))
	s.apply(t, storage.Inverse, edge(storage.Inverse, other, me, storage.Blocking, at(2)))
	got := s.change(t, me, unblock(other, 3))[0]
	want := storage.Edge{From: me, To: other, Type: storage.None, UpdateTime: at(3)}
	wantAnswer(t, "unblock", got, storage.Changed{Row: want, Changed: true})
	s.apply(t, storage.Inverse, want)
	wantEqual(t, "the blocker follows", s.change(t, me, change(other, storage.Following, 4))[0].Changed, true)
	wantEqual(t, "who was blocked follows", s.change(t, other, change(me, storage.Following, 4))[0].Changed, true)
}

// Neither imports nor late events make a follow of a user who has blocked the follower. Everything
// else is written.
func (s blocking) AForwardFollowOfABlockedOwnerIsNotWritten(t *testing.T) {
	for _, rule := range []storage.Rule{storage.IfNewer, storage.IfAbsent} {
		for _, n := range sizes {
			me, others := s.newUsers(t, 1)[0].ID, s.ids(n)
			var blocking, batch []storage.Edge
			for i, id := range others {
				if i%2 == 0 {
					blocking = append(blocking, edge(storage.Inverse, me, id, storage.Blocking, at(2)))
				}
				kind := storage.Following
				if i%6 == 4 {
					kind = allTypes[i/6%2*2] // a tombstone or a block
				}
				batch = append(batch, edge(storage.Forward, me, id, kind, at(9)))
			}
			s.apply(t, storage.Inverse, blocking...)
			before, live, written := s.countsOf(t, me), int64(0), false
			results := s.applyRule(t, storage.Forward, rule, batch...)
			rows := storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, pairsOf(batch)...)
			for i, got := range results {
				want := storage.Changed{Row: batch[i], Changed: true}
				if i%2 == 0 && batch[i].Type == storage.Following {
					want = storage.Changed{Row: storage.Edge{From: me, To: others[i]}}
				} else {
					live, written = live+counted(batch[i]), true
				}
				wantApplied(t, fmt.Sprintf("answer %d of %d", i, n), got, want)
				must.That(t, rows[i].Err == nil && rows[i].Found == want.Changed, "row %d of %d: %+v", i, n, rows[i])
			}
			now := s.countsOf(t, me)
			wantEqual(t, "count", now.Following, live)
			wantEqual(t, "version rises", now.Version > before.Version, written)
		}
	}
}

// Rows that exist are reported, and stay.
func (s blocking) AForwardFollowLeavesTheTombstoneThere(t *testing.T) {
	me, other := s.newUsers(t, 1)[0].ID, s.id()
	s.apply(t, storage.Forward, follow(storage.Forward, me, other, 1))
	s.apply(t, storage.Inverse, edge(storage.Inverse, me, other, storage.Blocking, at(2)))
	ended := edge(storage.Forward, me, other, storage.None, at(2))
	got := s.apply(t, storage.Forward, follow(storage.Forward, me, other, 50))[0]
	wantApplied(t, "answer", got, storage.Changed{Row: ended})
	wantEqual(t, "row", s.edgeOf(t, storage.Forward, ended.Pair()), ended)
}

// If both users are in one database, everything is one transaction: the follows of both and the
// requests of both end, on all sides.
func (s blocking) WhatIsLocalEndsAtOnce(t *testing.T) {
	me, near := s.neighbours(t, 3)
	for i, other := range near {
		s.changeWith(t, me, withInverse, change(other, storage.Following, 1))
		s.changeWith(t, other, withInverse, change(me, storage.Following, 30*i))
		for _, request := range []storage.Pair{{From: me, To: other}, {From: other, To: me}} {
			row := stateOf(storage.Requests, request.From, request.To, storage.Pending, 1)
			s.apply(t, storage.Requests, row)
			s.apply(t, storage.Inbox, stateOf(storage.Inbox, request.To, request.From, storage.Declined, 0)) // older
		}
	}
	wantEqual(t, "friends", s.countsOf(t, me).Friend, 3)
	versions := []int64{s.countsOf(t, me).Version, s.countsOf(t, near[0]).Version}
	for i, got := range s.changeWith(t, me, withInverse, block(near[0], 9), block(near[1], 9), block(near[2], 9)) {
		both := func(side storage.Side, from, to storage.UserID, kind storage.EdgeType, time int) storage.Written {
			row := storage.Edge{From: from, To: to, Type: kind, UpdateTime: at(time)}
			return storage.Written{Row: storage.Row{Side: side, Edge: row}, Inverse: true}
		}
		want := storage.Changed{Row: edge(storage.Forward, me, near[i], storage.Blocking, at(9)), Changed: true, Inverse: true, Also: []storage.Written{
			both(storage.Forward, near[i], me, storage.None, max(9, 30*i+1)),
			both(storage.Requests, me, near[i], storage.Cancelled, 9),
			both(storage.Requests, near[i], me, storage.Cancelled, 9),
		}}
		wantAnswer(t, fmt.Sprintf("answer %d", i), got, want)
		for _, row := range got.Written() {
			for _, side := range []storage.Side{row.Side, row.Side.Replica()} {
				wantEqual(t, side.String(), s.edgeOf(t, side, row.Edge.Pair()), row.Edge)
			}
		}
	}
	wantEqual(t, "counts", s.countsOf(t, me), storage.Counts{Version: versions[0] + 1})
	wantEqual(t, "counts of the first", s.countsOf(t, near[0]), storage.Counts{Version: versions[1] + 1})
}

// Without the option, or if the other user is in another database, the other user's rows stay
// unchanged until the block is applied there.
func (s blocking) WhatLiesElsewhereStays(t *testing.T) {
	for _, inverse := range []bool{false, true} {
		users := idsOf(s.newUsers(t, 9))
		me := users[0]
		for _, other := range users[1:] {
			if inverse && s.local(t, me, other) {
				continue
			}
			s.change(t, other, change(me, storage.Following, 1))
			s.apply(t, storage.Inverse, follow(storage.Inverse, me, other, 1))
			counts := s.countsOf(t, other)
			got := s.changeWith(t, me, storage.ChangeOptions{Inverse: inverse}, block(other, 2))[0]
			wantAnswer(t, "answer", got, storage.Changed{Row: edge(storage.Forward, me, other, storage.Blocking, at(2)), Changed: true})
			wantEqual(t, "counts", s.countsOf(t, other), counts)
			wantEqual(t, "follow", s.edgeOf(t, storage.Forward, storage.Pair{From: other, To: me}).Type, storage.Following)
			wantEqual(t, "its other side", s.edgeOf(t, storage.Inverse, storage.Pair{From: other, To: me}).Type, storage.Following)
		}
	}
}

// stateOf is a request in a state, the n-th in time.
func stateOf(side storage.Side, owner, peer storage.UserID, kind storage.EdgeType, n int) storage.Edge {
	pair := side.Pair(owner, peer)
	return storage.Edge{From: pair.From, To: pair.To, Type: kind, UpdateTime: at(n)}
}

func counted(e storage.Edge) int64 {
	if e.Type == storage.Following {
		return 1
	}
	return 0
}
