package storagetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// requests: what can be done about a request for friendship, on the shard of the user who asks.
// What follows on the other user's shard is in friendships.
type requests struct{ *harness }

// Here a request lasts 1,000 microseconds, and the pause after a decline is 100. For requests that
// cross, stores use the default instead.
var briefly = storage.ChangeOptions{TTL: 1000 * time.Microsecond, Pause: 100 * time.Microsecond}

// noRow is the state of a request that does not exist. expired is the state of a pending request that
// has expired.
const (
	noRow   storage.EdgeType = 100
	expired storage.EdgeType = 101
)

// Every act from every state. Each act is done at the 2,000th microsecond. Requests are from the
// 1,950th, and expired ones from the 500th.
func (s requests) EveryActFromEveryState(t *testing.T) {
	const (
		ask, accept, decline, cancel, remove = storage.Pending, storage.Accepted, storage.Declined, storage.Cancelled, storage.Removed
		none, pending, accepted              = storage.None, storage.Pending, storage.Accepted
		declined, cancelled, removed         = storage.Declined, storage.Cancelled, storage.Removed
	)
	gone, forbidden := storage.ErrNoEdge, storage.ErrForbidden
	for _, c := range []struct {
		state   storage.EdgeType
		act     storage.EdgeType
		becomes storage.EdgeType // the state itself means that nothing changes
		err     error
	}{
		{noRow, ask, pending, nil}, {noRow, accept, 0, gone}, {noRow, decline, 0, gone}, {noRow, cancel, 0, gone}, {noRow, remove, noRow, nil},
		{none, ask, pending, nil}, {none, accept, 0, gone}, {none, decline, 0, gone}, {none, cancel, 0, gone}, {none, remove, none, nil},
		{pending, ask, pending, nil}, {pending, accept, accepted, nil}, {pending, decline, declined, nil}, {pending, cancel, cancelled, nil}, {pending, remove, pending, nil},
		{expired, ask, pending, nil}, {expired, accept, 0, gone}, {expired, decline, 0, gone}, {expired, cancel, 0, gone}, {expired, remove, expired, nil},
		{accepted, ask, pending, nil}, {accepted, accept, accepted, nil}, {accepted, decline, 0, gone}, {accepted, cancel, 0, gone}, {accepted, remove, accepted, nil}, // the follow has ended, see below
		{declined, ask, 0, forbidden}, {declined, accept, 0, gone}, {declined, decline, declined, nil}, {declined, cancel, 0, gone}, {declined, remove, declined, nil},
		{cancelled, ask, pending, nil}, {cancelled, accept, 0, gone}, {cancelled, decline, 0, gone}, {cancelled, cancel, cancelled, nil}, {cancelled, remove, cancelled, nil},
		{removed, ask, pending, nil}, {removed, accept, 0, gone}, {removed, decline, 0, gone}, {removed, cancel, 0, gone}, {removed, remove, removed, nil},
	} {
		what := fmt.Sprintf("act %d from state %d", c.act, c.state)
		request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
		before := storage.Edge{From: request.From, To: request.To}
		switch c.state {
		case noRow:
		case expired:
			before = stateOf(storage.Requests, request.From, request.To, storage.Pending, 500)
			s.apply(t, storage.Requests, before)
		default:
			before = stateOf(storage.Requests, request.From, request.To, c.state, 1950)
			s.apply(t, storage.Requests, before)
		}
		counts := s.countsOf(t, request.From)
		got, err := Request(t.Context(), s.store, request, storage.EdgeChange{Type: c.act, At: at(2000)}, briefly)

		var want storage.Changed
		follows := false
		switch {
		case c.err != nil:
			wantIs(t, err, c.err)
		case c.becomes == c.state:
			want = storage.Changed{Row: before}
		default:
			row := stateOf(storage.Requests, request.From, request.To, c.becomes, 2000)
			want = storage.Changed{Row: row, Changed: true}
			before = row
			if follows = c.becomes == accepted; follows {
				want.Also = append(want.Also, storage.Written{
					Row: storage.Row{Side: storage.Forward, Edge: edge(storage.Forward, request.From, request.To, storage.Following, at(2000))}})
			}
		}
		check.That(t, c.err != nil || err == nil, "%s: %v", what, err)
		wantAnswer(t, what, got, want)
		results := storage.EdgeLookups[storage.Requests].Read(t.Context(), s.store, request)
		wantFound(t, results, before.UpdateTime != 0)
		if results[0].Found {
			wantEqual(t, what+": row", results[0].Value, before)
		}
		wantFound(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, request), follows)
		wantMissing(t, storage.EdgeLookups[storage.Inbox].Read(t.Context(), s.store, request), 1)
		if want.Changed {
			counts.Version++
		}
		if follows {
			counts.Following++
		}
		wantEqual(t, what+": counts", s.countsOf(t, request.From), counts)
	}
}

