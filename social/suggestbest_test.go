package social

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// visible is a graph as an audience may see it.
type visible struct {
	store *oracle.Store
	rows  map[storage.UserID]storage.User
	*Audience
}

// opens reports whether the followings of a user are used.
func (v visible) opens(id storage.UserID) bool {
	mine := listOf(v.store, List{storage.Forward, v.Viewer})
	return !v.Hides(id) && v.Opens(List{storage.Forward, id}, v.rows[id], slices.Contains(mine, id))
}

// best ranks everybody by the walk, by brute force.
func (v visible) best(q SuggestionQuery) (list []Suggestion) {
	followings, fans := listOf(v.store, List{storage.Forward, q.User}), listOf(v.store, List{storage.Inverse, q.User})
	alike := map[storage.UserID]int{}
	var open, audience []storage.UserID
	for _, w := range followings {
		if v.opens(w) {
			open = append(open, w)
		}
		fansOfW := listOf(v.store, List{storage.Inverse, w})
		for _, x := range fansOfW {
			if x != q.User && v.opens(x) && !v.Hides(w) {
				if alike[x] == 0 {
					audience = append(audience, x)
				}
				alike[x] += int(65536 / math.Sqrt(float64(len(fansOfW))))
			}
		}
	}
	slices.SortFunc(audience, func(a, b storage.UserID) int { return cmp.Or(alike[b]-alike[a], cmp.Compare(a, b)) })
	share, sum := map[storage.UserID]float64{}, 0.0
	for _, x := range audience {
		n := float64(max(1, len(listOf(v.store, List{storage.Forward, x})))) // the two sides of a drawn edge may differ
		share[x] = float64(alike[x]) * float64(alike[x]) / (n * math.Sqrt(n))
		sum += share[x]
	}
	all := map[storage.UserID]Suggestion{}
	vote := func(voter storage.UserID, votes int64) {
		for _, c := range listOf(v.store, List{storage.Forward, voter}) {
			one := all[c]
			one.ID = c
			one.Score += votes
			all[c] = one
		}
	}
	for _, w := range open {
		vote(w, int64(200_000/len(open)))
	}
	for _, x := range audience {
		vote(x, max(1, int64(1_000_000*share[x]/sum)))
	}
	for id, c := range all {
		if id == q.User || slices.Contains(followings, id) || v.Hides(id) || slices.Contains(q.Dismissed, id) || v.rows[id].Undiscoverable {
			continue
		}
		if c.FollowsUser = q.OpenFollowers && slices.Contains(fans, id); c.FollowsUser {
			c.Score *= 3
		}
		for _, w := range open {
			if slices.Contains(listOf(v.store, List{storage.Forward, w}), id) {
				c.Via = append(c.Via, w)
			}
		}
		c.Shared = len(c.Via)
		list = append(list, c)
	}
	return list
}

// ranked has those first who are active, of the best at most n.
func ranked(list []Suggestion, n int, active func(storage.UserID) bool) []Suggestion {
	slices.SortFunc(list, better)
	for i := range list[:min(n, len(list))] {
		if active(list[i].ID) {
			list[i].Score += activeScore
		}
	}
	slices.SortFunc(list, better)
	return list
}

// The best order is that of the walk over the edges that the audience may see, on whatever pages, from rows as from lists in memory.
func TestTheBestOrderIsTheWalk(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) {
		store := drawGraph(t)
		rows := drawPeople(t, store)
		g := drawPlanner(t, store)
		g.budget, g.sizes.maxPool = 10_000, people
		q := SuggestionQuery{
			User: storage.UserID(rapid.IntRange(1, people).Draw(t, "user")), Via: people, Best: true,
			OpenFollowers: rapid.Bool().Draw(t, "open followers"), Dismissed: []storage.UserID{3, 11},
		}
		isActive := func(id storage.UserID) bool { return id%3 == 0 }
		if rapid.Bool().Draw(t, "activity is known") {
			q.Active = func(_ context.Context, ids []storage.UserID) []bool { return storage.Each(ids, isActive) }
		} else {
			isActive = func(storage.UserID) bool { return false }
		}
		want := ranked(visible{store, rows, g.audience}.best(q), activeAmong, isActive)
		if len(listOf(store, List{storage.Forward, q.User})) == 0 {
			return // who gets the popular
		}
		var got []Suggestion
		for more := true; more; {
			q.First = rapid.IntRange(1, 5).Draw(t, "first")
			s, err := g.Suggest(t.Context(), q)
			must.That(t, err == nil && s.Complete, "%+v, %v", s, err)
			got, more, q.From = append(got, s.Suggestions...), s.More, s.Next
		}
		equal := func(a, b Suggestion) bool {
			return a.ID == b.ID && a.Score == b.Score && a.Shared == b.Shared && a.FollowsUser == b.FollowsUser && slices.Equal(a.Via, b.Via)
		}
		must.That(t, slices.EqualFunc(got, want, equal), "suggested to %d are\n%+v, want\n%+v", q.User, got, want)
	})
}

