package expected

import (
	"testing"

	"kith/internal/check"
	"kith/internal/testgraph"
)

// The expected answers about a graph of six users are worked out by hand:
//
//	1 → 2, 3, 5   2 → 1, 4, 6   3 → 4   4 → 3   5 → 4, 6
func TestSets(t *testing.T) {
	var edges []testgraph.Edge
	for _, e := range [][2]int64{{1, 2}, {1, 3}, {1, 5}, {2, 1}, {2, 4}, {2, 6}, {3, 4}, {4, 3}, {5, 4}, {5, 6}} {
		edges = append(edges, testgraph.Edge{From: e[0], To: e[1]})
	}
	s := setsOf(edges)
	for _, want := range []Pair{
		{A: 1, B: 2, AFollowings: 3, AFollowers: 1, BFollowings: 3, BFollowers: 1, AFollowsB: true, BFollowsA: true, Mutual: true,
			CommonFollowings: []int64{}, CommonFollowers: []int64{}},
		{A: 2, B: 5, AFollowings: 3, AFollowers: 1, BFollowings: 2, BFollowers: 1,
			CommonFollowings: []int64{4, 6}, FollowingsCount: 2, CommonFollowers: []int64{1}, FollowersCount: 1},
		{A: 3, B: 6, AFollowings: 1, AFollowers: 2, BFollowers: 2, CommonFollowings: []int64{}, CommonFollowers: []int64{}},
		{A: 6, B: 4, AFollowers: 2, BFollowings: 1, BFollowers: 3, CommonFollowings: []int64{}, CommonFollowers: []int64{2, 5}, FollowersCount: 2},
		{A: 5, B: 4, AFollowings: 2, AFollowers: 1, BFollowings: 1, BFollowers: 3, AFollowsB: true, CommonFollowings: []int64{}, CommonFollowers: []int64{}},
	} {
		check.Equal(t, "a pair", s.pair(want.A, want.B), want)
	}
	for _, want := range []Suggestion{
		{Viewer: 1, Followings: 3, Candidates: 2, Top20: [][2]int64{{4, 3}, {6, 2}}}, // without 1, whom 2 follows, and without 3
		{Viewer: 2, Followings: 3, Candidates: 2, Top20: [][2]int64{{3, 2}, {5, 1}}},
		{Viewer: 3, Followings: 1, Top20: [][2]int64{}},
		{Viewer: 6, Top20: [][2]int64{}},
	} {
		check.Equal(t, "a suggestion", s.suggestion(want.Viewer), want)
	}
}

// For a real graph, the sets agree with the results of independent programs.
func TestSetsAgreeWithOthers(t *testing.T) {
	g := testgraph.Real(t, "wiki-vote")
	s := setsOf(g.Edges(t))
	known := Of(t, g)
	for _, want := range known.Pairs {
		check.Equal(t, "a pair", s.pair(want.A, want.B), want)
	}
	for _, want := range known.Suggestions {
		check.Equal(t, "a suggestion", s.suggestion(want.Viewer), want)
	}
}

// The answers about a generated graph are not empty.
func TestAnswersSaySomething(t *testing.T) {
	a := Of(t, testgraph.Generate(t, testgraph.Small))
	var mutual, oneWay, none, common, many, suggested int
	for _, p := range a.Pairs {
		switch {
		case p.Mutual:
			mutual++
		case p.AFollowsB || p.BFollowsA:
			oneWay++
		default:
			none++
		}
		if p.FollowingsCount > 0 && p.FollowersCount > 0 {
			common++
		}
		if p.FollowingsCount > 100 || p.FollowersCount > 100 { // more than one page
			many++
		}
	}
	for _, s := range a.Suggestions {
		if s.Candidates > 100 {
			suggested++
		}
	}
	if min(mutual, oneWay, none, common) < 20 || many < 5 || suggested < 12 {
		t.Errorf("of %d pairs %d are mutual, %d one way, %d nothing; %d have both lists in common, %d more than a page; %d of %d users have more than a page of suggestions",
			len(a.Pairs), mutual, oneWay, none, common, many, suggested, len(a.Suggestions))
	}
}