// While From follows To, an accepted request counts as a friendship, and asking again, or accepting
// again, changes nothing. To's follow may not have arrived yet. Once To has ended that follow, From may
// ask again.
func (s requests) AnAcceptedRequestStandsWithTheFollow(t *testing.T) {
	request := s.accepted(t)
	row := s.edgeOf(t, storage.Requests, request)
	for _, act := range []storage.EdgeType{storage.Pending, storage.Accepted} {
		wantAnswer(t, "again", s.act(t, request, act, 2000), storage.Changed{Row: row})
	}
	back := storage.Pair{From: request.To, To: request.From}
	s.apply(t, storage.Inverse, storage.Edge{From: back.From, To: back.To, Type: storage.Following, UpdateTime: row.UpdateTime})
	wantEqual(t, "with To's follow", s.act(t, request, storage.Pending, 2001).Changed, false)
	s.apply(t, storage.Inverse, storage.Edge{From: back.From, To: back.To, Type: storage.None, UpdateTime: row.UpdateTime + 1})
	wantEqual(t, "after To's follow has ended", s.act(t, request, storage.Pending, 2002).Row.Type, storage.Pending)

	request = s.accepted(t)
	s.change(t, request.From, change(request.To, storage.None, 2003))
	wantEqual(t, "after From's follow has ended", s.act(t, request, storage.Pending, 2004).Row.Type, storage.Pending)
}

// Two users who follow each other are friends, also without a request: none is made, whichever request there was before. A
// request of the other that is still pending is accepted.
func (s requests) FriendsByTwoFollowsDoNotAsk(t *testing.T) {
	for _, state := range []storage.EdgeType{noRow, storage.Cancelled, storage.Removed, storage.Declined} {
		request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
		if state != noRow {
			s.apply(t, storage.Requests, stateOf(storage.Requests, request.From, request.To, state, 5))
		}
		row := s.rowOf(t, storage.Requests, request)
		s.change(t, request.From, change(request.To, storage.Following, 7))
		s.apply(t, storage.Inverse, follow(storage.Inverse, request.From, request.To, 8))
		wantAnswer(t, fmt.Sprintf("from state %d", state), s.act(t, request, storage.Pending, 2000), storage.Changed{Row: row})

		s.apply(t, storage.Inbox, stateOf(storage.Inbox, request.From, request.To, storage.Pending, 2000))
		wantEqual(t, "when the other has asked", s.act(t, request, storage.Pending, 2001).Row.Type, storage.Accepted)
	}
	request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
	s.apply(t, storage.Inverse, follow(storage.Inverse, request.From, request.To, 8))
	wantEqual(t, "whom only the other follows", s.act(t, request, storage.Pending, 2000).Row.Type, storage.Pending)
}

