package social

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// people is how many users the random graphs have. They are few, so that lists overlap.
const people = 24

// drawGraph fills a store with random edges, including tombstones and blocks. The effects of blocks
// are not propagated to the other side: each list is its own truth.
func drawGraph(t *rapid.T) *oracle.Store {
	// If edges were drawn one by one, there would be few: rapid prefers short lists.
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
	return withEdges(t, edges...)
}

// withEdges is a store with edges on both sides, whether their users exist or not.
func withEdges(t interface{ Context() context.Context }, edges ...storage.Edge) *oracle.Store {
	store := oracle.New()
	store.Apply(t.Context(), storage.Forward, edges, storage.IfNewer)
	store.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
	return store
}

// createUsers makes the users 1 to n.
func createUsers(t *testing.T, store *oracle.Store, n int) {
	t.Helper()
	var users []storage.User
	for id := range n {
		users = append(users, storage.User{ID: storage.UserID(id + 1), Handle: fmt.Sprintf("user_%d", id+1), Name: "A"})
	}
	must.All(t, store.CreateUsers(t.Context(), users))
}

// drawAudience draws the user who looks, and the users whom it must not be shown.
func drawAudience(t *rapid.T) *Audience {
	some := rapid.SliceOfNDistinct(rapid.Map(rapid.IntRange(1, people), func(n int) storage.UserID { return storage.UserID(n) }),
		0, rapid.SampledFrom([]int{0, 0, 3, people}).Draw(t, "at most hidden"), rapid.ID)
	blocks, absent := some.Draw(t, "blocks"), some.Draw(t, "absent")
	slices.Sort(blocks)
	slices.Sort(absent)
	viewer := storage.UserID(rapid.IntRange(0, people).Draw(t, "viewer"))
	return NewAudience(viewer, hiddenUsers(absent), blocks)
}

type hiddenUsers []storage.UserID

func (a hiddenUsers) Has(id storage.UserID) bool { return slices.Contains(a, id) }
func (a hiddenUsers) IDs() []storage.UserID      { return a }

// readBy is a copy of a graph that reads through another reader.
func readBy(g *Graph, r storage.Answerer) *Graph {
	other := *g
	other.store = r
	return &other
}

// drawPlanner makes a graph that reads so little at a time, and has such a small budget, that all
// branches of the plans are used.
func drawPlanner(t *rapid.T, store storage.Answerer) *Graph {
	return &Graph{
		store: drawPacked(t, drawStore(t, store)), audience: drawAudience(t),
		budget: Budget(rapid.SampledFrom([]int{1, 2, 5, 10, 30, 1000}).Draw(t, "budget")),
		sizes: sizes{
			firstLook:       rapid.IntRange(1, 12).Draw(t, "first look"),
			stride:          rapid.IntRange(1, 12).Draw(t, "stride"),
			probes:          rapid.IntRange(1, 12).Draw(t, "probes"),
			firstPool:       rapid.IntRange(1, 12).Draw(t, "first pool"),
			maxPool:         rapid.IntRange(1, 30).Draw(t, "pool"),
			packedFrom:      rapid.Int64Range(0, 12).Draw(t, "packed from"),
			packedMost:      rapid.Int64Range(0, 2*people).Draw(t, "packed most"),
			fewCommon:       rapid.IntRange(0, 12).Draw(t, "few in common"),
			fewPositions:    rapid.IntRange(0, 12).Draw(t, "few positions"),
			fewHidden:       rapid.IntRange(0, 12).Draw(t, "few hidden"),
			maxMembers:      rapid.SampledFrom([]int{1, 5, 1000}).Draw(t, "members"),
			maxNamed:        rapid.SampledFrom([]int{1, 5, 1000}).Draw(t, "named"),
			positionsPerRow: rapid.SampledFrom([]int{1, 5, 1000}).Draw(t, "positions a row"),
		},
	}
}

// listOf returns a list by brute force, ascending.
func listOf(store *oracle.Store, l List) []storage.UserID {
	return storage.NeighbourLookups[l.Side].Read(context.Background(), store, l.Owner)[0].Value
}

// edgesOf are the edges of a list that an audience may be shown, newest first.
func edgesOf(store *oracle.Store, a *Audience, l List) []storage.Edge {
	edges := storage.PageLookups[l.Side].Read(context.Background(), store, storage.PageQuery{Owner: l.Owner, Limit: 10 * people})[0].Value
	return slices.DeleteFunc(edges, func(e storage.Edge) bool { return a.Hides(l.Side.Peer(e.Pair())) })
}

func drawList(t *rapid.T, name string) List {
	return List{
		Side:  rapid.SampledFrom([]storage.Side{storage.Forward, storage.Inverse}).Draw(t, name+" side"),
		Owner: storage.UserID(rapid.IntRange(1, people).Draw(t, name)),
	}
}

// peopleOf runs one query.
func peopleOf(t tester, g *Graph, q PeopleQuery) Common {
	c, err := g.People(t.Context(), q)
	must.OK(t, err)
	return c
}

// The matches of a MatchQuery come in the order of the base list, with the times of both edges, for
// every plan, page size and budget.
func TestMatchesAreWhoIsOnTheOtherListOrNot(t *testing.T) {
	properties.Check(t, 600, func(t *rapid.T) {
		store := drawGraph(t)
		g := drawPlanner(t, store)
		user := storage.UserID(rapid.IntRange(1, people).Draw(t, "user"))
		q := rapid.SampledFrom([]MatchQuery{
			Friends(user), NotFollowingBack(user), NotFollowedBack(user),
			{Base: drawList(t, "base"), Other: drawList(t, "other")},
		}).Draw(t, "which")
		want := matchesOf(store, g.audience, q)

		var got []Match
		var from MatchMark
		for page := 0; ; page++ {
			first := rapid.IntRange(1, 5).Draw(t, "first")
			p, err := g.Matches(t.Context(), q, from, first)
			must.OK(t, err)
			if p.Complete && p.Total != len(want) || !p.Complete && !p.More || p.Total > len(want) {
				t.Fatalf("page %d: %+v; want %d in all", page, p, len(want))
			}
			got = append(got, p.Matches...)
			must.That(t, !p.Complete || p.More == (len(got) < len(want)), "after %d of %d: more %t", len(got), len(want), p.More)
			if !p.More {
				break
			}
			must.Most(t, "pages", page, 5000)
			from = p.Next
		}
		must.Equal(t, "the list", got, want)
	})
}

func matchesOf(store *oracle.Store, a *Audience, q MatchQuery) []Match {
	others := map[storage.UserID]storage.Micros{}
	for _, e := range edgesOf(store, a, q.Other) {
		others[q.Other.Side.Peer(e.Pair())] = e.UpdateTime
	}
	var list []Match
	for _, e := range edgesOf(store, a, q.Base) {
		at := q.Base.Side.Position(e)
		if other, ok := others[at.Peer]; ok != q.Absent {
			if q.Base.Owner != q.Other.Owner {
				other = 0
			}
			list = append(list, Match{at.Peer, at, other})
		}
	}
	return list
}
