package expected

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"kith/internal/testgraph"
)

// sets are a graph as plain sets: whom each user follows, and who follows each. Nothing
// of Kith is used to compute answers from them.
type sets struct {
	followings, followers map[int64]map[int64]bool
	users                 []int64 // ascending
}

func setsOf(edges []testgraph.Edge) sets {
	s := sets{followings: map[int64]map[int64]bool{}, followers: map[int64]map[int64]bool{}}
	users := map[int64]bool{}
	add := func(lists map[int64]map[int64]bool, owner, peer int64) {
		if lists[owner] == nil {
			lists[owner] = map[int64]bool{}
		}
		lists[owner][peer] = true
		users[owner] = true
	}
	for _, e := range edges {
		add(s.followings, e.From, e.To)
		add(s.followers, e.To, e.From)
	}
	s.users = ascending(users)
	return s
}

// pair computes what is expected of two users.
func (s sets) pair(a, b int64) Pair {
	common := func(lists map[int64]map[int64]bool) []int64 {
		both := map[int64]bool{}
		for id := range lists[a] {
			if lists[b][id] {
				both[id] = true
			}
		}
		return ascending(both)
	}
	p := Pair{
		A: a, B: b,
		AFollowings: len(s.followings[a]), AFollowers: len(s.followers[a]),
		BFollowings: len(s.followings[b]), BFollowers: len(s.followers[b]),
		AFollowsB: s.followings[a][b], BFollowsA: s.followings[b][a],
		CommonFollowings: common(s.followings), CommonFollowers: common(s.followers),
	}
	p.Mutual = p.AFollowsB && p.BFollowsA
	p.FollowingsCount, p.FollowersCount = len(p.CommonFollowings), len(p.CommonFollowers)
	return p
}

// suggestion computes whom to suggest to a user: whom the user's followings follow, those
// whom most of them follow first, then the lower id.
func (s sets) suggestion(viewer int64) Suggestion {
	scores := map[int64]int64{}
	for by := range s.followings[viewer] {
		for id := range s.followings[by] {
			if id != viewer && !s.followings[viewer][id] {
				scores[id]++
			}
		}
	}
	rows := [][2]int64{}
	for id, score := range scores {
		rows = append(rows, [2]int64{id, score})
	}
	slices.SortFunc(rows, func(x, y [2]int64) int { return cmp.Or(cmp.Compare(y[1], x[1]), cmp.Compare(x[0], y[0])) })
	return Suggestion{Viewer: viewer, Followings: len(s.followings[viewer]), Candidates: len(rows), Top20: rows[:min(20, len(rows))]}
}

// answers computes answers about users drawn from a seed: at random, along edges, back
// and forth, among those with the longest lists.
func (s sets) answers(edges []testgraph.Edge) (a Answers) {
	r := rand.New(rand.NewPCG(7, 1))
	anybody := func() int64 { return s.users[r.IntN(len(s.users))] }
	anyEdge := func() testgraph.Edge { return edges[r.IntN(len(edges))] }
	active, followed := s.longest(s.followings), s.longest(s.followers)
	hub := func() int64 { return [][]int64{active, followed}[r.IntN(2)][r.IntN(20)] }
	for range 40 {
		e := anyEdge()
		for _, ends := range [][2]int64{{anybody(), anybody()}, {e.From, e.To}, {e.To, e.From}, {hub(), anybody()}, {hub(), hub()}} {
			if ends[0] != ends[1] {
				a.Pairs = append(a.Pairs, s.pair(ends[0], ends[1]))
			}
		}
	}
	for i := range 6 {
		for _, viewer := range []int64{active[i], followed[i], anyEdge().From, anyEdge().From} {
			a.Suggestions = append(a.Suggestions, s.suggestion(viewer))
		}
	}
	return a
}

// longest are the users with the longest lists, the longest first.
func (s sets) longest(lists map[int64]map[int64]bool) []int64 {
	users := slices.Clone(s.users)
	slices.SortStableFunc(users, func(a, b int64) int { return cmp.Compare(len(lists[b]), len(lists[a])) })
	return users
}

func ascending(set map[int64]bool) []int64 {
	list := make([]int64, 0, len(set))
	for id := range set {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}