func (s requests) ARequestExpires(t *testing.T) {
	for _, act := range []storage.EdgeType{storage.Accepted, storage.Declined, storage.Cancelled} {
		for _, late := range []bool{false, true} {
			request := s.asked(t, 10)
			n := 1010 // the last microsecond
			if late {
				n++
			}
			_, err := Request(t.Context(), s.store, request, storage.EdgeChange{Type: act, At: at(n)}, briefly)
			check.That(t, late == errors.Is(err, storage.ErrNoEdge) && (late || err == nil), "act %d, late is %v: %v", act, late, err)
		}
	}
	request := s.asked(t, 10)
	wantEqual(t, "asked in time", s.act(t, request, storage.Pending, 1010).Changed, false)
	got := s.act(t, request, storage.Pending, 1011)
	wantEqual(t, "asked anew", got.Row, stateOf(storage.Requests, request.From, request.To, storage.Pending, 1011))
	wantEqual(t, "changed", got.Changed, true)
}

func (s requests) AfterADeclineThereIsAPause(t *testing.T) {
	request := s.asked(t, 1)
	s.act(t, request, storage.Declined, 10)
	for _, n := range []int{5, 10, 60, 109} {
		s.wantRefused(t, request, storage.Pending, n, briefly, storage.ErrForbidden)
	}
	wantEqual(t, "after the pause", s.act(t, request, storage.Pending, 110).Row.Type, storage.Pending)

	// A user who has declined may ask at any time, and then the other one may accept.
	s.act(t, request, storage.Declined, 111)
	s.apply(t, storage.Inbox, stateOf(storage.Inbox, request.From, request.To, storage.Pending, 112))
	wantEqual(t, "when the other asks", s.act(t, request, storage.Pending, 113).Row.Type, storage.Accepted)
}

// If both have asked, and the second act sees the first, no pause is needed.
func (s requests) AskingWhoHasAskedAccepts(t *testing.T) {
	for _, state := range []storage.EdgeType{noRow, storage.Cancelled, storage.Removed, storage.Declined, storage.Pending} {
		request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
		if state != noRow {
			s.apply(t, storage.Requests, stateOf(storage.Requests, request.From, request.To, state, 5))
		}
		s.apply(t, storage.Inbox, stateOf(storage.Inbox, request.From, request.To, storage.Pending, 4))
		row := s.rowOf(t, storage.Requests, request)
		if state == storage.Pending { // they accepted each other when the other's request came
			wantEqual(t, "row", row.Type, storage.Accepted)
			continue
		}
		got := s.act(t, request, storage.Pending, 9)
		wantAnswer(t, fmt.Sprintf("from state %d", state), got, storage.Changed{
			Row: stateOf(storage.Requests, request.From, request.To, storage.Accepted, 9), Changed: true, Also: []storage.Written{
				{Row: storage.Row{Side: storage.Forward, Edge: follow(storage.Forward, request.From, request.To, 9)}},
			}})
		wantEqual(t, "count", s.countsOf(t, request.From).Following, 1)
	}
	// An expired request does not count.
	request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
	s.apply(t, storage.Inbox, stateOf(storage.Inbox, request.From, request.To, storage.Pending, 4))
	wantEqual(t, "one that has expired", s.act(t, request, storage.Pending, 1005).Row.Type, storage.Pending)
}

// A follow that exists keeps its time and position.
func (s requests) AcceptingLeavesTheFollowThere(t *testing.T) {
	request := s.asked(t, 5)
	row := s.change(t, request.From, change(request.To, storage.Following, 7))[0].Row
	got := s.act(t, request, storage.Accepted, 9)
	wantWritten(t, "written", got.Written(), []storage.Written{{Row: storage.Row{Side: storage.Requests, Edge: got.Row}}})
	wantEqual(t, "follow", s.edgeOf(t, storage.Forward, request), row)
}

