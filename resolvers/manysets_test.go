package resolvers_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/opened"
	"kith/storage"
	"kith/storage/sqlstore"
)

// Set answers of many users are worked out side by side, and each of their steps is one batch. So
// their cost does not grow with the number of users.
func TestSetAnswersOfManyUsersCostWhatOneDoes(t *testing.T) {
	for name, field := range map[string]string{
		"friends":     `friends(first: 3) { totalCount nodes { handle } }`,
		"common":      `commonFollowings(with: 3, first: 3) { totalCount nodes { handle } } commonFollowers(with: 3) { totalCount }`,
		"best":        `followSuggestions(first: 3, orderBy: BEST) { edges { score reason sharedCount via { handle } node { handle } } } similarUsers(first: 3) { totalCount nodes { name } }`,
		"suggestions": `followSuggestions(first: 3) { edges { sharedCount via { handle } node { handle } } }`,
		"all":         `friends { totalCount } commonFollowers(with: 3) { totalCount } followSuggestions(first: 2) { nodes { name } }`,
		"nested":      `friends(first: 2) { nodes { friends(first: 2) { nodes { handle } } } }`,
	} {
		t.Run(name, func(t *testing.T) {
			api, recorder := countedAPI(t, 1, apitest.Options{Limits: apitest.NoLimits})
			query := `query($ids: [ID!]!) { users(by: {ids: $ids}) { id ` + field + ` } }`
			var one map[string]int
			for _, users := range []int{1, 2, 7, 30} {
				ids := idsUpTo(11, 10+users)
				if users == 7 {
					ids[3] = "999999" // does not exist, so nothing is computed for it
				}
				api.Ask(query, apitest.Vars{"ids": ids}).Whole()
				got := recorder.Take().ByLookup()
				if one == nil {
					one = got
				}
				if users == 7 && one["counts"] == 0 {
					delete(got, "counts") // those of the user who does not exist
				}
				if name == "best" { // one user's counts are read by themselves, those of several with their profiles
					delete(one, "counts")
					delete(got, "counts")
				}
				for lookup, n := range got {
					// Many pairs with several owners take more than one statement.
					most := one[lookup] * (1 + 40*users/450)
					if name == "best" { // its last step asks for each answer by itself; ten cost as much as a request may
						most += users
					}
					check.That(t, n <= most, "%d users: %d statements of %s, want at most %d; one user: %v, all: %v", users, n, lookup, most, one, got)
				}
				check.That(t, maps.EqualFunc(one, got, func(a, b int) bool { return a > 0 && b > 0 }), "%d users: %v, one user: %v", users, got, one)
			}
		})
	}
}

// Aliases with the same arguments are one answer, of which each shows what it selects. When candidates have posted last is read once for each time
// that suggestions are worked out.
func TestAliasesAreWorkedOutOnce(t *testing.T) {
	api, recorder := countedAPI(t, 1, apitest.Options{Limits: apitest.NoLimits})
	viewer := api.As(11)
	for _, c := range []struct {
		query string
		times int
	}{
		{`query($n: Int = 3) { viewer { user { ` + aliased(9, `followSuggestions(orderBy: BEST, first: $n) { edges { via { handle } } }`) + ` } } }`, 1},
		{`{ viewer { user { ` + aliased(4, `followSuggestions(orderBy: BEST, first: %d) { nodes { handle } }`) + ` } } }`, 4},
		{`{ a: viewer { user { followSuggestions(orderBy: BEST) { nodes { id } } } } b: user(by: {id: 11}) { followSuggestions(orderBy: BEST) { complete } } }`, 1},
		{`{ viewer { user { id followings(first: 2) { nodes { followersYouKnow { nodes { followSuggestions { complete } } } } } followSuggestions(orderBy: BEST) { nodes { id } } } } }`, 1},
	} {
		recorder.Take()
		viewer.Ask(c.query, nil).Whole()
		check.Equal(t, c.query, recorder.Take().ByLookup()["posts.last"], c.times)
	}
	fields := []string{
		`followSuggestions(first: 3) { nodes { handle } }`,
		`followSuggestions(first: 3) { edges { via(first: 1) { handle } node { name } } }`,
		`followSuggestions(first: 3) { edges { via(first: 5) { id } } pageInfo { endCursor } }`,
		`friends(first: 2) { totalCount }`,
		`friends(first: 2) { nodes { handle } }`,
	}
	all := "{ user(by: {id: 11}) {"
	for i, field := range fields {
		all += fmt.Sprintf(" f%d: %s", i, field)
	}
	together := viewer.Ask(all+" } }", nil).Whole()
	for i, field := range fields {
		alone := viewer.Ask("{ user(by: {id: 11}) { f: "+field+" } }", nil).Whole()
		check.Equal(t, field+" beside others", together.At(fmt.Sprintf("user.f%d", i)), alone.At("user.f"))
	}
	api.Ask(`{ `+aliased(2, `edgesAmong(ids: ["11", "12", "13"]) { followings }`)+` }`, nil).Whole()
}

// What is asked for together is answered as each part of it is alone: nothing that fields share shows in an answer.
func TestPartsOfAQueryAreAnsweredAsAlone(t *testing.T) {
	store := opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 1), StatementTimeout: generous})
	w := drawWorld(7, 12)
	must.OK(t, w.fill(store))
	for name, served := range map[string]storage.Store{"read each time": store, "from memory": newWarmStore(t, store)} {
		api := apitest.New(t, served, apitest.Options{Limits: apitest.NoLimits})
		t.Run(name, func(t *testing.T) {
			properties.Check(t, 300, func(t *rapid.T) {
				viewer := storage.UserID(rapid.IntRange(1, w.n).Draw(t, "viewer"))
				whole, parts, vars := apitest.Parts(t, w.n)
				ask := func(query string) apitest.Answer { return api.For(t).As(viewer).Ask(query, vars) }
				data, errors := map[string]any{}, []string{}
				for _, part := range parts {
					a := ask(part)
					maps.Copy(data, a.Data)
					errors = append(errors, spelled(a.Errors)...)
				}
				got := ask(whole)
				if is := spelled(got.Errors); !reflect.DeepEqual(got.Data, data) || !slices.Equal(is, slices.Sorted(slices.Values(errors))) {
					t.Errorf("user %s, %s\nwith %v\n%v %v\nand each alone\n%v %v", viewer, whole, vars, got.Data, is, data, errors)
				}
			})
		})
	}
}

// spelled are errors, sorted.
func spelled(list []apitest.Error) []string {
	return slices.Sorted(slices.Values(storage.Each(list, func(e apitest.Error) string { return fmt.Sprint(e.Path, e.Message, e.Extensions) })))
}
