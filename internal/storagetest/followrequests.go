package storagetest

import (
	"fmt"
	"testing"

	"kith/storage"
)

// followRequests: follows that wait for the approval of a locked user.
type followRequests struct{ *harness }

// answer is what the other user does about a request, at the n-th microsecond.
func answer(to storage.UserID, kind storage.EdgeType, n int) storage.EdgeChange {
	return storage.EdgeChange{To: to, Type: kind, Ends: storage.Requested, At: at(n)}
}

// Everything that can be done from every type of a row that leaves the user.
func (s followRequests) EveryChangeFromEveryType(t *testing.T) {
	const none, follow, block, request, denied = storage.None, storage.Following, storage.Blocking, storage.Requested, storage.Denied
	for _, c := range []struct {
		was, kind, ends, becomes storage.EdgeType
		refused                  bool
	}{
		{none, request, 0, request, false}, {follow, request, 0, follow, false}, {block, request, 0, block, true}, {request, request, 0, request, false},
		{request, follow, 0, follow, false}, // the other user is no longer locked
		{none, follow, request, none, false}, {follow, follow, request, follow, false}, {block, follow, request, block, false}, {request, follow, request, follow, false},
		{none, none, request, none, false}, {follow, none, request, follow, false}, {block, none, request, block, false}, {request, none, request, none, false},
		{request, none, 0, none, false}, {request, none, follow, request, false}, {request, none, block, request, false}, {request, block, 0, block, false},
		{request, denied, request, denied, false}, {request, denied, 0, denied, false}, {follow, denied, request, follow, false}, {follow, denied, 0, none, false},
		{none, denied, request, none, false}, {none, denied, 0, none, false}, {block, denied, request, block, false}, {block, denied, 0, block, false},
		{denied, denied, request, denied, false}, {denied, denied, 0, denied, false}, {denied, none, request, denied, false}, {denied, none, 0, denied, false},
		{denied, follow, request, denied, false}, {denied, request, 0, request, false}, {denied, follow, 0, follow, false}, {denied, block, 0, block, false},
	} {
		what := fmt.Sprintf("type %d, of rows of type %d, from %d", c.kind, c.ends, c.was)
		me, to := s.newUsers(t, 1)[0].ID, s.id()
		row := storage.Edge{From: me, To: to, Type: c.was, UpdateTime: at(5)}
		s.apply(t, storage.Forward, row)
		result := s.store.ChangeEdges(t.Context(), storage.Forward, me, []storage.EdgeChange{{To: to, Type: c.kind, Ends: c.ends, At: at(9)}}, storage.ChangeOptions{})[0]
		if c.becomes != c.was {
			row.Type, row.UpdateTime = c.becomes, at(9)
		}
		if c.refused {
			wantIs(t, result.Err, storage.ErrForbidden)
		} else {
			wantAnswer(t, what, result.Value, storage.Changed{Row: row, Changed: c.becomes != c.was, Waited: c.was == request && c.becomes != c.was})
		}
		wantEqual(t, "row: "+what, s.edgeOf(t, storage.Forward, row.Pair()), row)
		following := int64(0)
		if row.Type == follow {
			following = 1
		}
		wantEqual(t, "count: "+what, s.countsOf(t, me).Following, following)
	}
}

// Requests and follows together are within the limit when a request is made; a follow is within that of follows.
func (s followRequests) TheyCountForTheLimit(t *testing.T) {
	me, to := s.newUsers(t, 1)[0].ID, s.ids(8)
	three := storage.ChangeOptions{MaxFollowing: 3}
	wantLimited(t, s.store.ChangeEdges(t.Context(), storage.Forward, me, []storage.EdgeChange{
		change(to[0], storage.Following, 1), change(to[1], storage.Requested, 1), change(to[2], storage.Requested, 1),
		change(to[3], storage.Requested, 1),                                                                      // beyond
		change(to[1], storage.None, 2), change(to[3], storage.Requested, 2), change(to[4], storage.Requested, 2), // beyond
		change(to[3], storage.Requested, 3), // is there
	}, three), 3, 6)
	wantLimited(t, s.store.ChangeEdges(t.Context(), storage.Forward, me, []storage.EdgeChange{change(to[5], storage.Requested, 4)}, three), 0)
	wantLimited(t, s.store.ChangeEdges(t.Context(), storage.Forward, me, []storage.EdgeChange{
		change(to[5], storage.Following, 5), change(to[6], storage.Following, 5), answer(to[2], storage.Following, 5),
	}, three), 2)
	wantEqual(t, "the request stays", s.edgeOf(t, storage.Forward, storage.Pair{From: me, To: to[2]}).Type, storage.Requested)
	wantEqual(t, "count", s.countsOf(t, me).Following, 3)
}

