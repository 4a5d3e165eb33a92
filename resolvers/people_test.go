package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/storage"
)

// peopleOf asks for a page of people.
func peopleOf(t *testing.T, api *apitest.API, where, args string) page {
	t.Helper()
	answer := api.Ask(`{ people(where: `+where+args+`)`+selectPage("people")+` }`, nil).Whole()
	p := apitest.Into[page](answer, "people")
	checkPage(t, where+args, p)
	return p
}

func TestPagesOfPeople(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		star(t, store, 30)
		apitest.Follow(t, store, 2, 3, 5, 7, 9, 11)
		api := apitest.New(t, store, apitest.Options{})
		const where = `{and: [{friendsOf: 1}, {not: {followedBy: 2}}]}`
		var want []string
		for id := 2; id <= 31; id++ {
			if !slices.Contains([]int{3, 5, 7, 9, 11}, id) {
				want = append(want, fmt.Sprint(id))
			}
		}
		first := peopleOf(t, api, where, ", first: 10")
		first.is(t, "the first page", want[:10], true, false)
		check.That(t, first.TotalCount == len(want) && first.Complete, "%+v", first)
		cursor := fmt.Sprintf(", after: %q", *first.PageInfo.EndCursor)
		peopleOf(t, api, where, cursor).is(t, "the rest", want[10:], false, true)
		total := peopleOf(t, api, where, ", first: 0")
		check.That(t, total.TotalCount == len(want) && len(total.Edges) == 0, "the total alone: %+v", total)
		// A cursor belongs to its filter.
		api.Ask(`{ people(where: {friendsOf: 1}`+cursor+`) { totalCount } }`, nil).Refused("BAD_USER_INPUT")
		// Variables work as well as values in the query.
		api.Ask(`query($where: PeopleFilter!) { people(where: $where, first: 2) { nodes { handle followerCount } } }`,
			apitest.Vars{"where": map[string]any{"followedBy": "2"}}).
			Is(`{"people": {"nodes": [{"handle": "u1", "followerCount": 30}, {"handle": "u3", "followerCount": 2}]}}`)
		// Several people fields at once, with set answers below them.
		api.Ask(`{ a: people(where: {followersOf: 3}) { nodes { id friends { totalCount } } } b: people(where: {followersOf: 99}) { totalCount complete nodes { id } } }`, nil).
			Is(`{"a": {"nodes": [{"id": "1", "friends": {"totalCount": 30}}, {"id": "2", "friends": {"totalCount": 1}}]}, "b": {"totalCount": 0, "complete": true, "nodes": []}}`)
	})
}

func TestFiltersOfPeopleThatAreRefused(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 2)
		api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})
		for where, hint := range map[string]string{
			`{}`:                               "exactly one",
			`{followersOf: 1, followedBy: 2}`:  "exactly one",
			`{followersOf: null}`:              "non-null",
			`{and: []}`:                        "at least one",
			`{or: []}`:                         "at least one",
			`{not: {followersOf: 1}}`:          "`and`",
			`{and: [{not: {followersOf: 1}}]}`: "`and`",
			`{or: [{followersOf: 1}, {not: {followersOf: 2}}]}`:         "`and`",
			`{and: [{followersOf: 1}, {not: {not: {followersOf: 2}}}]}`: "`and`",
			`{followersOf: "x"}`:                                                      "id",
			`{and: [{followersOf: 1}, {followedBy: 0}]}`:                              "id",
			`{or: [` + strings.Repeat(`{followersOf: 1}, `, 17) + `]}`:                "16",
			`{or: [` + strings.Repeat(`{friendsOf: 1}, `, 9) + `]}`:                   "16",
			strings.Repeat(`{and: `, 8) + `{followersOf: 1}` + strings.Repeat(`}`, 8): "8 levels",
		} {
			message := api.Ask(`{ people(where: `+where+`) { totalCount } }`, nil).Refused("BAD_USER_INPUT")
			check.Has(t, where, message, hint)
		}
		for name, where := range map[string]map[string]any{
			"none":           {},
			"two":            {"followersOf": "1", "followedBy": "2"},
			"null":           {"followersOf": nil},
			"null besides":   {"followersOf": "1", "followedBy": nil},
			"two, one below": {"and": []any{map[string]any{"followersOf": "1", "followedBy": "2"}}},
		} {
			check.Has(t, name, api.Ask(`query($where: PeopleFilter!) { people(where: $where) { totalCount } }`, apitest.Vars{"where": where}).Refused("BAD_USER_INPUT"), "exactly one")
		}
		api.Ask(`query($id: ID) { people(where: {followersOf: $id}) { totalCount } }`, apitest.Vars{"id": nil}).Refused("BAD_USER_INPUT")
		deep := strings.Repeat(`{and: `, 7) + `{followersOf: 1}` + strings.Repeat(`}`, 7)
		api.Ask(`{ people(where: `+deep+`) { totalCount } }`, nil).Is(`{"people": {"totalCount": 0}}`)
	})
}

