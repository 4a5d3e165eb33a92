package resolvers_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
)

// Edges of declared kinds, and lists with their members, take as many statements for thirty users as for two.
func TestStatementsForTheEdgesAndListsOfUsersStayConstant(t *testing.T) {
	for _, shards := range []int{1, 4} {
		api, recorder := countedAPI(t, shards, apitest.Options{Declared: declare(t, someKinds)})
		lists := make([]string, 0, 30)
		for id := storage.UserID(1); id <= 30; id++ {
			me := api.As(id)
			me.Ask(fmt.Sprintf(`mutation { a: relate(kind: WORKS_WITH, ids: ["%d", "%d"]) { outcomes { changed } } b: relate(kind: SUBSCRIBES, ids: ["7"]) { outcomes { changed } } }`, id+40, id+50), nil).Whole()
			made := me.Ask(fmt.Sprintf(`mutation { createList(name: "x", public: true, userIds: ["%d", "%d"]) { list { id } } }`, id+60, id+70), nil).Whole()
			lists = append(lists, apitest.Into[string](made, "createList.list.id"))
		}
		api.As(2).Ask(`mutation { block(userId: "41") { changed } }`, nil).Whole() // whom user 1 works with: it is looked for on each list
		recorder.Take()
		for _, q := range []struct {
			name, query string
			want        costs
		}{
			{"edges", `query($ids: [ID!]!) { users(by: {ids: $ids}) { edges(kind: WORKS_WITH, first: 1) { totalCount nodes { name followingCount } edges { until } pageInfo { hasNextPage } } twins: edges(kind: WORKS_WITH, first: 1) { nodes { handle } } } }`,
				costs{"blocks": 1, "users": 1, "kinds": 1, "edges.relation": 1, "pages.relation": 1, "details": 1, "profiles": 1}},
			{"edges to no users", `query($ids: [ID!]!) { users(by: {ids: $ids}) { edges(kind: SUBSCRIBES) { totalCount edges { endId } } } }`,
				costs{"blocks": 1, "users": 1, "kinds": 1, "edges.relation": 1, "pages.relation": 1}},
			{"lists", `query($ids: [ID!]!) { users(by: {ids: $ids}) { lists(first: 3) { nodes { memberCount owner { name } members { totalCount nodes { name followingCount } } } edges { node { memberCount } } } } }`,
				costs{"blocks": 1, "users": 1, "lists": 1, "kinds": 1, "edges.relation": 1, "pages.relation": 1, "profiles": 1}},
			{"nodes", `query($lists: [ID!]!) { nodes(ids: $lists) { ... on List { name memberCount owner { name } members { nodes { name } } } } }`,
				costs{"blocks": 1, "users": 2, "lists": 1, "kinds": 1, "edges.relation": 1, "pages.relation": 1}},
		} {
			for _, n := range []int{2, 30} {
				answer := api.As(2).Ask(q.query, apitest.Vars{"ids": idsUpTo(1, n), "lists": lists[:n]}).Whole()
				if got := recorder.Take().MostOnOneShard(); !within(got, q.want) {
					t.Errorf("%s of %d users, %d shards: %v on one shard, want at most %v", q.name, n, shards, got, q.want)
				} else if shards == 1 && !maps.Equal(got, q.want) {
					t.Errorf("%s of %d users: %v, want %v", q.name, n, got, q.want)
				}
				found := strings.Count(answer.Text, `"nodes":[{`)
				check.That(t, found >= n || q.name == "edges to no users", "%s of %d users: %d pages have anybody", q.name, n, found)
			}
		}
	}
}
