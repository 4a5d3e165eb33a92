package resolvers_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/storage"
	"kith/storage/sqlstore"
)

// star makes user 1 follow 2 … n+1, and makes them follow 1. Seven of them at a time have the same
// microsecond. It returns the ids in the order of both lists: newest first, and if times are equal,
// greater ids first.
func star(t testing.TB, store storage.Store, n int) []string {
	t.Helper()
	apitest.Users(t, store, n+1)
	var edges []storage.Edge
	for id := 2; id <= n+1; id++ {
		at := apitest.Epoch + storage.Micros(id*5%n/7) // not in the order of ids
		edges = append(edges, storage.Edge{From: 1, To: storage.UserID(id), Type: storage.Following, UpdateTime: at})
	}
	slices.SortFunc(edges, func(a, b storage.Edge) int {
		return cmp.Or(cmp.Compare(b.UpdateTime, a.UpdateTime), cmp.Compare(b.To, a.To))
	})
	ids := make([]string, n)
	for i, e := range edges {
		ids[i] = e.To.String()
		edges = append(edges, storage.Edge{From: e.To, To: e.From, Type: e.Type, UpdateTime: e.UpdateTime})
	}
	apitest.Apply(t, store, edges...)
	return ids
}

var plainLists = []string{"followings", "followers"}

func optional(name, cursor string) string {
	if cursor == "" {
		return ""
	}
	return fmt.Sprintf(", %s: %q", name, cursor)
}

// A cursor is a position, not a row. The row that it was taken from may end, and newer rows may
// come at the head of the list.
func TestACursorSurvivesItsRow(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		all := star(t, store, 30)
		api := apitest.New(t, store, apitest.Options{})
		for _, args := range []string{"", "(first: null, after: null, last: null, before: null)"} {
			pageOf(t, api, 1, "followings"+args).is(t, "a page whose length is not given", all[:20], true, false)
		}
		first := pageOf(t, api, 1, "followings(first: 10)")
		last := pageOf(t, api, 1, "followings(last: 10)")
		end, start := *first.PageInfo.EndCursor, *last.PageInfo.StartCursor

		now := apitest.Epoch + 1_000_000
		for _, gone := range []string{all[9], all[20]} { // the rows of both cursors
			apitest.Apply(t, store, storage.Edge{From: 1, To: userID(t, gone), Type: storage.None, UpdateTime: now})
		}
		apitest.CreateUsers(t, store, storage.User{ID: 500, Handle: "new", Name: "New", CreatedAt: now})
		apitest.Apply(t, store, storage.Edge{From: 1, To: 500, Type: storage.Following, UpdateTime: now})

		pageOf(t, api, 1, fmt.Sprintf("followings(first: 5, after: %q)", end)).is(t, "after a row that ended", all[10:15], true, true)
		pageOf(t, api, 1, fmt.Sprintf("followings(last: 5, before: %q)", start)).is(t, "before a row that ended", all[15:20], true, true)
		head := pageOf(t, api, 1, "followings(first: 3)")
		head.is(t, "the head", []string{"500", all[0], all[1]}, true, false)
		check.Equal(t, "followings", head.TotalCount, 29)
	})
}