// A search lists the users who can be seen and whose names or handles have the words, the most followed first.
func TestSearchingUsers(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		handles := []string{"ada", "ada_1", "ada_2", "adam", "adamant", "b", "bob"}
		for i, handle := range handles {
			apitest.CreateUsers(t, store, storage.User{ID: storage.UserID(i + 1), Handle: handle, CreatedAt: apitest.Epoch})
		}
		deactivate(t, store, 3) // ada_2
		apitest.Apply(t, store, storage.Edge{From: 5, To: 7, Type: storage.Blocking, UpdateTime: apitest.Epoch})
		api := apitest.New(t, store, apitest.Options{})
		search := func(api *apitest.API, prefix, args string) (handles []string, cursors []string, more bool) {
			answer := api.Ask(fmt.Sprintf(`{ searchUsers(text: %q%s) { nodes { handle } edges { cursor node { handle } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`, prefix, args), nil).Whole()
			found := apitest.Into[struct {
				Nodes []struct{ Handle string }
				Edges []struct {
					Cursor string
					Node   struct{ Handle string }
				}
				PageInfo pageInfo
			}](answer, "searchUsers")
			for i, e := range found.Edges {
				handles, cursors = append(handles, e.Node.Handle), append(cursors, e.Cursor)
				check.Equal(t, prefix, found.Nodes[i], e.Node)
			}
			return handles, cursors, found.PageInfo.HasNextPage
		}
		for _, c := range []struct {
			api          *apitest.API
			prefix, args string
			want         string
			more         bool
		}{
			{api, "ada", "", "ada ada_1 adam adamant", false},
			{api, "ADA", ", first: 2", "ada ada_1", true},
			{api, "ada", ", first: 4", "ada ada_1 adam adamant", false},
			{api, "ada_", "", "ada_1", false},
			{api, "ada 1", "", "ada_1", false},
			{api, "a% ada", "", "ada ada_1 adam adamant", false},
			{api, "a b", "", "", false},
			{api, "ádã", "", "ada ada_1 adam adamant", false},
			{api, "ada_2", "", "", false},
			{api, "zz", "", "", false},
			{api, "a", ", first: 0", "", true},
			{api.As(3), "ada_", "", "ada_1 ada_2", false}, // user 3 sees itself
			{api.As(7), "ada", "", "ada ada_1 adam", false},
			{api.As(5), "bo", "", "", false},
			{api.As(1), "bo", "", "bob", false},
		} {
			got, _, more := search(c.api, c.prefix, c.args)
			check.That(t, strings.Join(got, " ") == c.want && more == c.more, "%s%s: %v, more %t; want %s, %t", c.prefix, c.args, got, more, c.want, c.more)
		}
		got, cursors, _ := search(api, "a", ", first: 3")
		rest, _, more := search(api, "a", fmt.Sprintf(", after: %q", cursors[2]))
		check.Equal(t, "in two pages", strings.Join(append(got, rest...), " "), "ada ada_1 adam adamant")
		check.That(t, !more, "there are more")
		for _, prefix := range []string{"", " ", "%", "ada a a a a a a a ada", strings.Repeat("a", 31)} { // nobody, as while somebody types
			api.Ask(`query($p: String!) { searchUsers(text: $p) { nodes { id } edges { cursor } pageInfo { hasNextPage endCursor } complete } }`, apitest.Vars{"p": prefix}).
				Is(`{"searchUsers": {"nodes": [], "edges": [], "pageInfo": {"hasNextPage": false, "endCursor": null}, "complete": true}}`)
		}
		for _, args := range []string{`text: "a", after: ""`, fmt.Sprintf(`text: "b", after: %q`, cursors[0])} {
			answer := api.Ask(`{ searchUsers(`+args+`) { nodes { id } } }`, nil)
			answer.Refused("BAD_USER_INPUT")
		}
	})
}

// Claims on handles, and hidden users, are not found, however many of them come before a match.
func TestClaimsWithoutAUserAreNotFound(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		for i := range 90 {
			id := storage.UserID(i + 1)
			apitest.CreateUsers(t, store, storage.User{ID: id, Handle: fmt.Sprintf("a%03d", i), CreatedAt: apitest.Epoch})
			// A second handle for a user who already has one becomes a claim that stays.
			store.CreateUsers(t.Context(), []storage.User{{ID: id, Handle: fmt.Sprintf("a%03d_claim", i), CreatedAt: apitest.Epoch}})
			if i%9 != 0 {
				deactivate(t, store, id)
			}
		}
		api := apitest.New(t, store, apitest.Options{})
		answer := api.Ask(`{ searchUsers(text: "a", first: 10) { nodes { handle } pageInfo { hasNextPage } } }`, nil).Whole()
		var want []string
		for i := 0; i < 90; i += 9 {
			want = append(want, fmt.Sprintf(`{"handle": "a%03d"}`, i))
		}
		answer.DataIs(`{"searchUsers": {"nodes": [` + strings.Join(want, ", ") + `], "pageInfo": {"hasNextPage": false}}}`)
	})
}
