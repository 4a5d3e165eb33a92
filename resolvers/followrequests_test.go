package resolvers_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/events"
)

// lock locks a user.
func lock(api *apitest.API, id storage.UserID) {
	api.As(id).Ask(`mutation { updateProfile(locked: true) { changed viewer { user { locked } } } }`, nil).
		Is(`{"updateProfile": {"changed": true, "viewer": {"user": {"locked": true}}}}`)
}

// A follow of a locked user waits, until the user accepts it. Each of the two sees the request; nobody counts it as a follow.
func TestAFollowOfALockedUserWaits(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		do := func(by storage.UserID, field string, other storage.UserID) apitest.Answer {
			return v.api.As(by).Ask(`mutation($u: ID!) { m: `+field+`(userId: $u) { changed viewer { user { followingCount followerCount } } user { followingCount followerCount }
				relationship { status followRequested followRequestedBy } followingEdge { cursor } } }`, apitest.Vars{"u": other})
		}
		is := func(a apitest.Answer, changed bool, mine, theirs, relationship string) {
			t.Helper()
			a.Is(fmt.Sprintf(`{"m": {"changed": %v, "viewer": {"user": {%s}}, "user": {%s}, "relationship": {%s}, "followingEdge": null}}`, changed, mine, theirs, relationship))
		}
		const none, asked, askedBy, follows, followed = `"followingCount": 0, "followerCount": 0`, `"status": "NONE", "followRequested": true, "followRequestedBy": false`,
			`"status": "NONE", "followRequested": false, "followRequestedBy": true`, `"followingCount": 1, "followerCount": 0`, `"followingCount": 0, "followerCount": 1`
		const nothing = `"status": "NONE", "followRequested": false, "followRequestedBy": false`
		lock(v.api, v.b)
		is(do(v.a, "follow", v.b), true, none, none, asked)
		is(do(v.a, "follow", v.b), false, none, none, asked)
		requests := func(by storage.UserID, direction string, want ...storage.UserID) {
			t.Helper()
			got := v.api.As(by).Ask(`{ viewer { followRequests(direction: `+direction+`) { totalCount complete nodes { id } } } }`, nil)
			var ids []string
			for _, id := range want {
				ids = append(ids, fmt.Sprintf(`{"id": "%d"}`, id))
			}
			got.Is(fmt.Sprintf(`{"viewer": {"followRequests": {"totalCount": %d, "complete": true, "nodes": [%s]}}}`, len(want), strings.Join(ids, ", ")))
		}
		requests(v.b, "RECEIVED", v.a)
		requests(v.a, "SENT", v.b)
		requests(v.b, "SENT")
		do(v.b, "acceptFollowRequest", v.c).Refused("NOT_FOUND")
		do(v.a, "acceptFollowRequest", v.b).Refused("NOT_FOUND")
		do(v.b, "acceptFollowRequest", v.b).Refused("BAD_USER_INPUT")
		is(do(v.b, "declineFollowRequest", v.a), true, none, none, nothing)
		is(do(v.b, "declineFollowRequest", v.a), false, none, none, nothing)
		is(do(v.a, "follow", v.b), true, none, none, asked)
		is(do(v.a, "unfollow", v.b), true, none, none, nothing)
		do(v.b, "acceptFollowRequest", v.a).Refused("NOT_FOUND")
		is(do(v.a, "follow", v.b), true, none, none, asked)
		const answer = `"status": "FOLLOWED_BY", "followRequested": false, "followRequestedBy": false`
		is(do(v.b, "acceptFollowRequest", v.a), true, followed, follows, answer)
		is(do(v.b, "acceptFollowRequest", v.a), false, followed, follows, answer)
		do(v.b, "declineFollowRequest", v.a).Refused("NOT_FOUND")
		requests(v.b, "RECEIVED")
		is(do(v.b, "removeFollower", v.a), true, none, none, nothing)

		// A block ends requests in both directions.
		lock(v.api, v.a)
		is(do(v.a, "follow", v.b), true, none, none, asked)
		is(do(v.b, "follow", v.a), true, none, none, `"status": "NONE", "followRequested": true, "followRequestedBy": true`)
		is(do(v.b, "block", v.a), true, none, none, nothing)
		requests(v.b, "RECEIVED")
		requests(v.a, "RECEIVED")
		do(v.a, "acceptFollowRequest", v.b).Refused("NOT_FOUND")

		// followMany asks, too, and a friendship that the locked user accepts needs no further approval.
		v.api.As(v.c).Ask(`mutation($u: [ID!]!) { followMany(userIds: $u) { outcomes { changed relationship { following followRequested } } } }`, apitest.Vars{"u": []any{v.b, v.d}}).
			Is(`{"followMany": {"outcomes": [{"changed": true, "relationship": {"following": false, "followRequested": true}}, {"changed": true, "relationship": {"following": true, "followRequested": false}}]}}`)
		v.api.As(v.c).Ask(`mutation($u: ID!) { requestFriend(userId: $u) { changed } }`, apitest.Vars{"u": v.b}).Whole()
		v.api.As(v.b).Ask(`mutation($u: ID!) { acceptFriend(userId: $u) { relationship { status followRequestedBy } } }`, apitest.Vars{"u": v.c}).
			Is(`{"acceptFriend": {"relationship": {"status": "MUTUAL", "followRequestedBy": false}}}`)
		requests(v.b, "RECEIVED")
	})
}

