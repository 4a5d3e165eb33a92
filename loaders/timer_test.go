package loaders_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/loaders"
	"kith/storage/memory"
)

// A timer that a request waits on lasts far longer here than the request may take.
const long, patience = 20 * time.Second, 5 * time.Second

const users = 12

func tangled(t *testing.T) *apitest.API {
	store := memory.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	return apitest.New(t, store, apitest.Options{Limits: apitest.NoLimits})
}

func TestNoQueryWaitsOnATimer(t *testing.T) {
	t.Cleanup(loaders.SetWait(long))
	api := tangled(t)
	rapid.Check(t, func(t *rapid.T) {
		query, vars := apitest.Query(t, users)
		api.For(t).AskWithin(patience, query, vars).Whole()
	})
}

func TestSetAnswersDoNotWaitForAMemberThatDoesNotCome(t *testing.T) {
	t.Cleanup(loaders.SetPatience(long))
	api := tangled(t)
	for _, query := range []string{
		`{ users(ids: [1, 2, 3]) { friends { nodes { handle } } } }`,
		`{ users(ids: [1, 2, 99]) { friends { nodes { handle } } } }`,
		`{ users(ids: [1, 1, 2]) { friends { nodes { handle } } followSuggestions { nodes { handle } } } }`,
		`{ users(ids: [1, 2, 3]) { commonFollowings(with: 5) { totalCount } commonFollowers(with: 6) { nodes { handle } } } }`,
		`{ users(ids: [1, 2, 3]) { friends { nodes { friends { nodes { friends { totalCount } } } } } } }`,
		`{ users(ids: [1, 2]) { friends { nodes { handle followSuggestions { edges { via { handle } node { handle } } } } } } }`,
		`{ user(id: 1) { followings { nodes { friends { totalCount nodes { followingCount } } } } } }`,
		`{ user(id: 1) { friends { nodes { followers { nodes { friends { totalCount } } } } } } user(id: 1) { handle } }`,
		`{ a: user(id: 1) { friends { nodes { handle } } } b: user(id: 2) { followSuggestions { nodes { handle } } } c: user(id: 99) { friends { totalCount } } }`,
		`{ relationships(from: [1, 2], to: [3, 4]) { from { friends { totalCount } } to { followSuggestions { nodes { handle } } } } }`,
		`{ users(ids: [1, 2]) { friends(first: 101) { totalCount } commonFollowers(with: "x") { totalCount } followSuggestions { nodes { handle } } } }`,
	} {
		api.AskWithin(patience, query, nil)
	}
}
