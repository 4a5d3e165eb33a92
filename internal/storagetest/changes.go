package storagetest

import (
	"fmt"
	"testing"

	"kith/internal/check"
	"kith/storage"
)

// changes: what a user does towards others, and the rules that judge it. The other side of the
// edges is in inverse.
type changes struct{ *harness }

func (s changes) AnEmptyCallHasNoResults(t *testing.T) {
	answers(t, s.store.ChangeEdges(t.Context(), storage.Forward, s.newUsers(t, 1)[0].ID, nil, storage.ChangeOptions{}), 0)
	answers(t, s.store.ChangeEdges(t.Context(), storage.Forward, s.id(), []storage.EdgeChange{}, storage.ChangeOptions{}), 0)
}

func (s changes) AnyTypeMayComeAfterAnother(t *testing.T) {
	for _, old := range allTypes {
		for _, next := range allTypes {
			if old == storage.Blocking && (next == storage.Following || next == storage.Requested) {
				continue // is refused, see blocks
			}
			from, to := s.newUsers(t, 1)[0].ID, s.id()
			row := storage.Edge{From: from, To: to, Type: old, UpdateTime: at(1)}
			s.apply(t, storage.Forward, row)
			want, becomes := storage.Changed{Row: row}, next
			ch := storage.EdgeChange{To: to, Type: next, Ends: old, At: at(2)}
			if next == storage.Denied && old != storage.Requested { // see followRequests
				becomes = storage.None
			}
			if becomes != old && !(old == storage.Following && becomes == storage.Requested) { // see followRequests
				want = storage.Changed{Row: storage.Edge{From: from, To: to, Type: becomes, UpdateTime: at(2)}, Changed: true, Waited: old == storage.Requested}
			}
			what := fmt.Sprintf("from %d to %d", old, ch.Type)
			wantAnswer(t, "answer "+what, s.change(t, from, ch)[0], want)
			wantEqual(t, "row "+what, s.edgeOf(t, storage.Forward, row.Pair()), want.Row)
			following := int64(0)
			if want.Row.Type == storage.Following {
				following = 1
			}
			wantEqual(t, "count "+what, s.countsOf(t, from).Following, following)
		}
	}
}

func (s changes) AMissingEdgeIsWritten(t *testing.T) {
	for _, kind := range []storage.EdgeType{storage.Following, storage.Blocking} {
		from, to := s.newUsers(t, 1)[0].ID, s.id()
		row := storage.Edge{From: from, To: to, Type: kind, UpdateTime: at(3)}
		wantAnswer(t, "answer", s.change(t, from, change(to, kind, 3))[0], storage.Changed{Row: row, Changed: true})
		wantEqual(t, "row", s.edgeOf(t, storage.Forward, row.Pair()), row)
	}
}

func (s changes) ARowOfTheWantedTypeKeepsItsTimeAndPosition(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, s.ids(3)
	for i, id := range to {
		s.change(t, from, change(id, storage.Following, i))
	}
	list, counts := s.page(t, storage.Forward, storage.PageQuery{Owner: from, Limit: 9}), s.countsOf(t, from)
	for _, time := range []int{-5, 0, 50} {
		row := storage.Edge{From: from, To: to[0], Type: storage.Following, UpdateTime: at(0)}
		wantAnswer(t, "answer", s.change(t, from, change(to[0], storage.Following, time))[0], storage.Changed{Row: row})
	}
	wantList(t, "list", s.page(t, storage.Forward, storage.PageQuery{Owner: from, Limit: 9}), list)
	wantEqual(t, "counts", s.countsOf(t, from), counts)
}

func (s changes) TheTimeRisesWhenTheClockGoesBack(t *testing.T) {
	for _, time := range []int{-1000, 9, 10, 11, 12} {
		from, to := s.newUsers(t, 1)[0].ID, s.id()
		s.change(t, from, change(to, storage.Following, 10))
		got := s.change(t, from, change(to, storage.None, time))[0]
		want := storage.Edge{From: from, To: to, Type: storage.None, UpdateTime: at(max(time, 11))}
		wantAnswer(t, fmt.Sprintf("answer at %d", time), got, storage.Changed{Row: want, Changed: true})
		wantEqual(t, "row", s.edgeOf(t, storage.Forward, want.Pair()), want)
	}
}

