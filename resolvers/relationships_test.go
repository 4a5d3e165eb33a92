package resolvers_test

import (
	"fmt"
	"testing"

	"kith/graph/selections"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// pairs makes six users: 1 and 2 follow each other, 1 follows 3, 4 follows 1; the
// edges of 1 and 5 have ended, 1 blocks 6 and 6 blocks 1.
func pairs(t testing.TB, store storage.Store) *apitest.API {
	t.Helper()
	apitest.Users(t, store, 6)
	for i, e := range []storage.Edge{
		{From: 1, To: 2, Type: storage.Following}, {From: 2, To: 1, Type: storage.Following},
		{From: 1, To: 3, Type: storage.Following}, {From: 4, To: 1, Type: storage.Following},
		{From: 1, To: 5, Type: storage.None}, {From: 5, To: 1, Type: storage.None},
		{From: 1, To: 6, Type: storage.Blocking}, {From: 6, To: 1, Type: storage.Blocking},
	} {
		e.UpdateTime = apitest.Epoch + storage.Micros(i)
		apitest.Apply(t, store, e)
	}
	return apitest.New(t, store, apitest.Options{})
}

// Every pair is answered, row by row, and duplicates are repeated.
func TestRelationshipsComeRowByRow(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		api := pairs(t, store)
		api.Ask(`{ relationships(from: [2, 1, 2], to: ["1", 99, "3", 1]) { id status } }`, nil).Is(`{"relationships": [
			{"id": "rel_2_1", "status": "MUTUAL"}, {"id": "rel_2_99", "status": "NONE"}, {"id": "rel_2_3", "status": "NONE"}, {"id": "rel_2_1", "status": "MUTUAL"},
			{"id": "rel_1_1", "status": "NONE"}, {"id": "rel_1_99", "status": "NONE"}, {"id": "rel_1_3", "status": "FOLLOWING"}, {"id": "rel_1_1", "status": "NONE"},
			{"id": "rel_2_1", "status": "MUTUAL"}, {"id": "rel_2_99", "status": "NONE"}, {"id": "rel_2_3", "status": "NONE"}, {"id": "rel_2_1", "status": "MUTUAL"}
		]}`)
		for _, none := range []string{"from: [], to: [1]", "from: [1], to: []", "from: [], to: []"} {
			api.Ask(`{ relationships(`+none+`) { id } }`, nil).Is(`{"relationships": []}`)
		}
	})
}

func TestRelationshipsHaveAtMostTwoThousandPairs(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		api := pairs(t, store)
		const query = `query($from: [ID!]!, $to: [ID!]!) { relationships(from: $from, to: $to) { id status } }`
		for _, size := range [][2]int{{1, 2000}, {2000, 1}, {40, 50}} {
			answer := api.Ask(query, apitest.Vars{"from": idsUpTo(1, size[0]), "to": idsUpTo(1, size[1])}).Whole()
			list := apitest.Into[[]struct{ ID string }](answer, "relationships")
			for i, r := range list {
				must.Equal(t, size, r.ID, fmt.Sprintf("rel_%d_%d", i/size[1]+1, i%size[1]+1))
			}
			check.Equal(t, size, len(list), 2000)
		}
		for _, size := range [][2]int{{1, 2001}, {2001, 1}, {41, 50}} {
			check.Has(t, size, api.Ask(query, apitest.Vars{"from": idsUpTo(1, size[0]), "to": idsUpTo(1, size[1])}).Refused("BAD_USER_INPUT"), "2000")
		}
		for _, size := range [][2]int{{0, 2001}, {4000, 0}} { // no pairs, even with many ids
			answer := api.Ask(query, apitest.Vars{"from": idsUpTo(1, size[0]), "to": idsUpTo(1, size[1])})
			if len(answer.Errors) == 0 {
				answer.Is(`{"relationships": []}`)
			} else {
				answer.Refused("BAD_USER_INPUT")
			}
		}
	})
}

// Nobody follows oneself: lists that the viewer is on have nothing to offer there.
func TestTheViewerAmongOthers(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 3)
		apitest.Follow(t, store, 2, 1, 3)
		const query = `{ user(by: {id: 2}) { isViewer followings { nodes { id isViewer viewerRelationship { status } } edges { node { me: isViewer } } } } }`
		for _, o := range []apitest.Options{{}, {Context: selections.ByGqlgen}} {
			api := apitest.New(t, store, o)
			api.As(1).Ask(query, nil).Is(`{"user": {"isViewer": false, "followings": {
			"nodes": [{"id": "3", "isViewer": false, "viewerRelationship": {"status": "NONE"}}, {"id": "1", "isViewer": true, "viewerRelationship": null}],
			"edges": [{"node": {"me": false}}, {"node": {"me": true}}]}}}`)
			api.Ask(query, nil).Is(`{"user": {"isViewer": false, "followings": {
			"nodes": [{"id": "3", "isViewer": false, "viewerRelationship": null}, {"id": "1", "isViewer": false, "viewerRelationship": null}],
			"edges": [{"node": {"me": false}}, {"node": {"me": false}}]}}}`)
		}
	})
}