func (s requests) TimesRiseWhenTheClockGoesBack(t *testing.T) {
	request := s.asked(t, 50)
	s.apply(t, storage.Forward, edge(storage.Forward, request.From, request.To, storage.None, at(80)))
	got := s.act(t, request, storage.Accepted, 3)
	wantEqual(t, "request", got.Row, stateOf(storage.Requests, request.From, request.To, storage.Accepted, 51))
	wantEqual(t, "follow", s.edgeOf(t, storage.Forward, request), follow(storage.Forward, request.From, request.To, 81))
	got = s.act(t, request, storage.Removed, 3)
	wantEqual(t, "request", got.Row, stateOf(storage.Requests, request.From, request.To, storage.Removed, 52))
	wantEqual(t, "follow", s.edgeOf(t, storage.Forward, request), edge(storage.Forward, request.From, request.To, storage.None, at(82)))
}

// What follows on the other side is judged by times: To's follow may be of a clock that was ahead.
func (s requests) TimesAreBehindTheFollowInReturn(t *testing.T) {
	for act, back := range map[storage.EdgeType]storage.EdgeType{storage.Accepted: storage.None, storage.Removed: storage.Following} {
		request := s.asked(t, 5)
		if act == storage.Removed {
			s.change(t, request.From, change(request.To, storage.Following, 6))
		}
		s.apply(t, storage.Inverse, edge(storage.Inverse, request.From, request.To, back, at(80)))
		got := s.act(t, request, act, 9)
		wantEqual(t, "request", got.Row, stateOf(storage.Requests, request.From, request.To, act, 81))
		wantEqual(t, "follow", s.edgeOf(t, storage.Forward, request).UpdateTime, at(81))
	}
}

// The error is that of any other refusal, whichever user blocks the other.
func (s requests) ABlockForbidsAskingAndAccepting(t *testing.T) {
	for _, own := range []bool{true, false} {
		request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
		if own {
			s.change(t, request.From, block(request.To, 1))
		} else {
			s.apply(t, storage.Inverse, edge(storage.Inverse, request.From, request.To, storage.Blocking, at(1)))
		}
		s.wantRefused(t, request, storage.Pending, 2, briefly, storage.ErrForbidden)
		// This holds for requests that were written in any other way, too.
		s.apply(t, storage.Requests, stateOf(storage.Requests, request.From, request.To, storage.Pending, 3))
		s.wantRefused(t, request, storage.Accepted, 4, briefly, storage.ErrForbidden)
		s.apply(t, storage.Inbox, stateOf(storage.Inbox, request.From, request.To, storage.Pending, 5))
		s.wantRefused(t, request, storage.Pending, 6, briefly, storage.ErrForbidden)
		wantEqual(t, "count", s.countsOf(t, request.From).Following, 0)
	}
}

// A user who asks need not fear a block that comes unseen in between: it cancels the request, and
// nobody can accept it.
func (s requests) ABlockedRequestCannotBeAccepted(t *testing.T) {
	request := s.asked(t, 1)
	s.change(t, request.From, block(request.To, 2), unblock(request.To, 3))
	s.wantRefused(t, request, storage.Accepted, 4, briefly, storage.ErrNoEdge)
	wantEqual(t, "state", s.edgeOf(t, storage.Requests, request).Type, storage.Cancelled)
}

func (s requests) SoManyMayBePending(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, s.ids(6)
	two := briefly
	two.MaxPending = 2
	ask := func(i, n int) error {
		_, err := Request(t.Context(), s.store, storage.Pair{From: from, To: to[i]}, storage.EdgeChange{Type: storage.Pending, At: at(n)}, two)
		return err
	}
	for i := range 2 {
		wantIs(t, ask(i, 1+i), nil)
	}
	wantIs(t, ask(2, 3), storage.ErrLimitReached)
	wantMissing(t, storage.EdgeLookups[storage.Requests].Read(t.Context(), s.store, storage.Pair{From: from, To: to[2]}), 1)
	wantIs(t, ask(0, 4), nil) // is pending already
	s.act(t, storage.Pair{From: from, To: to[0]}, storage.Cancelled, 5)
	wantIs(t, ask(2, 6), nil)
	wantIs(t, ask(3, 7), storage.ErrLimitReached)
	s.apply(t, storage.Inbox, stateOf(storage.Inbox, from, to[4], storage.Pending, 8))
	wantIs(t, ask(4, 9), nil)                        // is accepted
	wantIs(t, ask(3, 1002), storage.ErrLimitReached) // the second is of the 2nd microsecond
	wantIs(t, ask(3, 1003), nil)                     // and does not count any more
	wantIs(t, ask(5, 1004), storage.ErrLimitReached)
}

