package loaders_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/internal/must"
	"kith/internal/storagetest"
	"kith/internal/storagetest/oracle"
	"kith/loaders"
	"kith/storage"
)

// A timer that a request must not wait for lasts far longer here than the request may take.
const long, patience = 20 * time.Second, 5 * time.Second

const users = 12

// tangledStore has a graph with lists of every visibility, hidden users, requests and marks.
func tangledStore(t *testing.T) *oracle.Store {
	store := oracle.New()
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	yes := true
	for id := storage.UserID(1); id <= users; id++ {
		followings, followers := storage.Visibility(id%3), storage.Visibility(id/3%3)
		_, _, err := store.UpdateProfile(t.Context(), id, storage.ProfileChange{FollowingsVisibility: &followings, FollowersVisibility: &followers}, apitest.Epoch+1)
		must.OK(t, err)
		if to := id%users + 1; !storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: id, To: to})[0].Found {
			continue
		} else if _, _, err := store.SetMark(t.Context(), storage.Pair{From: id, To: to}, storage.MarkChange{Special: &yes}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := store.SetState(t.Context(), 5, storage.Deactivated, apitest.Epoch)
	must.OK(t, err)
	for _, p := range []storage.Pair{{From: 2, To: 3}, {From: 4, To: 2}, {From: 2, To: 6}} {
		_, err := storagetest.Request(t.Context(), store, p, storage.EdgeChange{Type: storage.Pending, At: apitest.Epoch, Message: "hi"}, storage.ChangeOptions{Inverse: true})
		must.OK(t, err)
	}
	apitest.Block(t, store, 2, 9)
	apitest.Publish(t, store, users)
	return store
}

func tangled(t *testing.T) *apitest.API {
	return apitest.New(t, tangledStore(t), apitest.Options{
		Limits:  apitest.NoLimits,
		Context: func(ctx context.Context) context.Context { return loaders.WithWait(ctx, long) },
	})
}

func TestNoQueryWaitsOnATimer(t *testing.T) {
	api := tangled(t)
	rapid.Check(t, func(t *rapid.T) {
		query, vars := apitest.Query(t, users)
		api := api.For(t)
		if viewer := rapid.IntRange(0, users).Draw(t, "viewer"); viewer > 0 {
			api = api.As(storage.UserID(viewer))
		}
		api.AskWithin(patience, query, vars).Whole()
	})
}

func TestNoSetAnswerWaitsOnATimer(t *testing.T) {
	api := tangled(t)
	for _, query := range []string{
		`{ users(by: {ids: [1, 2, 3]}) { friends { nodes { handle } } } }`,
		`{ users(by: {ids: [1, 2, 99]}) { friends { nodes { handle } } } }`,
		`{ users(by: {ids: [1, 1, 2]}) { friends { nodes { handle } } followSuggestions { nodes { handle } } } }`,
		`{ users(by: {ids: [1, 2, 3]}) { commonFollowings(with: 5) { totalCount } commonFollowers(with: 6) { nodes { handle } } } }`,
		`{ users(by: {ids: [1, 2, 3]}) { friends { nodes { friends { nodes { friends { totalCount } } } } } } }`,
		`{ users(by: {ids: [1, 2]}) { friends { nodes { handle followSuggestions { edges { via { handle } node { handle } } } } } } }`,
		`{ user(by: {id: 1}) { followings { nodes { friends { totalCount nodes { followingCount } } } } } }`,
		`{ user(by: {id: 1}) { friends { nodes { followers { nodes { friends { totalCount } } } } } } user(by: {id: 1}) { handle } }`,
		`{ a: user(by: {id: 1}) { friends { nodes { handle } } } b: user(by: {id: 2}) { followSuggestions { nodes { handle } } } c: user(by: {id: 99}) { friends { totalCount } } }`,
		`{ relationships(from: [1, 2], to: [3, 4]) { from { friends { totalCount } } to { followSuggestions { nodes { handle } } } } }`,
		`{ users(by: {ids: [1, 2]}) { friends(first: 101) { totalCount } commonFollowers(with: "x") { totalCount } followSuggestions { nodes { handle } } } }`,
		`{ users(by: {ids: [1, 2, 3, 5]}) { followersYouKnow { totalCount } notFollowingBack { totalCount } notFollowedBack { nodes { friends { totalCount } } } followings(filter: {special: true}) { totalCount } } }`,
		`{ a: people(where: {followersOf: 1}) { nodes { friends { totalCount } } } b: people(where: {}) { totalCount } users(by: {ids: [1, 3]}) { friends { totalCount } } c: people(where: {followedBy: 2}) { totalCount } }`,
		`{ relationship(from: 2, to: 4) { to { friends { totalCount } } } user(by: {id: 9}) { friends { totalCount } } }`, // seen by user 2 only
		`{ searchUsers(text: "u") { nodes { friends { totalCount } commonFollowers(with: 3, orderBy: RECENT) { nodes { handle } } } } people(where: {friendsOf: 2}) { totalCount } }`,
	} {
		api.AskWithin(patience, query, nil)
		api.As(2).AskWithin(patience, query, nil)
	}
}
