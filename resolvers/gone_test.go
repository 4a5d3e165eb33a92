package resolvers_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/sqlstore"
)

// The error of a user who cannot be read is where the null is, also behind users who are left out because they have gone.
func TestErrorsBehindWhoHasGone(t *testing.T) {
	store := double.Of(oracle.New())
	double.After(store, func(_ storage.Side, ids []storage.UserID, read []storage.Result[storage.User]) {
		if i := slices.Index(ids, 3); i >= 0 {
			read[i] = storage.Result[storage.User]{Err: storage.ErrUnavailable}
		}
	}, storage.UserLookups)
	apitest.Users(t, store, 3)
	apitest.Follow(t, store, 1, 2, 3, 4) // the newest of them is nobody
	api := apitest.New(t, store, apitest.Options{})
	answer := api.Ask(`{ user(by: {id: 1}) { followings { nodes { id handle } edges { node { handle } } } } }`, nil)
	answer.FailsAt("UNAVAILABLE", "user.followings.nodes.0", "user.followings.edges.0.node")
	nodes := answer.At("user.followings.nodes").([]any)
	check.That(t, len(nodes) == 2 && nodes[0] == nil, "%s", answer.Text)
}

// Users who have been deleted are in no list and no total, although the lists in memory lag
// behind, and nobody else is hidden. A gateway that has not heard of a deletion yet leaves them out of pages, too.
func TestDeletedUsersAreInNoList(t *testing.T) {
	store := opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 2), StatementTimeout: generous})
	apitest.Users(t, store, 20)
	var fans, lasting []storage.UserID
	for id := storage.UserID(2); id <= 15; id++ {
		fans = append(fans, id)
		apitest.Follow(t, store, id, 1, 16)
	}
	apitest.Follow(t, store, 1, fans...)
	apitest.Follow(t, store, 16, fans...)
	deleting := apitest.New(t, store, apitest.Options{})
	// The other gateways have the lists in memory, and no event reports the deletions to them.
	lagging := newWarmStore(t, store)
	unaware := apitest.New(t, lagging, apitest.Options{})
	lists := map[string]string{
		"followers": "followers(first: 20)", "friends": "friends(first: 20)", "common": "commonFollowers(with: 16, first: 20)", "followings": "followings(first: 20)",
	}
	for _, call := range lists {
		unaware.As(1).Ask(`{ user(by: {id: 1}) { list: `+call+` { totalCount nodes { id } } } }`, nil)
	}
	for _, id := range fans {
		if id%3 == 0 {
			deleting.As(id).Ask(`mutation { deleteAccount { complete } }`, nil).Is(`{"deleteAccount": {"complete": true}}`)
		} else {
			lasting = append(lasting, id)
		}
	}
	const nodes = `nodes { id name } edges { node { id name } }`
	look := func(api *apitest.API, name, call string, totals bool) {
		query := `{ user(by: {id: 1}) { list: ` + call + ` { ` + nodes
		if totals {
			query += ` totalCount`
		}
		answer := api.As(1).Ask(query+` } } }`, nil)
		must.That(t, len(answer.Errors) == 0, "%s: %s", name, answer.Text)
		var got []storage.UserID
		shown := answer.At("user.list.nodes").([]any)
		for i, n := range shown {
			edge := answer.At("user.list.edges").([]any)[i].(map[string]any)["node"]
			must.That(t, n != nil && edge != nil, "%s holds null: %s", name, answer.Text)
			id, _ := strconv.Atoi(n.(map[string]any)["id"].(string))
			got = append(got, storage.UserID(id))
		}
		slices.Sort(got)
		check.Equal(t, name, got, lasting)
		if totals && fmt.Sprint(answer.At("user.list.totalCount")) != strconv.Itoa(len(lasting)) {
			t.Errorf("%s: totalCount %v of %d", name, answer.At("user.list.totalCount"), len(lasting))
		}
	}
	aware := apitest.New(t, lagging, apitest.Options{})
	later := apitest.New(t, lagging, apitest.Options{Now: func() time.Time { return time.Now().Add(2 * time.Hour) }})
	for name, call := range lists {
		look(aware, name, call, true)
		look(unaware, name+" of a gateway that has not heard of it", call, false)
		look(later, name+" two hours later", call, false) // totals: docs/reference/guarantees.md
	}
	deleting.As(20).Ask(`mutation { deactivateAccount { __typename } }`, nil).Whole()
	aware = apitest.New(t, lagging, apitest.Options{})
	for name, call := range lists {
		look(aware, name+" with one unrelated user who is hidden", call, true)
	}
}

// A handle that was claimed for a user who has another one is nobody's.
func TestAHandleIsThatOfItsUser(t *testing.T) {
	store := storeOf(t, 2)
	must.OK(t, store.Claim(t.Context(), "late", 2, apitest.Epoch))
	api := apitest.New(t, store, apitest.Options{})
	api.Ask(`{ user(by: {handle: "late"}) { id } users(by: {handles: ["late", "u2", "U2"]}) { id handle } }`, nil).
		Is(`{"user": null, "users": [null, {"id": "2", "handle": "u2"}, {"id": "2", "handle": "u2"}]}`)
	api.Ask(`{ _entities(representations: [{__typename: "User", handle: "late"}, {__typename: "User", handle: "u2"}]) { ... on User { id } } }`, nil).
		Is(`{"_entities": [null, {"id": "2"}]}`)
}
