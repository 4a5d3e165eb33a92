package resolvers_test

import (
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/storage/sqlstore"
)

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
