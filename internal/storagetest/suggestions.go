package storagetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"kith/internal/must"
	"kith/storage"
	"kith/storage/finding"
)

// popular: the users with the most followers among those who have been active. Its answers depend on
// all users, so most promises have a store of their own.
type popular struct {
	*harness
	open func(t *testing.T) storage.Store
}

const dayLength storage.Micros = 24 * 3600 * 1_000_000

// day is a moment of the n-th day of the suite's time.
func day(n int) storage.Micros { return at(0) + storage.Micros(n)*dayLength }

func (s popular) TheMostFollowedComeFirst(t *testing.T) {
	own := &harness{store: opened(t, s.open)}
	ids := own.ids(24)
	followers := make(map[storage.UserID]int64)
	for i, id := range ids {
		own.madeOn(t, id, 1)
		for range []int{1, 2, 3, 12}[i%4] { // compared digit by digit, 12 is less than 2
			own.apply(t, storage.Inverse, follow(storage.Inverse, id, own.id(), 1))
			followers[id]++
		}
	}
	slices.SortFunc(ids, func(a, b storage.UserID) int {
		return cmp.Or(cmp.Compare(followers[b], followers[a]), cmp.Compare(a, b))
	})
	want := make([]finding.PopularUser, len(ids))
	for i, id := range ids {
		want[i] = finding.PopularUser{User: id, Followers: followers[id]}
	}
	for _, limit := range []int{1, 5, len(ids) - 1, len(ids), 100} {
		wantList(t, "popular users", own.popular(t, 1, limit), want[:min(limit, len(want))])
	}
}

// A user without a follower is not listed, even if there was one before. Nor is a user who does not exist.
func (s popular) NobodyWithoutFollowersIsListed(t *testing.T) {
	own := &harness{store: opened(t, s.open)}
	never, left, known, nobody := own.id(), own.id(), own.id(), own.id()
	follower := own.id()
	for _, id := range []storage.UserID{never, left, known} {
		own.madeOn(t, id, 1)
	}
	for _, id := range []storage.UserID{left, known, nobody} {
		own.apply(t, storage.Inverse, follow(storage.Inverse, id, follower, 1))
	}
	own.apply(t, storage.Inverse, edge(storage.Inverse, left, follower, storage.None, at(2)))
	wantList(t, "popular users", own.popular(t, 1, 10), []finding.PopularUser{{User: known, Followers: 1}})
}

func (s popular) OnlyTheActiveAreListed(t *testing.T) {
	own := &harness{store: opened(t, s.open)}
	acts := map[string]func(id storage.UserID, n int){
		"follow": func(id storage.UserID, n int) {
			own.change(t, id, storage.EdgeChange{To: own.id(), Type: storage.Following, At: day(n)})
		},
		"block": func(id storage.UserID, n int) {
			own.change(t, id, storage.EdgeChange{To: own.id(), Type: storage.Blocking, At: day(n)})
		},
		"request": func(id storage.UserID, n int) {
			request := storage.Pair{From: id, To: own.id()}
			messages{own}.act(t, request, storage.EdgeChange{Type: storage.Pending, At: day(n)})
		},
		"profile": func(id storage.UserID, n int) {
			name := "B"
			_, _, err := own.store.UpdateProfile(t.Context(), id, storage.ProfileChange{Name: &name}, day(n))
			must.OK(t, err)
		},
		"post": func(id storage.UserID, n int) {
			_, _, err := own.store.Publish(t.Context(), storage.PostRow{PostID: storage.PostID{Author: id, Number: int64(n)}, Key: fmt.Sprint(n), Text: "A", At: day(n)})
			must.OK(t, err)
		},
		"posts, restored": func(id storage.UserID, n int) {
			var rows []storage.PostRow
			for _, at := range []int{n - 1, n, n - 2} {
				rows = append(rows, storage.PostRow{PostID: storage.PostID{Author: id, Number: int64(10*n + at)}, Key: fmt.Sprint(10*n + at), Text: "A", At: day(at)})
			}
			gone := storage.PostRow{PostID: storage.PostID{Author: id, Number: int64(n)}, Key: fmt.Sprint(n), At: day(n + 1), Deleted: true}
			must.All(t, own.store.Restore(t.Context(), storage.Restored{Posts: append(rows, gone)}))
		},
		"mark":         func(id storage.UserID, n int) { own.markActive(t, n, id) },
		"registration": func(storage.UserID, int) {},
		"a new follower, brought": func(id storage.UserID, n int) {
			own.apply(t, storage.Inverse, edge(storage.Inverse, id, own.id(), storage.Following, day(n)))
		},
		"a new follower, in the call": func(id storage.UserID, n int) {
			follower := own.id()
			own.madeOn(t, follower, 1)
			one := []storage.EdgeChange{{To: id, Type: storage.Following, At: day(n)}}
			changed := answers(t, own.store.ChangeEdges(t.Context(), storage.Forward, follower, one, storage.ChangeOptions{Inverse: true}), 1)[0]
			if !changed.Inverse { // the inverse row is on another shard and has to be applied there
				own.apply(t, storage.Inverse, changed.Row)
			}
		},
		"new followers, in bulk": func(id storage.UserID, n int) {
			followers := make([]storage.Edge, 300)
			for i := range followers {
				followers[i] = edge(storage.Inverse, id, own.id(), storage.Following, day(n))
			}
			own.apply(t, storage.Inverse, followers...)
		},
	}
	for what, act := range acts {
		t.Run(what, func(t *testing.T) {
			id := own.id()
			if what == "registration" {
				user := person(id)
				user.CreatedAt = day(7)
				own.register(t, user)
				own.apply(t, storage.Inverse, follow(storage.Inverse, id, own.id(), 1))
			} else {
				own.madeOn(t, id, 1)
				own.apply(t, storage.Inverse, follow(storage.Inverse, id, own.id(), 1))
				wantEqual(t, "active after it was made", own.isPopular(t, id, 1), true)
				wantEqual(t, "active the day after", own.isPopular(t, id, 2), false)
			}
			act(id, 7)
			wantEqual(t, "active that day", own.isPopular(t, id, 7), true)
			wantEqual(t, "active before that day", own.isPopular(t, id, 3), true)
			wantEqual(t, "active the day after", own.isPopular(t, id, 8), false)

			act(id, 4) // with a clock that is behind
			wantEqual(t, "active that day", own.isPopular(t, id, 7), true)
		})
	}
}

