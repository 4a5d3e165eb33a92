package social

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/storage"
	"kith/storage/memory"
)

// people is how many users the random graphs have: few, so that lists overlap.
const people = 24

// drawGraph fills a store with random edges, tombstones and blocks among them, the
// same on both sides.
func drawGraph(t *rapid.T) (*memory.Store, []storage.Edge) {
	// Drawn one by one, edges come out few: rapid prefers short lists.
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	density := rapid.IntRange(0, 100).Draw(t, "density")
	types := []storage.EdgeType{storage.Following, storage.Following, storage.Following, storage.None, storage.Blocking}
	var edges []storage.Edge
	for from := storage.UserID(1); from <= people; from++ {
		for to := storage.UserID(1); to <= people; to++ {
			if from != to && r.IntN(100) < density {
				edges = append(edges, storage.Edge{From: from, To: to, Type: types[r.IntN(len(types))], UpdateTime: storage.Micros(1 + r.IntN(40))})
			}
		}
	}
	store := memory.New()
	store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	return store, edges
}

// drawPlanner makes a graph that reads so little at a time, and has so small a
// budget, that every way through the plans is taken.
func drawPlanner(t *rapid.T, store Reader) *Graph {
	return &Graph{
		store:     store,
		budget:    Budget(rapid.SampledFrom([]int{1, 2, 5, 10, 30, 1000}).Draw(t, "budget")),
		firstLook: rapid.IntRange(1, 12).Draw(t, "first look"),
		stride:    rapid.IntRange(1, 12).Draw(t, "stride"),
		maxPool:   rapid.IntRange(1, 30).Draw(t, "pool"),
	}
}

// listOf is a list by brute force, ascending.
func listOf(edges []storage.Edge, l List) []storage.UserID {
	var ids []storage.UserID
	for _, e := range edges {
		if e.Type == storage.Following && l.Side.Owner(e.Pair()) == l.Owner {
			ids = append(ids, l.Side.Peer(e.Pair()))
		}
	}
	slices.Sort(ids)
	return ids
}

func drawList(t *rapid.T, name string) List {
	return List{
		Side:  rapid.SampledFrom([]storage.Side{storage.Forward, storage.Inverse}).Draw(t, name+" side"),
		Owner: storage.UserID(rapid.IntRange(1, people).Draw(t, name)),
	}
}

// Paging through an intersection gives exactly what both lists have, whatever the
// plan, the pages and the budget.
func TestIntersectIsTheIntersection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, edges := drawGraph(t)
		g := drawPlanner(t, store)
		a, b := drawList(t, "a"), drawList(t, "b")
		inB := listOf(edges, b)
		want := slices.DeleteFunc(listOf(edges, a), func(id storage.UserID) bool { return !slices.Contains(inB, id) })

		var got []storage.UserID
		var from Mark
		for page := 0; ; page++ {
			first := rapid.IntRange(0, 5).Draw(t, "first")
			if page > 500 {
				first = 5 // no end of pages of 0
			}
			c, err := g.Intersect(t.Context(), a, b, from, first)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.IDs) > first || c.Total < len(got)+len(c.IDs) || c.Complete && c.Total != len(want) {
				t.Fatalf("page %d of at most %d: %+v; want %v in all", page, first, c, want)
			}
			if !c.Complete && !c.More {
				t.Fatalf("page %d ends incomplete", page)
			}
			got = append(got, c.IDs...)
			if first == 0 && c.Complete == false && c.Next.After > from.After {
				// Asked for the count alone, it goes on behind what has been counted.
				for _, id := range want {
					if id > from.After && id <= c.Next.After {
						got = append(got, id)
					}
				}
			}
			if !c.More {
				if !c.Complete {
					t.Fatal("the last page is not complete")
				}
				break
			}
			if page > 5000 {
				t.Fatal("no end")
			}
			from = c.Next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// Friends come newest following first, with the later time of both follows.