func (s changes) EndingNothingWritesNothing(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, s.id()
	counts := s.countsOf(t, from)
	got := s.change(t, from, change(to, storage.None, 5))[0]
	wantAnswer(t, "answer", got, storage.Changed{Row: storage.Edge{From: from, To: to}})
	wantMissing(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, storage.Pair{From: from, To: to}), 1)
	wantEqual(t, "counts", s.countsOf(t, from), counts)
}

func (s changes) TheVersionRisesOnceWithACall(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, s.ids(6)
	for _, kind := range []storage.EdgeType{storage.Following, storage.Blocking, storage.None} {
		var batch []storage.EdgeChange
		for _, id := range to {
			batch = append(batch, storage.EdgeChange{To: id, Type: kind, Ends: storage.Blocking, At: at(1)})
		}
		before := s.countsOf(t, from).Version
		s.change(t, from, batch...)
		wantEqual(t, "version", s.countsOf(t, from).Version, before+1)
		s.change(t, from, batch...) // changes nothing
		wantEqual(t, "version after the same again", s.countsOf(t, from).Version, before+1)
	}
}

func (s changes) ChangesOfOneUserAreJudgedInTurn(t *testing.T) {
	from, to, other := s.newUsers(t, 1)[0].ID, s.id(), s.id()
	got := s.change(t, from,
		change(to, storage.None, 1), // nothing exists yet
		change(to, storage.Following, 2),
		change(other, storage.Following, 3),
		change(to, storage.Following, 4), // exists already
		change(to, storage.Blocking, 2),  // the clock stands still
		unblock(to, 1),                   // and goes back
		change(to, storage.Following, 9),
	)
	row := func(kind storage.EdgeType, time storage.Micros) storage.Edge {
		return storage.Edge{From: from, To: to, Type: kind, UpdateTime: time}
	}
	for i, want := range []storage.Changed{
		{Row: row(storage.None, 0)},
		{Row: row(storage.Following, at(2)), Changed: true},
		{Row: storage.Edge{From: from, To: other, Type: storage.Following, UpdateTime: at(3)}, Changed: true},
		{Row: row(storage.Following, at(2))},
		{Row: row(storage.Blocking, at(3)), Changed: true},
		{Row: row(storage.None, at(4)), Changed: true},
		{Row: row(storage.Following, at(9)), Changed: true},
	} {
		wantAnswer(t, fmt.Sprintf("answer %d", i), got[i], want)
	}
	wantEqual(t, "row", s.edgeOf(t, storage.Forward, got[6].Row.Pair()), got[6].Row)
	wantEqual(t, "count", s.countsOf(t, from).Following, 2)
}

func (s changes) OnlyWhatIsBeyondTheLimitIsRefused(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, s.ids(8)
	s.change(t, from, change(to[0], storage.Following, 1), change(to[1], storage.Following, 1))
	results := s.store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{
		change(to[0], storage.Following, 2), // exists already
		change(to[2], storage.Following, 2),
		change(to[3], storage.Following, 2),
		change(to[4], storage.Following, 2), // beyond the limit
		change(to[5], storage.Blocking, 2),  // is not a follow
		change(to[1], storage.Following, 2), // exists already
		change(to[4], storage.None, 2),      // ends nothing
		change(to[6], storage.Following, 2), // beyond the limit
	}, storage.ChangeOptions{MaxFollowing: 4})
	wantLimited(t, results, 3, 7)
	wantChanged(t, results, false, true, true, false, true, false, false, false)
	wantFound(t, storage.EdgeLookups[storage.Forward].Read(t.Context(), s.store, pairsFrom(from, to...)...),
		true, true, true, true, false, true, false, false)
	wantEqual(t, "count", s.countsOf(t, from).Following, 4)
}

