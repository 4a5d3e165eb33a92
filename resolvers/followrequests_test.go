package resolvers_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/storagetest/double"
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
			return v.api.As(by).Ask(`mutation($u: ID!) { m: `+apitest.Call(field, "$u")+` { changed viewer { user { followingCount followerCount } } user { followingCount followerCount }
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
			got := v.api.As(by).Ask(`{ viewer { requests(kind: FOLLOW, direction: `+direction+`) { totalCount complete nodes { id } } } }`, nil)
			var ids []string
			for _, id := range want {
				ids = append(ids, map[bool]string{true: fmt.Sprintf(`{"id": "wait_%d_%d"}`, id, by), false: fmt.Sprintf(`{"id": "wait_%d_%d"}`, by, id)}[direction == "RECEIVED"])
			}
			got.Is(fmt.Sprintf(`{"viewer": {"requests": {"totalCount": %d, "complete": true, "nodes": [%s]}}}`, len(want), strings.Join(ids, ", ")))
		}
		requests(v.b, "RECEIVED", v.a)
		requests(v.a, "SENT", v.b)
		requests(v.b, "SENT")
		do(v.b, "acceptRequest FOLLOW", v.c).Refused("NOT_FOUND")
		do(v.a, "acceptRequest FOLLOW", v.b).Refused("NOT_FOUND")
		do(v.b, "acceptRequest FOLLOW", v.b).Refused("BAD_USER_INPUT")
		is(do(v.b, "declineRequest FOLLOW", v.a), true, none, none, nothing)
		is(do(v.b, "declineRequest FOLLOW", v.a), false, none, none, nothing)
		is(do(v.a, "follow", v.b), true, none, none, asked)
		is(do(v.a, "withdrawRequest FOLLOW", v.b), true, none, none, nothing)
		is(do(v.a, "withdrawRequest FOLLOW", v.b), false, none, none, nothing)
		do(v.b, "acceptRequest FOLLOW", v.a).Refused("NOT_FOUND")
		is(do(v.a, "follow", v.b), true, none, none, asked)
		const answer = `"status": "FOLLOWED_BY", "followRequested": false, "followRequestedBy": false`
		is(do(v.b, "acceptRequest FOLLOW", v.a), true, followed, follows, answer)
		is(do(v.b, "acceptRequest FOLLOW", v.a), false, followed, follows, answer)
		do(v.b, "declineRequest FOLLOW", v.a).Refused("NOT_FOUND")
		do(v.a, "withdrawRequest FOLLOW", v.b).Refused("NOT_FOUND")
		requests(v.b, "RECEIVED")
		is(do(v.b, "removeFollower", v.a), true, none, none, nothing)
		is(do(v.b, "removeFollower", v.a), false, none, none, nothing)

		// A block ends requests in both directions.
		lock(v.api, v.a)
		is(do(v.a, "follow", v.b), true, none, none, asked)
		is(do(v.b, "follow", v.a), true, none, none, `"status": "NONE", "followRequested": true, "followRequestedBy": true`)
		is(do(v.b, "block", v.a), true, none, none, nothing)
		requests(v.b, "RECEIVED")
		requests(v.a, "RECEIVED")
		do(v.a, "acceptRequest FOLLOW", v.b).Refused("NOT_FOUND")

		// followMany asks, too, and a friendship that the locked user accepts needs no further approval.
		v.api.As(v.c).Ask(`mutation($u: [ID!]!) { followMany(userIds: $u) { outcomes { changed relationship { following followRequested } } } }`, apitest.Vars{"u": []any{v.b, v.d}}).
			Is(`{"followMany": {"outcomes": [{"changed": true, "relationship": {"following": false, "followRequested": true}}, {"changed": true, "relationship": {"following": true, "followRequested": false}}]}}`)
		v.api.As(v.c).Ask(`mutation($u: ID!) { requestFriend(userId: $u) { changed } }`, apitest.Vars{"u": v.b}).Whole()
		v.api.As(v.b).Ask(`mutation($u: ID!) { acceptRequest(kind: FRIEND, userId: $u) { relationship { status followRequestedBy } } }`, apitest.Vars{"u": v.c}).
			Is(`{"acceptRequest": {"relationship": {"status": "MUTUAL", "followRequestedBy": false}}}`)
		requests(v.b, "RECEIVED")
	})
}

// A request to follow is a node for its two users, as long as it waits, and what answers it says what has become of it.
func TestRequestsToFollowAreNodes(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		lock(v.api, v.b)
		id := fmt.Sprintf("wait_%s_%s", v.a, v.b)
		request := func(by storage.UserID, field string, other storage.UserID, want string) {
			t.Helper()
			v.api.As(by).Ask(`mutation { m: `+apitest.Call(field, other.String())+` { request { id kind state message } } }`, nil).Is(`{"m": {"request": ` + want + `}}`)
		}
		is := func(state string) string {
			return fmt.Sprintf(`{"id": %q, "kind": "FOLLOW", "state": %q, "message": null}`, id, state)
		}
		seen := func(by storage.UserID, want string) {
			t.Helper()
			v.api.As(by).Ask(`query($id: ID!) { node(id: $id) { id ... on Request { kind state message expiresAt from { handle } to { handle } } } }`, apitest.Vars{"id": id}).Is(`{"node": ` + want + `}`)
		}
		waits := fmt.Sprintf(`{"id": %q, "kind": "FOLLOW", "state": "PENDING", "message": null, "expiresAt": null, "from": {"handle": "u%s"}, "to": {"handle": "u%s"}}`, id, v.a, v.b)
		for _, end := range []struct {
			by, other    storage.UserID
			field, state string
		}{{v.b, v.a, "declineRequest FOLLOW", "DECLINED"}, {v.b, v.a, "removeFollower", "DECLINED"}, {v.a, v.b, "withdrawRequest FOLLOW", "WITHDRAWN"}, {v.a, v.b, "unfollow", "WITHDRAWN"}, {v.b, v.a, "acceptRequest FOLLOW", "ACCEPTED"}} {
			request(v.a, "follow", v.b, is("PENDING"))
			request(v.a, "follow", v.b, is("PENDING"))
			seen(v.a, waits)
			seen(v.b, waits)
			seen(v.c, "null")
			seen(0, "null")
			request(end.by, end.field, end.other, is(end.state))
			request(end.by, end.field, end.other, "null")
			seen(v.a, "null")
			seen(v.b, "null")
		}
		request(v.a, "unfollow", v.b, "null")
		request(v.a, "follow", v.b, is("PENDING"))
		v.api.As(v.a).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
		seen(v.b, "null")
		v.api.As(v.b).Ask(`mutation($u: ID!) { acceptRequest(kind: FOLLOW, userId: $u) { changed } }`, apitest.Vars{"u": v.a}).Refused("NOT_FOUND")
		for _, args := range []string{"kind: FOLLOW, state: DECLINED", "kind: FOLLOW, state: ACCEPTED"} {
			v.api.As(v.b).Ask(`{ viewer { requests(`+args+`) { totalCount } } }`, nil).FailsAt("BAD_USER_INPUT", "viewer.requests")
		}
	})
}

// Whoever unlocks leaves requests as they are, and accepts them a page at a time, each with an outcome.
func TestAcceptRequests(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		const n = 130
		apitest.Users(t, store, n+1)
		var edges, asked []storage.Edge
		for id := storage.UserID(2); id <= n+1; id++ {
			e := storage.Edge{From: id, To: 1, Type: storage.Requested, UpdateTime: apitest.Epoch + storage.Micros(id)}
			edges = append(edges, e)
			if id < 7 {
				e.Type, e.UpdateTime = storage.Pending, storage.MicrosOf(time.Now())+storage.Micros(id)
				asked = append(asked, e)
			}
		}
		apitest.Apply(t, store, edges...)
		apitest.ApplyTo(t, store, storage.Requests, asked...)
		apitest.Apply(t, store, storage.Edge{From: 100, To: 7, Type: storage.Following, UpdateTime: apitest.Epoch}, storage.Edge{From: 100, To: 8, Type: storage.Following, UpdateTime: apitest.Epoch})
		deactivate(t, store, 5)
		api := apitest.New(t, store, apitest.Options{})
		lock(api, 1)
		api.As(1).Ask(`mutation { updateProfile(locked: false) { changed viewer { requests(kind: FOLLOW) { totalCount } user { followerCount } } } }`, nil).
			Is(`{"updateProfile": {"changed": true, "viewer": {"requests": {"totalCount": 129}, "user": {"followerCount": 0}}}}`)
		api.As(1).Ask(`mutation { acceptRequests(kind: FOLLOW, first: 2) { outcomes { userId changed user { handle } relationship { status followRequestedBy } followerEdge { node { id } } followingEdge { cursor } error { code } }
			pageInfo { hasNextPage } viewer { requests(kind: FOLLOW) { totalCount } user { followerCount } } } }`, nil).
			Is(`{"acceptRequests": {"outcomes": [
				{"userId": "131", "changed": true, "user": {"handle": "u131"}, "relationship": {"status": "FOLLOWED_BY", "followRequestedBy": false}, "followerEdge": {"node": {"id": "131"}}, "followingEdge": null, "error": null},
				{"userId": "130", "changed": true, "user": {"handle": "u130"}, "relationship": {"status": "FOLLOWED_BY", "followRequestedBy": false}, "followerEdge": {"node": {"id": "130"}}, "followingEdge": null, "error": null}],
				"pageInfo": {"hasNextPage": true}, "viewer": {"requests": {"totalCount": 127}, "user": {"followerCount": 2}}}}`)
		accept := func(args string, want, left, followers int) (end string) {
			t.Helper()
			a := api.As(1).Ask(`mutation { acceptRequests(kind: FOLLOW, `+args+`) { outcomes { changed } pageInfo { endCursor } viewer { requests(kind: FOLLOW) { totalCount } user { followerCount } } } }`, nil).Whole()
			got := apitest.Into[struct {
				Outcomes []struct{ Changed bool }
				PageInfo pageInfo
				Viewer   struct {
					Requests struct{ TotalCount int }
					User     struct{ FollowerCount int }
				}
			}](a, "acceptRequests")
			check.That(t, len(got.Outcomes) == want && got.Viewer.Requests.TotalCount == left && got.Viewer.User.FollowerCount == followers, "%s: %s", args, a.Text)
			if got.PageInfo.EndCursor != nil {
				end = *got.PageInfo.EndCursor
			}
			return end
		}
		end := accept("first: 7", 7, 120, 9)
		accept(fmt.Sprintf("after: %q", end), 20, 100, 29)
		api.As(1).Ask(`mutation { acceptRequests(kind: FOLLOW, first: 101) { outcomes { changed } } }`, nil).Refused("BAD_USER_INPUT")
		api.As(1).Ask(fmt.Sprintf(`mutation { acceptRequests(kind: FRIEND, after: %q) { outcomes { changed } } }`, end), nil).Refused("BAD_USER_INPUT")
		api.Ask(`mutation { acceptRequests(kind: FOLLOW) { outcomes { changed } } }`, nil).Refused("UNAUTHENTICATED")
		accept("first: 100", 100, 0, 129)
		accept("first: 100", 0, 0, 129)
		check.Equal(t, "of a hidden user", storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: 5, To: 1})[0].Value.Type, storage.Requested)
		api.As(1).Ask(`mutation { acceptRequests(kind: FRIEND, first: 2) { outcomes { userId changed relationship { status receivedRequest { state } } followingEdge { node { id } } } viewer { requests(kind: FRIEND) { totalCount } } } }`, nil).
			Is(`{"acceptRequests": {"outcomes": [
				{"userId": "6", "changed": true, "relationship": {"status": "MUTUAL", "receivedRequest": {"state": "ACCEPTED"}}, "followingEdge": {"node": {"id": "6"}}},
				{"userId": "4", "changed": true, "relationship": {"status": "MUTUAL", "receivedRequest": {"state": "ACCEPTED"}}, "followingEdge": {"node": {"id": "4"}}}], "viewer": {"requests": {"totalCount": 2}}}}`)
	})
}

// What the payload shows of the list that was accepted is what is left of it.
func TestAcceptRequestsShowsTheListAfterwards(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		lock(v.api, v.a)
		for _, one := range [][2]string{{"FOLLOW", "follow"}, {"FRIEND", "requestFriend"}} { // friends follow each other already
			kind, ask := one[0], one[1]
			v.does(v.b, ask, v.a)
			v.does(v.c, ask, v.a)
			v.api.As(v.a).Ask(`mutation { acceptRequests(kind: `+kind+`, first: 1) { outcomes { userId } viewer { requests(kind: `+kind+`, first: 1) { nodes { from { id } } pageInfo { hasNextPage } } } } }`, nil).
				Is(fmt.Sprintf(`{"acceptRequests": {"outcomes": [{"userId": "%s"}], "viewer": {"requests": {"nodes": [{"from": {"id": "%s"}}], "pageInfo": {"hasNextPage": false}}}}}`, v.c, v.b))
		}
	})
}

// Who may follow nobody else goes on waiting, with the reason in its outcome.
func TestAcceptRequestsSaysWhoIsRefused(t *testing.T) {
	onShards(t, apitest.Options{MaxFollowing: 1}, func(t *testing.T, v *village) {
		lock(v.api, v.a)
		v.does(v.b, "follow", v.a)
		v.does(v.c, "follow", v.a)
		apitest.Apply(t, v.store, storage.Edge{From: v.b, To: v.d, Type: storage.Following, UpdateTime: apitest.Epoch}, storage.Edge{From: v.b, To: v.c, Type: storage.Following, UpdateTime: apitest.Epoch})
		const accept = `mutation { acceptRequests(kind: FOLLOW) { outcomes { userId changed followerEdge { node { id } } error { code reason } } } }`
		refused := fmt.Sprintf(`{"userId": "%s", "changed": false, "followerEdge": null, "error": {"code": "LIMIT_REACHED", "reason": "TOO_MANY_FOLLOWS_OF_OTHER"}}`, v.b)
		v.api.As(v.a).Ask(accept, nil).Is(fmt.Sprintf(`{"acceptRequests": {"outcomes": [{"userId": "%s", "changed": true, "followerEdge": {"node": {"id": "%[1]s"}}, "error": null}, %s]}}`, v.c, refused))
		v.api.As(v.a).Ask(accept, nil).Is(`{"acceptRequests": {"outcomes": [` + refused + `]}}`)
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
				v.api.As(v.b).Ask(`mutation($u: ID!) { acceptRequest(kind: FOLLOW, userId: $u) { changed } }`, apitest.Vars{"u": v.a})
			})
			both.Go(func() {
				v.api.As(v.a).Ask(`mutation($u: ID!) { unfollow(userId: $u) { changed } }`, apitest.Vars{"u": v.b}).Whole()
			})
			both.Wait()
			pair := []storage.Pair{{From: v.a, To: v.b}}
			there, here := storage.EdgeLookups[storage.Forward].Read(t.Context(), v.store, pair...)[0].Value, storage.EdgeLookups[storage.Inverse].Read(t.Context(), v.store, pair...)[0].Value
			check.That(t, there == here && there.Type == storage.None, "%+v, %+v", there, here) // an unfollow ends a follow as well
		}
		for _, r := range storage.CountLookups.Read(t.Context(), v.store, v.a, v.b) {
			check.Equal(t, "counts", r.Value.Following+r.Value.Follower, 0)
		}
	})
}

// Both users are told of requests to follow that are made, accepted, declined and withdrawn, also if the event was lost, and of nothing else.
func TestRequestChangedTellsOfFollows(t *testing.T) {
	for _, over := range apitest.Transports {
		store, hub := oracle.New(), events.NewHub(nil)
		apitest.Users(t, store, 7)
		deactivate(t, store, 6)
		api := apitest.New(t, store, apitest.Options{Hub: hub})
		lock(api, 1)
		act := func(by storage.UserID, field string, other storage.UserID) {
			api.As(by).Ask(`mutation($u: ID!) { `+apitest.Call(field, "$u")+` { changed } }`, apitest.Vars{"u": other}).Whole()
		}
		act(7, "follow", 1) // before anybody listens
		open := func(by storage.UserID, args string) <-chan string {
			answers := api.As(by).Subscribe(t.Context(), over, `subscription { requestChanged`+args+` { request { id kind state message expiresAt from { handle } } viewer { requests(kind: FOLLOW) { totalCount } } } }`, nil)
			until(t, answers, func(i int) { act(2, []string{"follow", "withdrawRequest FOLLOW"}[i%2], 1) })
			return answers
		}
		act(2, "unfollow", 1)
		to := open(1, "")
		act(2, "unfollow", 1)
		act(3, "follow", 1)
		for got := ""; !strings.Contains(got, "wait_3_1"); { // what is before is from the beginning of the test
			got = next(t, to)
		}
		want := func(from storage.UserID, state string, waiting int) {
			t.Helper()
			wantNext(t, to, fmt.Sprintf(`{"data":{"requestChanged":{"request":{"id":"wait_%d_1","kind":"FOLLOW","state":%q,"message":null,"expiresAt":null,"from":{"handle":"u%[1]d"}},"viewer":{"requests":{"totalCount":%[3]d}}}}}`, from, state, waiting))
		}
		act(1, "acceptRequest FOLLOW", 3)
		want(3, "ACCEPTED", 1)
		act(3, "unfollow", 1)
		now := storage.MicrosOf(time.Now())
		asked := events.Event{Row: storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 3, To: 1, Type: storage.Requested, UpdateTime: now}}}
		accepted := asked
		accepted.Edge.Type, accepted.Edge.UpdateTime = storage.Following, now+1
		apitest.Apply(t, store, asked.Edge, accepted.Edge)
		hub.Publish(asked, accepted) // before the first of them is read
		want(3, "ACCEPTED", 1)
		act(3, "unfollow", 1) // is no request any more
		act(1, "follow", 4)   // nor is this
		act(7, "withdrawRequest FOLLOW", 1)
		want(7, "WITHDRAWN", 0)
		for _, end := range []struct {
			by, other    storage.UserID
			field, state string
		}{{1, 4, "declineRequest FOLLOW", "DECLINED"}, {1, 4, "removeFollower", "DECLINED"}, {4, 1, "unfollow", "WITHDRAWN"}, {4, 1, "block", "WITHDRAWN"}} {
			act(4, "follow", 1)
			want(4, "PENDING", 1)
			act(end.by, end.field, end.other)
			want(4, end.state, 0)
		}
		at := storage.MicrosOf(time.Now())
		apitest.Apply(t, store, storage.Edge{From: 5, To: 1, Type: storage.Requested, UpdateTime: at})
		hub.Publish(events.Event{Kind: events.Gap})
		want(5, "PENDING", 1)
		apitest.Apply(t, store, storage.Edge{From: 5, To: 1, Type: storage.Following, UpdateTime: at + 1}, storage.Edge{From: 6, To: 1, Type: storage.Requested, UpdateTime: at})
		hub.Publish(events.Event{Kind: events.Gap})
		want(5, "ACCEPTED", 0)
		api.As(1).Ask(`mutation { requestFriend(userId: 7) { changed } }`, nil).Whole()
		check.Has(t, "who is asked", next(t, to), `"id":"req_1_7","kind":"FRIEND","state":"PENDING"`)

		// Who asked is told, too, and only of what it asks for.
		from := api.As(2).Subscribe(t.Context(), over, `subscription { requestChanged(kind: FOLLOW) { request { id state to { handle } } } }`, nil)
		until(t, from, func(i int) { act(2, []string{"follow", "withdrawRequest FOLLOW"}[i%2], 1) })
		act(2, "unfollow", 1)
		api.As(2).Ask(`mutation { requestFriend(userId: 3) { changed } }`, nil).Whole()
		act(2, "follow", 1)
		for _, state := range []string{"PENDING", "ACCEPTED"} { // a request that ends before it was reported is reported once, as ended
			if state == "ACCEPTED" {
				act(1, "acceptRequest FOLLOW", 2)
			}
			for got := ""; !strings.Contains(got, state); {
				got = next(t, from)
				check.Lacks(t, "who has asked", got, "req_")
			}
		}
	}
}

// Requests of both kinds are told of that are made while the subscription begins: what the client has read may be older.
func TestRequestsAreToldOfThatAreMadeAsTheSubscriptionBegins(t *testing.T) {
	for _, field := range []string{"follow", "requestFriend"} {
		store, once := double.Of(oracle.New()), sync.Once{}
		apitest.Users(t, store, 3)
		api := apitest.New(t, store, apitest.Options{Hub: events.NewHub(nil)})
		lock(api, 1)
		act := func(by storage.UserID) { api.As(by).Ask(`mutation { `+field+`(userId: 1) { changed } }`, nil).Whole() }
		double.Before(store, func(_ context.Context, pages []storage.PageQuery) error { // the subscription reads which requests to follow there are
			if pages[0].Type == storage.Requested {
				once.Do(func() { act(2) })
			}
			return nil
		}, storage.PageLookups[storage.Inverse])
		answers := api.As(1).Subscribe(t.Context(), apitest.Transports[0], `subscription { requestChanged { request { id } } }`, nil)
		first := until(t, answers, func(i int) {
			if i == 10 { // by now the first would have come
				act(3)
			}
		})
		check.Has(t, field, first, "_2_1")
	}
}

// However many ask the viewer, the end of what it has asked itself is told.
func TestManyRequestsLeaveRoomForThoseOfTheOtherSide(t *testing.T) {
	store, hub := oracle.New(), events.NewHub(nil)
	apitest.Users(t, store, 1003)
	api := apitest.New(t, store, apitest.Options{Hub: hub})
	lock(api, 1)
	lock(api, 2)
	act := func(by storage.UserID, field string, other storage.UserID) {
		api.As(by).Ask(`mutation($u: ID!) { `+apitest.Call(field, "$u")+` { changed } }`, apitest.Vars{"u": other}).Whole()
	}
	ask := func(first, last storage.UserID) {
		for id := first; id <= last; id++ {
			apitest.Apply(t, store, storage.Edge{From: id, To: 1, Type: storage.Requested, UpdateTime: apitest.Epoch + storage.Micros(id)})
		}
	}
	apitest.Apply(t, store, storage.Edge{From: 1, To: 2, Type: storage.Requested, UpdateTime: apitest.Epoch})
	ask(3, 502)
	answers := api.As(1).Subscribe(t.Context(), apitest.Transports[0], `subscription { requestChanged(kind: FOLLOW) { request { id state } } }`, nil)
	until(t, answers, func(i int) { act(1003, []string{"follow", "withdrawRequest FOLLOW"}[i%2], 1) })
	ask(503, 1002)
	hub.Publish(events.Event{Kind: events.Gap})
	for got := ""; !strings.Contains(got, "wait_1002_1"); {
		got = next(t, answers)
	}
	act(2, "acceptRequest FOLLOW", 1)
	for got := ""; !strings.Contains(got, `{"id":"wait_1_2","state":"ACCEPTED"}`); {
		got = next(t, answers)
	}
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
		v.does(v.b, "declineRequest FOLLOW", v.a)
		suggested(v.a, true)
		v.does(v.a, "follow", v.b)
		suggested(v.a, false)
		v.api.As(v.b).Ask(`mutation { updateProfile(locked: false) { changed } }`, nil).Is(`{"updateProfile": {"changed": true}}`)
		suggested(v.a, true) // can be followed at once
	})
}

// The token of many requests to follow is as short as that of many follows, and a read with it waits for them.
func TestTokensOfManyRequestsAreShort(t *testing.T) {
	for _, o := range []apitest.Options{{}, {Redundancy: never{}}} {
		api, _ := withUsers(t, 41, o)
		var ids []string
		for id := storage.UserID(2); id <= 41; id++ {
			lock(api, id)
			ids = append(ids, id.String())
		}
		token := api.As(1).Ask(`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { changed } } }`, apitest.Vars{"ids": ids}).Whole().Token()
		check.Most(t, "the length of the token", len(token), 100)
		read := api.As(1).With("Kith-Consistency", token).Ask(`{ viewer { id } }`, nil).Whole()
		check.Equal(t, fmt.Sprintf("with %v, a read is stale", o.Redundancy), read.Stale(), o.Redundancy != nil)
	}
}