// An end, a follow that already exists, or another's acceptance of a request makes nobody active.
func (s popular) OnlyNewFollowsMakeActive(t *testing.T) {
	id, follower, blocked, asked := s.id(), s.id(), s.id(), s.id()
	s.madeOn(t, id, 1)
	s.change(t, id, storage.EdgeChange{To: asked, Type: storage.Requested, At: day(2)})
	s.change(t, id, storage.EdgeChange{To: asked, Type: storage.Following, Ends: storage.Requested, At: day(12)})
	s.apply(t, storage.Inverse, follow(storage.Inverse, id, follower, 1), follow(storage.Inverse, id, s.id(), 1))
	s.apply(t, storage.Inverse, edge(storage.Inverse, id, follower, storage.Following, day(9))) // a newer time
	s.apply(t, storage.Inverse, edge(storage.Inverse, id, follower, storage.None, day(10)))
	s.apply(t, storage.Inverse, edge(storage.Inverse, id, blocked, storage.Blocking, day(11)))
	wantEqual(t, "active at first", s.isPopular(t, id, 1), true)
	wantEqual(t, "active later", s.isPopular(t, id, 4), false)
}

func (s popular) MarkingChangesNothingElse(t *testing.T) {
	user, edgesOnly, nobody := s.id(), s.id(), s.id()
	s.madeOn(t, user, 1)
	for _, id := range []storage.UserID{user, edgesOnly} {
		s.apply(t, storage.Inverse, follow(storage.Inverse, id, s.id(), 1))
	}
	before := [2]storage.Counts{s.countsOf(t, user), s.countsOf(t, edgesOnly)}
	s.markActive(t, 9, nobody, user, user, edgesOnly)
	s.markActive(t, 9)
	wantEqual(t, "active", s.isPopular(t, user, 9), true)
	wantEqual(t, "counts", [2]storage.Counts{s.countsOf(t, user), s.countsOf(t, edgesOnly)}, before)
	wantMissing(t, storage.CountLookups.Read(t.Context(), s.store, nobody), 1)
	many := make([]storage.UserID, 1000)
	for i := range many {
		many[i] = s.id()
	}
	s.markActive(t, 12, append(many, user)...)
	wantEqual(t, "active, marked with many", s.isPopular(t, user, 12), true)
}

// Users of the greatest classes are read first, and within a class the most recently active.
func (s popular) TheMostFollowedAreLookedAt(t *testing.T) {
	own := &harness{store: opened(t, s.open)}
	famous, early := own.idOn(t, 0), own.idOn(t, 0)
	own.madeOn(t, famous, 1)
	own.madeOn(t, early, 1)
	others := make([]storage.User, finding.PopularSample-1)
	var followers []storage.Edge
	for i := range others {
		others[i] = person(own.idOn(t, 0))
		others[i].CreatedAt = day(2)
		followers = append(followers, follow(storage.Inverse, others[i].ID, own.id(), 1))
	}
	followers = append(followers, follow(storage.Inverse, famous, own.id(), 1), follow(storage.Inverse, famous, own.id(), 1), follow(storage.Inverse, early, own.id(), 1))
	noErrors(t, own.store.CreateUsers(t.Context(), others), len(others))
	noErrors(t, own.store.Apply(t.Context(), storage.Inverse, followers, storage.IfNewer), len(followers))
	all := own.popular(t, 1, 10*finding.PopularSample)
	wantEqual(t, "users looked at", len(all), finding.PopularSample)
	wantEqual(t, "the most followed", all[0], finding.PopularUser{User: famous, Followers: 2})
	wantEqual(t, "listed beyond the sample", slices.ContainsFunc(all, isUser(early)), false)
	own.markActive(t, 3, early)
	wantEqual(t, "listed, as the most recently active", own.isPopular(t, early, 1), true)
}

// madeOn makes a user on a day.
func (h *harness) madeOn(t *testing.T, id storage.UserID, n int) {
	t.Helper()
	user := person(id)
	user.CreatedAt = day(n)
	answers(t, h.store.CreateUsers(t.Context(), []storage.User{user}), 1)
}

func (h *harness) markActive(t *testing.T, n int, ids ...storage.UserID) {
	t.Helper()
	must.OK(t, h.store.MarkActive(t.Context(), ids, day(n).Day()))
}

func (h *harness) popular(t *testing.T, n, limit int) []finding.PopularUser {
	t.Helper()
	return h.popularSince(t, day(n).Day(), limit)
}

func (h *harness) popularSince(t *testing.T, since storage.Day, limit int) []finding.PopularUser {
	t.Helper()
	return one(t, h, finding.PopularLookups, finding.PopularQuery{Since: since, Limit: limit})
}

// isPopular reports whether a user is among those who have been active since a day.
func (h *harness) isPopular(t *testing.T, id storage.UserID, n int) bool {
	t.Helper()
	return slices.ContainsFunc(h.popular(t, n, 10*finding.PopularSample), isUser(id))
}

func isUser(id storage.UserID) func(finding.PopularUser) bool {
	return func(p finding.PopularUser) bool { return p.User == id }
}