func (s changes) EndingAFollowMakesRoom(t *testing.T) {
	for _, kind := range []storage.EdgeType{storage.None, storage.Blocking} {
		from, to := s.newUsers(t, 1)[0].ID, s.ids(4)
		two := storage.ChangeOptions{MaxFollowing: 2}
		s.change(t, from, change(to[0], storage.Following, 1), change(to[1], storage.Following, 1))
		results := s.store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{
			change(to[2], storage.Following, 2), // too early
			change(to[0], kind, 2),
			change(to[2], storage.Following, 2),
			change(to[3], storage.Following, 2), // beyond the limit again
		}, two)
		wantLimited(t, results, 0, 3)
		wantChanged(t, results, false, true, true, false)

		s.change(t, from, change(to[1], kind, 3))
		wantLimited(t, s.store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{change(to[3], storage.Following, 4)}, two))
		wantEqual(t, "count", s.countsOf(t, from).Following, 2)
	}
}

func (s changes) ALowerLimitEndsNothing(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, s.ids(5)
	for _, id := range to[:4] {
		s.change(t, from, change(id, storage.Following, 1))
	}
	results := s.store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{
		change(to[0], storage.Following, 2),
		change(to[1], storage.None, 2),
		change(to[4], storage.Following, 2),
		change(to[1], storage.Following, 3),
	}, storage.ChangeOptions{MaxFollowing: 2})
	wantLimited(t, results, 2, 3)
	wantChanged(t, results, false, true, false, false)
	wantEqual(t, "count", s.countsOf(t, from).Following, 3)
}

func (s changes) EverythingMayBeBeyondTheLimit(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, s.ids(4)
	one := storage.ChangeOptions{MaxFollowing: 1}
	s.change(t, from, change(to[0], storage.Following, 1))
	counts := s.countsOf(t, from)
	results := s.store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{
		change(to[1], storage.Following, 2), change(to[2], storage.Following, 2), change(to[3], storage.Following, 2),
	}, one)
	wantLimited(t, results, 0, 1, 2)
	wantEqual(t, "counts", s.countsOf(t, from), counts)
}

func (s changes) NobodyChangesNothing(t *testing.T) {
	from, to := s.id(), s.ids(3)
	results := s.store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{
		change(to[0], storage.Following, 1), change(to[1], storage.Blocking, 1), change(to[2], storage.None, 1),
	}, storage.ChangeOptions{Inverse: true})
	for i, result := range results {
		wantIs(t, result.Err, storage.ErrUserUnknown)
		wantAnswer(t, "value", results[i].Value, storage.Changed{})
		wantEqual(t, "found", result.Found, false)
	}
	eachSide(t, func(t *testing.T, side storage.Side) {
		wantMissing(t, storage.EdgeLookups[side].Read(t.Context(), s.store, pairsFrom(from, to...)...), 3)
	})
	wantMissing(t, storage.CountLookups.Read(t.Context(), s.store, append(to, from)...), 4)
}

// A change needs counts, but no user.
func (s changes) WhoeverHasCountsMayChange(t *testing.T) {
	from, to := s.id(), s.ids(2)
	s.apply(t, storage.Inverse, follow(storage.Inverse, from, to[0], 1))
	wantEqual(t, "changed", s.change(t, from, change(to[1], storage.Following, 2))[0].Changed, true)
	wantEqual(t, "count", s.countsOf(t, from).Following, 1)
}

// These are more changes than an engine puts into one statement of rows. Then half of them are
// undone, among as many new ones.
func (s changes) FiveHundredChangesAreOneCall(t *testing.T) {
	const n = 500
	from, to := s.newUsers(t, 1)[0].ID, s.ids(n+n/2)
	before := s.countsOf(t, from).Version
	batch := make([]storage.EdgeChange, n)
	for i := range batch {
		batch[i] = change(to[i], storage.Following, i)
	}
	for i, got := range s.change(t, from, batch...) {
		wantAnswer(t, "answer", got, storage.Changed{
			Row:     storage.Edge{From: from, To: to[i], Type: storage.Following, UpdateTime: at(i)},
			Changed: true,
		})
	}
	wantEqual(t, "count", s.countsOf(t, from).Following, n)

	for i := range batch {
		batch[i] = change(to[n/2+i], storage.Following, n+i) // the first half of them exists
		if i%5 == 0 {
			batch[i].Type = storage.None
		}
	}
	for i, got := range s.change(t, from, batch...) {
		want := i < n/2 == (i%5 == 0)
		check.That(t, got.Changed == want, "change %d: changed is %v, want %v", i, got.Changed, want)
	}
	got := s.countsOf(t, from)
	wantEqual(t, "count", got.Following, n-n/10+n/2*4/5)
	wantEqual(t, "version", got.Version, before+2)
	wantEqual(t, "length", int64(len(found(t, storage.NeighbourLookups[storage.Forward].Read(t.Context(), s.store, from), 1)[0])), got.Following)
}