// The arguments of a page have bounds.
func TestPageArgumentsThatAreRefused(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		star(t, store, 5)
		apitest.CreateUsers(t, store, storage.User{ID: 7, Handle: "u7"})
		apitest.Follow(t, store, 2, 3, 7)
		apitest.Follow(t, store, 3, 2)
		api := apitest.New(t, store, apitest.Options{})
		const set = "friends commonFollowings(with:2 commonFollowers(with:2 followSuggestions"
		cursors := map[string]string{}
		for _, list := range append(strings.Fields(set), plainLists...) {
			open := cmp.Or(map[bool]string{true: list + ", "}[strings.Contains(list, "(")], list+"(")
			answer := api.Ask("{ user(by: {id: 1}) { list: "+open+"first: 1) { edges { cursor } } } }", nil).Whole()
			if edges := apitest.Into[[]edge](answer, "user.list.edges"); len(edges) > 0 {
				cursors[list] = edges[0].Cursor
			}
			bad := []string{
				"first: 101", "first: -1", "first: 2147483648", "first: -2147483649", "first: 99999999999999999999", "first: 1.5", `first: "5"`, "first: true",
				`after: "x"`, `after: ""`, `after: "AAAA"`, `after: "!"`, `after: "\u0000"`, `after: "` + strings.Repeat("A", 10_000) + `"`,
			}
			for _, arg := range bad {
				refused(t, api, open, arg)
			}
			if slices.Contains(plainLists, list) {
				for _, arg := range []string{"last: 101", "last: -1", "last: 2147483648", "first: 1, last: 1", "first: 0, last: 0", `before: "x"`, `before: ""`} {
					refused(t, api, open, arg)
				}
			}
		}
		must.Least(t, "cursors", len(cursors), 6)
		// A cursor belongs to its field. That of a set answer belongs to its two lists.
		for from, cursor := range cursors {
			for _, list := range append(strings.Fields(set), plainLists...) {
				if from == list {
					continue
				}
				open := cmp.Or(map[bool]string{true: list + ", "}[strings.Contains(list, "(")], list+"(")
				refused(t, api, open, fmt.Sprintf("after: %q", cursor))
			}
		}
		for _, list := range []string{"commonFollowings", "commonFollowers"} {
			refused(t, api, list+"(with: 3, ", fmt.Sprintf("after: %q", cursors[list+"(with:2"]))
		}
		api.Ask(fmt.Sprintf(`{ user(by: {id: 2}) { friends(after: %q) { totalCount } } }`, cursors["friends"]), nil).Refused("BAD_USER_INPUT")
	})
}

// refused asks user 1 for a list with an argument that is refused. The field is null, the user is not.
func refused(t *testing.T, api *apitest.API, open, argument string) {
	t.Helper()
	for _, selection := range []string{"{ nodes { id } }", "{ pageInfo { hasNextPage } }"} {
		answer := api.For(t).Ask("{ user(by: {id: 1}) { id list: "+open+argument+") "+selection+" } }", nil)
		if len(answer.Errors) != 1 || answer.Errors[0].Code() != "BAD_USER_INPUT" {
			t.Errorf("%s%.50s: not refused: %.500s", open, argument, answer.Text)
			continue
		}
		e := answer.Errors[0]
		check.That(t, len(e.Message) <= 200 && (strings.HasPrefix(e.At(), "user.list") || e.At() == ""), "%s%.50s: at %q: %q", open, argument, e.At(), e.Message)
		if answer.Data != nil { // nil means that it was refused before it was executed
			answer.DataIs(`{"user": {"id": "1", "list": null}}`)
		}
	}
}

// Root fields are answered at once. If several ask for the same page of a list and each selects something else of it, each has all that it
// selects, whichever has been read last.
func TestOnePageIsSelectedInSeveralWays(t *testing.T) {
	store := opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 2), StatementTimeout: generous})
	apitest.Users(t, store, 12)
	apitest.Tangle(t, store, 12)
	api := apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits}).As(3)
	const query = `{
		a: searchUsers(text: "u", first: 5) { nodes { id followings(last: 2) { complete } } }
		b: searchUsers(text: "u", first: 5) { nodes { id followings(last: 2) { edges { cursor node { id } } } } }
		c: searchUsers(text: "u", first: 5) { nodes { id followings(last: 2) { totalCount } } }
		d: searchUsers(text: "u", first: 5) { nodes { id followings(last: 2) { nodes { id } pageInfo { startCursor hasPreviousPage } } } }
	}`
	want := api.Ask(query, nil).Whole()
	for range 500 {
		must.Equal(t, "asked again", api.Ask(query, nil).Whole().Text, want.Text)
	}
	edges, _ := want.At("b.nodes.0.followings.edges").([]any)
	check.That(t, len(edges) == 2, "%v", want.At("b"))
}