func (s requests) TheLimitOfFollowingsHolds(t *testing.T) {
	one := briefly
	one.MaxFollowing = 1
	for _, act := range []storage.EdgeType{storage.Accepted, storage.Pending} {
		request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
		side := storage.Requests
		if act == storage.Pending {
			side = storage.Inbox
		}
		s.apply(t, side, stateOf(side, request.From, request.To, storage.Pending, 2))
		other := s.id()
		s.change(t, request.From, change(other, storage.Following, 3))
		s.wantRefused(t, request, act, 4, one, storage.ErrLimitReached)
		// A user who is already followed can no longer be asked.
		s.change(t, request.From, change(other, storage.None, 5), change(request.To, storage.Following, 6))
		got, err := Request(t.Context(), s.store, request, storage.EdgeChange{Type: act, At: at(7)}, one)
		wantIs(t, err, nil)
		wantEqual(t, "state", got.Row.Type, storage.Accepted)
	}
}

// A request has its message while it is pending.
func (s requests) TheMessageStaysWhileItIsPending(t *testing.T) {
	long := strings.Repeat("😀", storage.MaxMessageLength)
	for _, end := range []func(storage.Pair){
		func(p storage.Pair) { s.act(t, p, storage.Accepted, 5) },
		func(p storage.Pair) { s.act(t, p, storage.Declined, 5) },
		func(p storage.Pair) { s.act(t, p, storage.Cancelled, 5) },
		func(p storage.Pair) { s.change(t, p.From, block(p.To, 5)) },
		func(p storage.Pair) {
			s.apply(t, storage.Inverse, edge(storage.Inverse, p.From, p.To, storage.Blocking, at(5)))
		},
		func(p storage.Pair) {
			s.apply(t, storage.Inbox, stateOf(storage.Inbox, p.From, p.To, storage.Accepted, 5))
		},
	} {
		request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
		s.ask(t, request, 1, long)
		s.ask(t, request, 2, "another") // is pending already
		got := storage.MessageLookups.Read(t.Context(), s.store, request, storage.Pair{From: request.To, To: request.From})
		wantFound(t, got, true, false)
		wantEqual(t, "message", got[0].Value, long)
		end(request)
		wantMissing(t, storage.MessageLookups.Read(t.Context(), s.store, request), 1)
	}
	request := s.asked(t, 1)
	wantMissing(t, storage.MessageLookups.Read(t.Context(), s.store, request), 1)
	s.act(t, request, storage.Cancelled, 2)
	s.ask(t, request, 3, "again")
	wantEqual(t, "message", found(t, storage.MessageLookups.Read(t.Context(), s.store, request), 1)[0], "again")
	s.ask(t, request, 3000, "") // has expired
	wantMissing(t, storage.MessageLookups.Read(t.Context(), s.store, request), 1)
}