func (s changes) LateEventsAreIgnored(t *testing.T) {
	from, to := s.newUsers(t, 1)[0].ID, s.id()
	s.apply(t, storage.Forward, storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: at(50)})
	row := s.change(t, from, change(to, storage.None, 1))[0].Row // the given time is earlier
	wantEqual(t, "time", row.UpdateTime, at(51))
	for _, time := range []int{1, 50, 51} {
		late := storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: at(time)}
		wantApplied(t, "late event", s.apply(t, storage.Forward, late)[0], storage.Changed{Row: row})
	}
	wantEqual(t, "count", s.countsOf(t, from).Following, 0)
}

func (s changes) NobodyElseIsChanged(t *testing.T) {
	users := idsOf(s.newUsers(t, 3))
	s.change(t, users[1], change(users[0], storage.Following, 1))
	rest := found(t, storage.CountLookups.Read(t.Context(), s.store, users[1:]...), 2)
	s.change(t, users[0], change(users[1], storage.Following, 2), change(users[2], storage.Blocking, 2))
	wantList(t, "counts", found(t, storage.CountLookups.Read(t.Context(), s.store, users[1:]...), 2), rest)
	wantEqual(t, "the edge towards the user", s.edgeOf(t, storage.Forward, storage.Pair{From: users[1], To: users[0]}).UpdateTime, at(1))
}

// change is one change of a call, at the n-th microsecond.
func change(to storage.UserID, kind storage.EdgeType, n int) storage.EdgeChange {
	return storage.EdgeChange{To: to, Type: kind, At: at(n)}
}

// unblock ends a block, at the n-th microsecond.
func unblock(to storage.UserID, n int) storage.EdgeChange {
	return storage.EdgeChange{To: to, Type: storage.None, Ends: storage.Blocking, At: at(n)}
}

// block is a block, at the n-th microsecond.
func block(to storage.UserID, n int) storage.EdgeChange { return change(to, storage.Blocking, n) }

// change changes edges of a user without limit or inverse side.
func (h *harness) change(t *testing.T, from storage.UserID, batch ...storage.EdgeChange) []storage.Changed {
	t.Helper()
	return h.changeWith(t, from, storage.ChangeOptions{}, batch...)
}

func (h *harness) changeWith(t *testing.T, from storage.UserID, o storage.ChangeOptions, batch ...storage.EdgeChange) []storage.Changed {
	t.Helper()
	return found(t, h.store.ChangeEdges(t.Context(), storage.Forward, from, batch, o), len(batch))
}

// wantLimited checks that exactly these changes were refused by the limit.
func wantLimited(t *testing.T, results []storage.Result[storage.Changed], refused ...int) {
	t.Helper()
	wantOnlyRefused(t, storage.ErrLimitReached, results, refused...)
}

// wantOnlyRefused checks that exactly these changes were refused, for a reason.
func wantOnlyRefused(t *testing.T, reason error, results []storage.Result[storage.Changed], refused ...int) {
	t.Helper()
	for i, result := range results {
		if len(refused) > 0 && refused[0] == i {
			refused = refused[1:]
			wantIs(t, result.Err, reason)
			wantEqual(t, "found", result.Found, false)
			wantAnswer(t, "value", result.Value, storage.Changed{})
		} else if result.Err != nil || !result.Found {
			t.Errorf("change %d: got %+v", i, result)
		}
	}
	check.That(t, len(refused) == 0, "%d results", len(results))
}

func wantChanged(t *testing.T, results []storage.Result[storage.Changed], want ...bool) {
	t.Helper()
	got := storage.Each(results, func(r storage.Result[storage.Changed]) bool { return r.Value.Changed })
	wantList(t, "changed", got, want)
}

func pairsFrom(from storage.UserID, to ...storage.UserID) []storage.Pair {
	return storage.Each(to, func(id storage.UserID) storage.Pair { return storage.Pair{From: from, To: id} })
}