func TestFriendsAreMutualFollows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, edges := drawGraph(t)
		g := drawPlanner(t, store)
		user := storage.UserID(rapid.IntRange(1, people).Draw(t, "user"))
		want := friendsOf(edges, user)

		var got []Friend
		var from FriendMark
		for page := 0; ; page++ {
			first := rapid.IntRange(1, 5).Draw(t, "first")
			f, err := g.Friends(t.Context(), user, from, first)
			if err != nil {
				t.Fatal(err)
			}
			if f.Complete && f.Total != len(want) || !f.Complete && !f.More {
				t.Fatalf("page %d: %+v; want %d friends in all", page, f, len(want))
			}
			got = append(got, f.Friends...)
			if !f.More {
				break
			}
			if page > 5000 {
				t.Fatal("no end")
			}
			from = f.Next
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func friendsOf(edges []storage.Edge, user storage.UserID) []Friend {
	follows := map[storage.Pair]storage.Micros{}
	for _, e := range edges {
		if e.Type == storage.Following {
			follows[e.Pair()] = e.UpdateTime
		}
	}
	var friends []Friend
	for p, at := range follows {
		if back, ok := follows[storage.Pair{From: p.To, To: p.From}]; ok && p.From == user {
			friends = append(friends, Friend{p.To, max(at, back), storage.Position{UpdateTime: at, Peer: p.To}})
		}
	}
	slices.SortFunc(friends, func(a, b Friend) int { return a.At.Compare(b.At) })
	return friends
}

// With budget enough, suggestions are the exact ranking; with less, every one is
// true as far as it goes, and all followings are asked in the end.
func TestSuggestionsAreRankedByMutualCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, edges := drawGraph(t)
		g := drawPlanner(t, store)
		user := storage.UserID(rapid.IntRange(1, people).Draw(t, "user"))
		want := suggestionsOf(edges, user)

		var got []Suggestion
		var from SuggestionMark
		onePool := true
		for page := 0; ; page++ {
			s, err := g.Suggest(t.Context(), user, from, rapid.IntRange(1, 5).Draw(t, "first"), people)
			if err != nil {
				t.Fatal(err)
			}
			onePool = onePool && s.Complete
			for _, one := range s.Suggestions {
				full, ok := want[one.ID]
				if !ok || one.Mutual > len(full) || one.Mutual != len(one.Via) {
					t.Fatalf("%+v is suggested, want one of %v", one, want)
				}
				for _, via := range one.Via {
					if !slices.Contains(full, via) {
						t.Fatalf("%d does not speak for %d", via, one.ID)
					}
				}
			}
			got = append(got, s.Suggestions...)
			if !s.More {
				if !s.Complete {
					t.Fatal("the last page is not complete")
				}
				break
			}
			if page > 5000 {
				t.Fatal("no end")
			}
			from = s.Next
		}
		votes := map[storage.UserID]int{}
		for _, one := range got {
			votes[one.ID] += one.Mutual
		}
		for id, full := range want {
			if votes[id] != len(full) {
				t.Fatalf("candidate %d got %d votes of %d", id, votes[id], len(full))
			}
		}
		if onePool && !slices.IsSortedFunc(got, better) {
			t.Fatalf("not in order: %v", got)
		}
	})
}

// suggestionsOf tells by brute force who speaks for each candidate.
func suggestionsOf(edges []storage.Edge, user storage.UserID) map[storage.UserID][]storage.UserID {
	followings := listOf(edges, List{storage.Forward, user})
	want := map[storage.UserID][]storage.UserID{}
	for _, f := range followings {
		for _, candidate := range listOf(edges, List{storage.Forward, f}) {
			if candidate != user && !slices.Contains(followings, candidate) {
				want[candidate] = append(want[candidate], f)
			}
		}
	}
	for _, via := range want {
		slices.SortFunc(via, cmp.Compare)
	}
	return want
}