func (s requests) RemovingEndsTheFollow(t *testing.T) {
	back := func(p storage.Pair) storage.Edge { return follow(storage.Forward, p.To, p.From, 3) }
	for name, befriend := range map[string]func(storage.Pair){
		"asked and accepted": func(p storage.Pair) { s.act(t, p, storage.Pending, 1); s.act(t, p, storage.Accepted, 2) },
		"accepted by the other": func(p storage.Pair) {
			s.apply(t, storage.Inbox, stateOf(storage.Inbox, p.From, p.To, storage.Accepted, 2))
		},
		"followed, never accepted": func(p storage.Pair) {
			s.change(t, p.From, change(p.To, storage.Following, 2))
			s.apply(t, storage.Inverse, back(p))
		},
	} {
		request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
		befriend(request)
		got := s.act(t, request, storage.Removed, 9)
		row := stateOf(storage.Requests, request.From, request.To, storage.Removed, 9)
		ended := edge(storage.Forward, request.From, request.To, storage.None, at(9))
		wantAnswer(t, name, got, storage.Changed{Row: row, Changed: true, Also: []storage.Written{
			{Row: storage.Row{Side: storage.Forward, Edge: ended}},
		}})
		counts := s.countsOf(t, request.From)
		wantEqual(t, name+": followings", counts.Following, 0)
		wantEqual(t, name+": friends", counts.Friend, 0)
		wantAnswer(t, name+": again", s.act(t, request, storage.Removed, 10), storage.Changed{Row: row})
	}
	// A follow that is not part of a friendship stays, and so does a follow by a user who is not followed back.
	request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
	s.change(t, request.From, change(request.To, storage.Following, 1))
	wantEqual(t, "removing a follow", s.act(t, request, storage.Removed, 2).Changed, false)
	follower := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
	s.apply(t, storage.Inverse, follow(storage.Inverse, follower.From, follower.To, 1))
	wantEqual(t, "removing a follower", s.act(t, follower, storage.Removed, 2).Changed, false)
}

func (s requests) NobodyAsksNobody(t *testing.T) {
	request := storage.Pair{From: s.id(), To: s.newUsers(t, 1)[0].ID}
	for act := storage.Pending; act <= storage.Removed; act++ {
		s.wantRefused(t, request, act, 1, briefly, storage.ErrUserUnknown)
	}
	wantMissing(t, storage.CountLookups.Read(t.Context(), s.store, request.From), 1)
}

// The asked user accepts while the asking user cancels the request, both more than once. One of the
// acts succeeds, once, and the others are told that there is no request left.
func (s requests) OneOfManyActsWins(t *testing.T) {
	for range 12 {
		request := s.asked(t, 1)
		acts := []storage.EdgeType{storage.Accepted, storage.Declined, storage.Cancelled}
		states := []storage.EdgeType{storage.Accepted, storage.Declined, storage.Cancelled}
		answers, errs := make([]storage.Changed, workers), make([]error, workers)
		together(func(worker int) {
			change := storage.EdgeChange{Type: acts[worker%3], At: at(2)}
			answers[worker], errs[worker] = Request(t.Context(), s.store, request, change, briefly)
		})
		row, changes := s.edgeOf(t, storage.Requests, request), 0
		for worker, got := range answers {
			if states[worker%3] != row.Type {
				wantIs(t, errs[worker], storage.ErrNoEdge)
				continue
			}
			wantIs(t, errs[worker], nil)
			wantEqual(t, "row", got.Row, row)
			if got.Changed {
				changes++
			}
		}
		wantEqual(t, "acts that changed it", changes, 1)
		wantEqual(t, "follows", s.countsOf(t, request.From).Following == 1, row.Type == storage.Accepted)
	}
}

// However often a request is made at once, it is made once.
func (s requests) DoubleClicksAskOnce(t *testing.T) {
	request := storage.Pair{From: s.newUsers(t, 1)[0].ID, To: s.id()}
	changes := make([]bool, workers)
	together(func(worker int) {
		got, err := Request(t.Context(), s.store, request, storage.EdgeChange{Type: storage.Pending, At: at(worker)}, briefly)
		check.That(t, err == nil, "ask: %v", err)
		changes[worker] = got.Changed
	})
	n := 0
	for _, changed := range changes {
		if changed {
			n++
		}
	}
	wantEqual(t, "acts that changed it", n, 1)
	wantEqual(t, "version", s.countsOf(t, request.From).Version, 1)
}