// Whoever unlocks leaves requests as they are, or accepts them, the oldest first and a hundred at a time.
func TestUnlockingAcceptsWhatWaits(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		const n = 130
		apitest.Users(t, store, n+1)
		var edges []storage.Edge
		for id := storage.UserID(2); id <= n+1; id++ {
			edges = append(edges, storage.Edge{From: id, To: 1, Type: storage.Requested, UpdateTime: apitest.Epoch + storage.Micros(id)})
		}
		apitest.Apply(t, store, edges...)
		deactivate(t, store, 5)
		api := apitest.New(t, store, apitest.Options{})
		lock(api, 1)
		left := func(args string, changed bool, left, followers int) {
			t.Helper()
			api.As(1).Ask(`mutation { updateProfile(`+args+`) { changed viewer { followRequests(first: 1) { totalCount nodes { id } } user { locked followerCount } } } }`, nil).
				Is(fmt.Sprintf(`{"updateProfile": {"changed": %v, "viewer": {"followRequests": {"totalCount": %d, "nodes": [%s]}, "user": {"locked": false, "followerCount": %d}}}}`,
					changed, left, map[bool]string{true: `{"id": "131"}`}[left > 0], followers))
		}
		left("locked: false", true, n-1, 0)
		left("acceptFollowRequests: true", true, n-1-100, 100)
		left("locked: false, acceptFollowRequests: true", true, 0, n-1)
		left("acceptFollowRequests: true", false, 0, n-1)
		if row := storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: 5, To: 1})[0]; row.Value.Type != storage.Requested {
			t.Errorf("that of a hidden user: %+v", row)
		}
	})
}