func (s followRequests) ABlockEndsARequest(t *testing.T) {
	me, other := s.newUsers(t, 1)[0].ID, s.id()
	s.change(t, me, change(other, storage.Requested, 1))
	got := s.apply(t, storage.Inverse, edge(storage.Inverse, me, other, storage.Blocking, at(5)))[0]
	ended := edge(storage.Forward, me, other, storage.None, at(5))
	wantEqual(t, "rows that follow", len(got.Also), 1)
	wantEqual(t, "the request", got.Also[0].Edge, ended)
	for _, n := range sizes[:3] { // neither does one come back
		others := append(s.ids(n-1), other)
		rows := make([]storage.Edge, n)
		for i, id := range others {
			rows[i] = edge(storage.Forward, me, id, storage.Requested, at(9))
		}
		s.apply(t, storage.Forward, rows...)
		wantEqual(t, "the row", s.edgeOf(t, storage.Forward, ended.Pair()), ended)
	}
}

// They are on pages of their own type alone, and on no list of follows, on either side.
func (s followRequests) TheyAreNoFollows(t *testing.T) {
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		me, peers := s.newUsers(t, 1)[0].ID, s.ids(5)
		for i, id := range peers {
			kind := []storage.EdgeType{storage.Following, storage.Requested}[i%2]
			s.apply(t, side, edge(side, me, id, kind, at(i+1)))
		}
		requests := []storage.Edge{edge(side, me, peers[3], storage.Requested, at(4)), edge(side, me, peers[1], storage.Requested, at(2))}
		wantList(t, "requests", s.page(t, side, storage.PageQuery{Owner: me, Type: storage.Requested, Limit: 9}), requests)
		wantEqual(t, "follows", len(s.page(t, side, storage.PageQuery{Owner: me, Limit: 9})), 3)
		wantEqual(t, "neighbours", len(found(t, storage.NeighbourLookups[side].Read(t.Context(), s.store, me), 1)[0]), 3)
		wantEqual(t, "count", s.countsOf(t, me).Of(side), 3)
		list := found(t, storage.SnapshotLookups[side].Read(t.Context(), s.store, storage.ListQuery{Owner: me, Longest: 9}), 1)[0]
		wantEqual(t, "rows of the list", len(list.Edges), 5)
		n := found(t, storage.EdgeCountLookups[side].Read(t.Context(), s.store, storage.EdgeCountQuery{Owner: me, Type: storage.Requested, Limit: 9}), 1)[0]
		wantEqual(t, "requests counted", n, 2)
	}
}

// One accepts while the other withdraws, again and again: one of the two happens, and the row says which.
func (s followRequests) AcceptOrWithdraw(t *testing.T) {
	for n := range 20 {
		me, other := s.newUsers(t, 1)[0].ID, s.id()
		s.change(t, me, change(other, storage.Requested, 1))
		var got [workers]storage.Result[storage.Changed]
		together(func(worker int) {
			one := answer(other, storage.Following, 2)
			if worker%2 == 0 {
				one = answer(other, storage.None, 2)
			}
			got[worker] = s.store.ChangeEdges(t.Context(), storage.Forward, me, []storage.EdgeChange{one}, withInverse)[0]
		})
		changed := 0
		row := s.edgeOf(t, storage.Forward, storage.Pair{From: me, To: other})
		for _, r := range got {
			if r.Value.Changed {
				changed++
				wantEqual(t, "what was reported", r.Value.Row, row)
			}
		}
		wantEqual(t, fmt.Sprintf("changes of try %d", n), changed, 1)
	}
}