// Requests are listed by their states.
func (s requests) EachStateIsAList(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, s.ids(10)
	for i, id := range to {
		s.ask(t, storage.Pair{From: from, To: id}, i, "")
	}
	for i, act := range []storage.EdgeType{storage.Accepted, storage.Declined, storage.Cancelled, storage.Accepted} {
		s.act(t, storage.Pair{From: from, To: to[i]}, act, 20+i)
	}
	s.act(t, storage.Pair{From: from, To: to[3]}, storage.Removed, 30)
	for state, want := range map[storage.EdgeType][]int{
		storage.Pending: {9, 8, 7, 6, 5, 4}, storage.Accepted: {0}, storage.Declined: {1}, storage.Cancelled: {2}, storage.Removed: {3},
	} {
		var peers, wanted []storage.UserID
		for _, e := range s.page(t, storage.Requests, storage.PageQuery{Owner: from, Type: state, Limit: 20}) {
			peers = append(peers, e.To)
		}
		for _, i := range want {
			wanted = append(wanted, to[i])
		}
		wantList(t, fmt.Sprintf("state %d", state), peers, wanted)
	}
}

func (s requests) AnEndedContextChangesNothing(t *testing.T) {
	request := s.asked(t, 1)
	row, counts := s.edgeOf(t, storage.Requests, request), s.countsOf(t, request.From)
	_, err := Request(ended(t), s.store, request, storage.EdgeChange{Type: storage.Accepted, At: at(2)}, briefly)
	wantEndedErr(t, "accept", err)
	wantEqual(t, "row", s.edgeOf(t, storage.Requests, request), row)
	wantEqual(t, "counts", s.countsOf(t, request.From), counts)
}

// asked is a request of a new user that was made at the n-th microsecond.
func (h *harness) asked(t *testing.T, n int) storage.Pair {
	t.Helper()
	request := storage.Pair{From: h.newUsers(t, 1)[0].ID, To: h.id()}
	h.ask(t, request, n, "")
	return request
}

func (h *harness) ask(t *testing.T, request storage.Pair, n int, message string) {
	t.Helper()
	change := storage.EdgeChange{Type: storage.Pending, At: at(n), Message: message}
	_, err := Request(t.Context(), h.store, request, change, briefly)
	must.OK(t, err)
}

// accepted is a request that was accepted just now, at the 1,999th microsecond.
func (h *harness) accepted(t *testing.T) storage.Pair {
	t.Helper()
	request := h.asked(t, 1998)
	wantEqual(t, "accepted", h.act(t, request, storage.Accepted, 1999).Changed, true)
	return request
}

// act does one act that is not refused.
func (h *harness) act(t *testing.T, request storage.Pair, act storage.EdgeType, n int) storage.Changed {
	t.Helper()
	got, err := Request(t.Context(), h.store, request, storage.EdgeChange{Type: act, At: at(n)}, briefly)
	must.That(t, err == nil, "act %d: %v", act, err)
	return got
}

// wantRefused checks that an act is refused, and changes nothing.
func (s requests) wantRefused(t *testing.T, request storage.Pair, act storage.EdgeType, n int, o storage.ChangeOptions, reason error) {
	t.Helper()
	before := storage.EdgeLookups[storage.Requests].Read(t.Context(), s.store, request)[0]
	got, err := Request(t.Context(), s.store, request, storage.EdgeChange{Type: act, At: at(n)}, o)
	wantIs(t, err, reason)
	wantAnswer(t, "answer", got, storage.Changed{})
	after := storage.EdgeLookups[storage.Requests].Read(t.Context(), s.store, request)[0]
	wantEqual(t, "found", after.Found, before.Found)
	wantEqual(t, "row", after.Value, before.Value)
}

// rowOf reads an edge, or one of type None at time 0.
func (h *harness) rowOf(t *testing.T, side storage.Side, pair storage.Pair) storage.Edge {
	t.Helper()
	result := storage.EdgeLookups[side].Read(t.Context(), h.store, pair)
	if answers(t, result, 1); !result[0].Found {
		return storage.Edge{From: pair.From, To: pair.To}
	}
	return result[0].Value
}