// With a small budget, pages end, every suggestion is one, and who follows the user is boosted as with a great one.
func TestTheBestOrderKeepsItsBudget(t *testing.T) {
	properties.Check(t, 100, func(t *rapid.T) {
		store := drawGraph(t)
		rows := drawPeople(t, store)
		g := drawPlanner(t, store)
		q := SuggestionQuery{User: storage.UserID(rapid.IntRange(1, people).Draw(t, "user")), Via: people, Best: true, OpenFollowers: true, First: 3}
		possible := map[storage.UserID]Suggestion{}
		for _, one := range (visible{store, rows, g.audience}).best(q) {
			possible[one.ID] = one
		}
		for page := 0; ; page++ {
			s, err := g.Suggest(t.Context(), q)
			must.That(t, err == nil && page <= 1000, "page %d: %+v, %v", page, s, err)
			for _, one := range s.Suggestions {
				full, ok := possible[one.ID]
				must.That(t, ok && one.Shared <= full.Shared && (!one.FollowsUser || full.FollowsUser), "%+v is suggested, %+v is possible", one, full)
			}
			if !s.More {
				break
			}
			q.From = s.Next
		}
	})
}

// Behind the best fifty, users come by score alone, and none twice.
func TestOnlyTheBestAreOrderedByActivity(t *testing.T) {
	store := oracle.New()
	edges := []storage.Edge{{From: 1, To: 2, Type: storage.Following, UpdateTime: 1}}
	for id := storage.UserID(1000); id < 1250; id++ {
		edges = append(edges, storage.Edge{From: 2, To: id, Type: storage.Following, UpdateTime: 1})
	}
	store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	q := SuggestionQuery{User: 1, First: 30, Best: true, Active: func(_ context.Context, ids []storage.UserID) []bool {
		return storage.Each(ids, func(id storage.UserID) bool { return id%2 == 1 })
	}}
	var got []storage.UserID
	for more := true; more; {
		s, err := New(store, 0, nil).Suggest(t.Context(), q)
		must.OK(t, err)
		for _, one := range s.Suggestions {
			got = append(got, one.ID)
		}
		more, q.From = s.More, s.Next
	}
	var want []storage.UserID
	for odd := 1; odd >= 0; odd-- {
		for id := 1000 + odd; id < 1050; id += 2 {
			want = append(want, storage.UserID(id))
		}
	}
	for id := storage.UserID(1050); id < 1250; id++ {
		want = append(want, id)
	}
	check.Equal(t, "suggested", got, want)
}

// Edges that are on closed lists only are exchanged, which changes no public figure. No answer to somebody else changes.
func TestTheWalkSeesNoHiddenEdge(t *testing.T) {
	changed := 0
	properties.Check(t, 200, func(t *rapid.T) {
		store := drawGraph(t)
		rows := drawPeople(t, store)
		var closed []storage.UserID
		for id, row := range rows {
			if row.FollowingsVisibility == storage.ToNobody {
				closed = append(closed, id)
			}
		}
		slices.Sort(closed)
		audience := NewAudience(storage.UserID(rapid.IntRange(1, people).Draw(t, "viewer")), nil, nil)
		closed = slices.DeleteFunc(closed, func(id storage.UserID) bool { return id == audience.Viewer })
		if len(closed) < 2 {
			return
		}
		ask := func() (answers []any) {
			for id := storage.UserID(1); id <= people; id++ {
				g := New(store, 0, audience)
				if id != audience.Viewer && rows[id].FollowingsVisibility != storage.ToEveryone {
					continue
				}
				s, err := g.Suggest(t.Context(), SuggestionQuery{User: id, First: people, Via: people, Best: true})
				like, complete, err2 := g.Similar(t.Context(), id)
				must.OK(t, errors.Join(err, err2))
				answers = append(answers, s.Suggestions, s.Excluded, s.Complete, s.More)
				if !slices.ContainsFunc(listOf(store, List{storage.Inverse, id}), func(f storage.UserID) bool { return slices.Contains(closed, f) }) { // else its list of followers would have to be closed
					answers = append(answers, like, complete)
				}
			}
			return answers
		}
		before := ask()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "exchange"), 0))
		a, b := closed[0], closed[1]
		onlyA := others(listOf(store, List{storage.Forward, a}), listOf(store, List{storage.Forward, b}), b)
		onlyB := others(listOf(store, List{storage.Forward, b}), listOf(store, List{storage.Forward, a}), a)
		if len(onlyA) == 0 || len(onlyB) == 0 {
			return
		}
		x, y := onlyA[r.IntN(len(onlyA))], onlyB[r.IntN(len(onlyB))]
		if x == audience.Viewer || y == audience.Viewer {
			return // who sees its own followers
		}
		var edges []storage.Edge
		for _, p := range []storage.Pair{{From: a, To: x}, {From: b, To: y}} {
			edges = append(edges, p.Edge(storage.None, 100))
		}
		for _, p := range []storage.Pair{{From: a, To: y}, {From: b, To: x}} {
			edges = append(edges, p.Edge(storage.Following, 100))
		}
		store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
		store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
		for _, p := range []storage.Pair{{From: a, To: y}, {From: b, To: x}} {
			if !slices.Contains(listOf(store, List{storage.Forward, p.From}), p.To) || !slices.Contains(listOf(store, List{storage.Inverse, p.To}), p.From) {
				return // a block has kept it out, so the figures are others
			}
		}
		changed++
		after := ask()
		must.That(t, reflect.DeepEqual(before, after), "viewer %d, %d>%d %d>%d: %v\n%+v\nafter:\n%+v", audience.Viewer, a, x, b, y, closed, before, after)
	})
	check.Least(t, "edges that were exchanged", changed, 1)
}

// others are the users of a list who are not on another, nor a user themselves.
func others(list, than []storage.UserID, nor storage.UserID) []storage.UserID {
	return slices.DeleteFunc(slices.Clone(list), func(id storage.UserID) bool { return id == nor || slices.Contains(than, id) })
}
