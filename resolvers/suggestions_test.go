package resolvers_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/storage"
)

// suggestion is an edge of followSuggestions.
type suggestion struct {
	Cursor      string
	Node        node
	Score       float64
	SharedCount int
	Reason      string
	Via         []node
}

type suggestionPage struct {
	Edges    []suggestion
	Nodes    []node
	PageInfo pageInfo
	Complete bool
}

func suggestionsOf(t apitest.T, api *apitest.API, user, first, via int, after string) suggestionPage {
	t.Helper()
	answer := api.For(t).Ask(fmt.Sprintf(`{ user(by: {id: %d}) { list: followSuggestions(first: %d%s) {
		edges { cursor score sharedCount reason node { id } via(first: %d) { id } } nodes { id }
		pageInfo { hasNextPage hasPreviousPage startCursor endCursor } complete
	} } }`, user, first, optional("after", after), via), nil).Whole()
	p := apitest.Into[suggestionPage](answer, "user.list")
	info := p.PageInfo
	nodes := make([]node, len(p.Edges))
	for i, e := range p.Edges {
		nodes[i] = e.Node
	}
	if !slices.Equal(p.Nodes, nodes) || len(p.Edges) > first || info.HasPreviousPage ||
		info.HasNextPage && info.EndCursor == nil || !p.Complete && !info.HasNextPage ||
		(len(p.Edges) > 0) != (info.StartCursor != nil) {
		t.Errorf("suggestions to %d, first %d: %+v", user, first, p)
	}
	return p
}

// suggest ranks candidates by brute force.
func (c drawnGraph) suggest(user int) []suggestion {
	var list []suggestion
	for x := 1; x <= c.n; x++ {
		s := suggestion{Node: node{strconv.Itoa(x)}, Via: []node{}}
		for y := 1; y <= c.n; y++ {
			if c.follows[user][y] != 0 && c.follows[y][x] != 0 {
				s.Via = append(s.Via, node{strconv.Itoa(y)})
			}
		}
		if s.SharedCount = len(s.Via); s.SharedCount > 0 && x != user && c.follows[user][x] == 0 {
			s.Score = float64(s.SharedCount)
			s.Reason = "FOLLOWED_BY_FOLLOWINGS"
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b suggestion) int { return cmp.Compare(b.SharedCount, a.SharedCount) })
	return list
}

func TestSuggestionsAreTheUsersWhomMostFollowingsFollow(t *testing.T) {
	properties.Check(t, cases, func(t *rapid.T) {
		c := drawGraph(t, 60)
		api := apitest.New(t, c.store(), apitest.Options{})
		user := rapid.IntRange(1, 8).Draw(t, "user")
		via := rapid.IntRange(0, 10).Draw(t, "via")
		want := c.suggest(user)
		for i := range want {
			want[i].Via = want[i].Via[:min(via, len(want[i].Via))]
		}
		var got []suggestion
		for cursor := ""; ; {
			p := suggestionsOf(t, api, user, rapid.IntRange(1, 30).Draw(t, "first"), via, cursor)
			must.That(t, p.Complete, "incomplete: %+v", p)
			for _, e := range p.Edges {
				e.Cursor = ""
				got = append(got, e)
			}
			if !p.PageInfo.HasNextPage {
				break
			}
			cursor = *p.PageInfo.EndCursor
			must.Equal(t, "where it goes on", cursor, p.Edges[len(p.Edges)-1].Cursor)
		}
		must.Equal(t, fmt.Sprint("suggestions to ", user), got, want)
	})
}

// via has three users unless first says otherwise, and each via has its own first.
func TestViaHasThreeUsersUnlessFirstSaysOtherwise(t *testing.T) {
	store := storeOf(t, 7)
	apitest.Follow(t, store, 1, 2, 3, 4, 5, 6)
	for id := storage.UserID(2); id <= 6; id++ {
		apitest.Follow(t, store, id, 7)
	}
	api := apitest.New(t, store, apitest.Options{})
	api.Ask(`{ user(by: {id: 1}) { followSuggestions { edges {
		via { id } none: via(first: 0) { id } one: via(first: 1) { handle } all: via(first: 100) { id } nothing: via(first: null) { id }
	} } } }`, nil).Is(`{"user": {"followSuggestions": {"edges": [{
		"via": [{"id": "2"}, {"id": "3"}, {"id": "4"}], "none": [], "one": [{"handle": "u2"}],
		"all": [{"id": "2"}, {"id": "3"}, {"id": "4"}, {"id": "5"}, {"id": "6"}],
		"nothing": [{"id": "2"}, {"id": "3"}, {"id": "4"}]
	}]}}}`)
	for _, first := range []string{"101", "-1", "2147483648"} {
		answer := api.Ask(`{ user(by: {id: 1}) { followSuggestions { edges { via(first: `+first+`) { id } } } } }`, nil)
		if answer.Refused("BAD_USER_INPUT"); answer.Data != nil {
			answer.FailsAt("BAD_USER_INPUT", "user.followSuggestions.edges.0.via")
		}
	}
}