// One accepts and the other withdraws at once: afterwards both sides say the same, and the counts fit.
func TestAcceptWhileTheOtherWithdraws(t *testing.T) {
	onAllShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		lock(v.api, v.b)
		for range 10 {
			v.api.As(v.a).Ask(`mutation($u: ID!) { follow(userId: $u) { changed } }`, apitest.Vars{"u": v.b}).Whole()
			var both sync.WaitGroup
			both.Go(func() {
				v.api.As(v.b).Ask(`mutation($u: ID!) { acceptFollowRequest(userId: $u) { changed } }`, apitest.Vars{"u": v.a})
			})
			both.Go(func() {
				v.api.As(v.a).Ask(`mutation($u: ID!) { unfollow(userId: $u) { changed } }`, apitest.Vars{"u": v.b}).Whole()
			})
			both.Wait()
			pair := []storage.Pair{{From: v.a, To: v.b}}
			there, here := storage.EdgeLookups[storage.Forward].Read(t.Context(), v.store, pair...)[0].Value, storage.EdgeLookups[storage.Inverse].Read(t.Context(), v.store, pair...)[0].Value
			if there != here || there.Type != storage.None { // an unfollow ends a follow as well
				t.Errorf("%+v, %+v", there, here)
			}
		}
		for _, r := range storage.CountLookups.Read(t.Context(), v.store, v.a, v.b) {
			if r.Value.Following+r.Value.Follower != 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}

// The locked user is told who begins to wait, also if the event was lost; who follows at last is told of separately.
func TestFollowRequestAdded(t *testing.T) {
	store := oracle.New()
	apitest.Users(t, store, 6)
	hub := events.NewHub(nil)
	api := apitest.New(t, store, apitest.Options{Hub: hub})
	lock(api, 1)
	deactivate(t, store, 6)
	answers := subscribe(t, api, hub, 1, `subscription { followRequestAdded { edge { node { handle } } viewer { followRequests { totalCount } } } }`)
	act := func(by storage.UserID, field string, other storage.UserID) {
		api.As(by).Ask(`mutation($u: ID!) { `+field+`(userId: $u) { changed } }`, apitest.Vars{"u": other}).Whole()
	}
	until(t, answers, func(i int) { act(2, []string{"follow", "unfollow"}[i%2], 1) })
	act(2, "unfollow", 1)
	act(3, "follow", 1)
	for got := ""; !strings.Contains(got, `"u3"`); {
		select {
		case got = <-answers:
		case <-time.After(generous):
			t.Fatal("user 3 is not reported")
		}
	}
	act(1, "acceptFollowRequest", 3) // is no new request
	act(1, "follow", 4)
	act(4, "follow", 1)
	wantNext(t, answers, `{"data":{"followRequestAdded":{"edge":{"node":{"handle":"u4"}},"viewer":{"followRequests":{"totalCount":1}}}}}`)
	apitest.Apply(t, store, storage.Edge{From: 5, To: 1, Type: storage.Requested, UpdateTime: storage.MicrosOf(time.Now())})
	hub.Publish(events.Event{Kind: events.Gap})
	wantNext(t, answers, `{"data":{"followRequestAdded":{"edge":{"node":{"handle":"u5"}},"viewer":{"followRequests":{"totalCount":2}}}}}`)
}

// A locked user whom one has asked to follow is suggested no more, to oneself alone, in both orders, until the request is declined.
func TestWhoIsAskedIsNotSuggested(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.does(v.a, "follow", v.c)
		v.does(v.c, "follow", v.b)
		lock(v.api, v.b)
		suggested := func(to storage.UserID, want bool) {
			t.Helper()
			for _, order := range []string{"SHARED_COUNT", "BEST"} {
				answer := v.api.As(to).Ask(fmt.Sprintf(`{ user(by: {id: "%s"}) { followSuggestions(orderBy: %s) { nodes { id } excluded { followed dismissed } } } }`, v.a, order), nil)
				var nodes string
				if want {
					nodes = fmt.Sprintf(`{"id": "%s"}`, v.b)
				}
				answer.Is(fmt.Sprintf(`{"user": {"followSuggestions": {"nodes": [%s], "excluded": {"followed": 0, "dismissed": 0}}}}`, nodes))
			}
		}
		suggested(v.a, true)
		v.does(v.a, "follow", v.b)
		suggested(v.a, false)
		suggested(v.d, true) // does not learn of the request
		v.does(v.b, "declineFollowRequest", v.a)
		suggested(v.a, true)
		v.does(v.a, "follow", v.b)
		suggested(v.a, false)
		v.api.As(v.b).Ask(`mutation { updateProfile(locked: false) { changed } }`, nil).Is(`{"updateProfile": {"changed": true}}`)
		suggested(v.a, true) // can be followed at once
	})
}
