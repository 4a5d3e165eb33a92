package resolvers_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/events"
	"kith/storage/sqlstore"
)

// village is four users on two shards: a and c on one, b and d on the other.
type village struct {
	t          *testing.T
	store      storage.Store
	api        *apitest.API
	hub        *events.Hub
	a, b, c, d storage.UserID
	later      *atomic.Int64 // how far ahead of real time the clock is
}

// onShards runs a test on the reference store, and on engines when [onStores] does.
func onShards(t *testing.T, o apitest.Options, test func(t *testing.T, v *village)) {
	t.Helper()
	if allEngines() {
		onAllShards(t, o, test)
		return
	}
	t.Run("memory", func(t *testing.T) { test(t, settle(t, oracle.New(), o)) })
}

// onAllShards runs a test, such as one of what is done at once, on the reference store, on two files, and on two servers.
func onAllShards(t *testing.T, o apitest.Options, test func(t *testing.T, v *village)) {
	t.Helper()
	open := func(t *testing.T, location string) storage.Store {
		return opened.Store(t, sqlstore.Config{Location: location, StatementTimeout: generous})
	}
	t.Run("memory", func(t *testing.T) { test(t, settle(t, oracle.New(), o)) })
	t.Run("SQLite", func(t *testing.T) { test(t, settle(t, open(t, apitest.Location(t, 2)), o)) })
	t.Run("MariaDB", func(t *testing.T) {
		dsns := testenv.SharedMariaDB(t, 2).FreshDatabases(t, 1)
		test(t, settle(t, open(t, "mysql:"+strings.Join(dsns, ";")), o))
	})
}

// settle creates forty users and picks four.
func settle(t *testing.T, store storage.Store, o apitest.Options) *village {
	t.Helper()
	apitest.Users(t, store, 40)
	v := &village{t: t, store: store, later: &atomic.Int64{}, hub: events.NewHub(nil)}
	o.Hub = v.hub
	o.Now = func() time.Time { return time.Now().Add(time.Duration(v.later.Load())) }
	v.api = apitest.New(t, store, o)
	shards := storage.NewShardMap(2)
	var on [2][]storage.UserID
	for id := storage.UserID(1); id <= 40; id++ {
		on[shards.Of(id)] = append(on[shards.Of(id)], id)
	}
	v.a, v.b, v.c, v.d = on[0][0], on[1][0], on[0][1], on[1][1]
	return v
}

func (v *village) pass(d time.Duration) { v.later.Add(int64(d)) }

// do has a user do something to another, and returns the whole answer, with `changed`.
func (v *village) do(user storage.UserID, field string, other storage.UserID) apitest.Answer {
	v.t.Helper()
	return v.api.As(user).Ask(`mutation($id: ID!) { done: `+apitest.Call(field, "$id")+` { changed } }`, apitest.Vars{"id": other.String()})
}

// does is do for an act that must change something.
func (v *village) does(user storage.UserID, field string, other storage.UserID) {
	v.t.Helper()
	v.do(user, field, other).Is(`{"done": {"changed": true}}`)
}

// doesNothing is do for an act that must change nothing.
func (v *village) doesNothing(user storage.UserID, field string, other storage.UserID) {
	v.t.Helper()
	v.do(user, field, other).Is(`{"done": {"changed": false}}`)
}

// standing is how one user stands towards another, as the first one sees it: the status, and
// everything else between them.
func (v *village) standing(from, to storage.UserID) string {
	v.t.Helper()
	answer := v.api.As(from).Ask(`query($from: ID!, $to: ID!) { relationship(from: $from, to: $to) {
		status blocking blockedBy sentRequest { state } receivedRequest { state } } }`,
		apitest.Vars{"from": from.String(), "to": to.String()}).Whole()
	r := apitest.Into[struct {
		Status              string
		Blocking, BlockedBy bool
		SentRequest         *struct{ State string }
		ReceivedRequest     *struct{ State string }
	}](answer, "relationship")
	text := r.Status
	if r.Blocking {
		text += " blocking"
	}
	if r.BlockedBy {
		text += " blocked"
	}
	if r.SentRequest != nil {
		text += " sent " + r.SentRequest.State
	}
	if r.ReceivedRequest != nil {
		text += " received " + r.ReceivedRequest.State
	}
	return text
}

// stand checks how two users stand towards each other, as both see it, and compares their counts
// with their edges.
func (v *village) stand(a, b storage.UserID, aSees, bSees string) {
	v.t.Helper()
	check.Equal(v.t, fmt.Sprintf("%s sees towards %s", a, b), v.standing(a, b), aSees)
	check.Equal(v.t, fmt.Sprintf("%s sees towards %s", b, a), v.standing(b, a), bSees)
	v.counts(a, b)
}

// counts compares the counts of users with their edges.
func (v *village) counts(users ...storage.UserID) {
	v.t.Helper()
	for i, r := range storage.CountLookups.Read(v.t.Context(), v.store, users...) {
		out := storage.NeighbourLookups[storage.Forward].Read(v.t.Context(), v.store, users[i:i+1]...)[0].Value
		in := storage.NeighbourLookups[storage.Inverse].Read(v.t.Context(), v.store, users[i:i+1]...)[0].Value
		want := storage.Counts{Following: int64(len(out)), Follower: int64(len(in)), Version: r.Value.Version}
		for _, id := range out {
			if _, mutual := slices.BinarySearch(in, id); mutual {
				want.Friend++
			}
		}
		check.Equal(v.t, fmt.Sprint("counts of user ", users[i]), must.Value(v.t, r), want)
	}
}

// The messages of FORBIDDEN. They reveal only what the viewer's relationship to the user shows.
const (
	blocking = "you block this user: unblock it first"
	blocked  = "this user blocks you"
	declined = "this user has declined your request: ask again later"
)

// impossible checks that an act is refused, for this reason.
func (v *village) impossible(user storage.UserID, field string, other storage.UserID, why string) {
	v.t.Helper()
	check.Equal(v.t, field, v.do(user, field, other).Refused("FORBIDDEN"), why)
}

func (v *village) twoPairs() [][2]storage.UserID {
	return [][2]storage.UserID{{v.a, v.c}, {v.a, v.b}} // a pair on one shard, and a pair on two
}

func TestBlock(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		for _, pair := range v.twoPairs() {
			a, b := pair[0], pair[1]
			v.does(a, "follow", b)
			v.does(b, "follow", a)
			v.stand(a, b, "MUTUAL", "MUTUAL")

			v.api.As(a).Ask(`mutation($id: ID!) { block(userId: $id) { changed
				viewer { user { followingCount followerCount friendCount } } user { followingCount followerCount }
				relationship { status blocking blockedBy } } }`, apitest.Vars{"id": b.String()}).Is(`{"block": {"changed": true,
				"viewer": {"user": {"followingCount": 0, "followerCount": 0, "friendCount": 0}}, "user": {"followingCount": 0, "followerCount": 0},
				"relationship": {"status": "NONE", "blocking": true, "blockedBy": false}}}`)
			v.stand(a, b, "NONE blocking", "NONE blocked")
			v.doesNothing(a, "block", b)
			for i, one := range [][2]storage.UserID{{a, b}, {b, a}} {
				why := []string{blocking, blocked}[i]
				v.impossible(one[0], "follow", one[1], why)
				v.impossible(one[0], "requestFriend", one[1], why)
				v.doesNothing(one[0], "unfollow", one[1])
				v.doesNothing(one[0], "removeFriend", one[1])
			}
			v.api.As(b).Ask(`mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { changed error { code message } } } }`,
				apitest.Vars{"ids": []string{a.String(), v.d.String()}}).Is(`{"followMany": {"outcomes": [
				{"changed": false, "error": {"code": "FORBIDDEN", "message": "` + blocked + `"}}, {"changed": true, "error": null}]}}`)
			v.does(b, "unfollow", v.d)

			v.does(b, "block", a) // they block each other
			v.stand(a, b, "NONE blocking blocked", "NONE blocking blocked")
			v.impossible(b, "follow", a, blocking)
			v.does(a, "unblock", b)
			v.doesNothing(a, "unblock", b)
			v.stand(a, b, "NONE blocked", "NONE blocking")
			v.impossible(a, "follow", b, blocked)
			v.does(b, "unblock", a)
			v.stand(a, b, "NONE", "NONE") // follows that a block ended stay ended
			v.does(a, "follow", b)
			v.doesNothing(a, "unblock", b) // unblocking ends no follow
			v.stand(a, b, "FOLLOWING", "FOLLOWED_BY")
			v.does(a, "unfollow", b)

			// Requests end in both directions.
			v.does(a, "requestFriend", b)
			v.does(b, "block", a)
			v.stand(a, b, "NONE blocked sent WITHDRAWN", "NONE blocking received WITHDRAWN")
			v.does(b, "unblock", a)
			v.does(a, "requestFriend", b)
			v.does(a, "block", b)
			v.stand(a, b, "NONE blocking sent WITHDRAWN", "NONE blocked received WITHDRAWN")
			v.do(b, "acceptRequest FRIEND", a).Refused("FORBIDDEN")
			v.does(a, "unblock", b)
		}
		v.do(v.a, "block", v.a).Refused("BAD_USER_INPUT")
		v.do(v.a, "block", 77).Refused("NOT_FOUND")
		v.doesNothing(v.a, "unblock", 77)
		v.do(99, "block", v.a).Refused("UNAUTHENTICATED")
		v.do(0, "block", v.a).Refused("UNAUTHENTICATED")
	})
}

func TestBlockedUsers(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		others := make([]string, 0, 30)
		for id := storage.UserID(1); len(others) < 30; id++ {
			if id != v.a {
				v.does(v.a, "block", id)
				others = append([]string{id.String()}, others...)
			}
		}
		v.does(v.a, "unblock", userID(t, others[3]))
		others = slices.Delete(others, 3, 4)
		hidden := userID(t, others[5])
		v.api.As(hidden).Ask(`mutation { deactivateAccount { changed } }`, nil).Is(`{"deactivateAccount": {"changed": true}}`)
		others = slices.Delete(others, 5, 6)

		me := v.api.As(v.a)
		var got []string
		const query = `query($after: String) { viewer { blockedUsers(first: 7, after: $after) { totalCount complete nodes { id handle } edges { followedAt: blockedAt node { id } } pageInfo { hasNextPage hasPreviousPage endCursor } } } }`
		for _, answer := range pagesAt(me, query, nil, "viewer.blockedUsers") {
			p := apitest.Into[page](answer, "viewer.blockedUsers")
			must.That(t, p.TotalCount == len(others) && p.Complete && !p.PageInfo.HasPreviousPage, "total %d of %d, complete %t, previous %t", p.TotalCount, len(others), p.Complete, p.PageInfo.HasPreviousPage)
			for _, e := range p.Edges {
				pair := storage.Pair{From: v.a, To: userID(t, e.Node.ID)}
				block := storage.EdgeLookups[storage.Forward].Read(t.Context(), v.store, pair)[0].Value.UpdateTime.Time().Format("2006-01-02T15:04:05.000000Z")
				check.Equal(t, e.Node.ID+" was blocked at", e.FollowedAt, &block)
			}
			for _, n := range p.Nodes {
				got = append(got, n.ID)
			}
			must.That(t, !p.PageInfo.HasNextPage || len(p.Nodes) == 7, "a page of %d goes on", len(p.Nodes))
		}
		check.Equal(t, "blocked", got, others)
		me.Ask(`{ viewer { blockedUsers(first: 0) { totalCount nodes { id } } } }`, nil).
			Is(fmt.Sprintf(`{"viewer": {"blockedUsers": {"totalCount": %d, "nodes": []}}}`, len(others)))
		me.Ask(`{ viewer { blockedUsers(after: "nonsense") { totalCount } } }`, nil).FailsAt("BAD_USER_INPUT", "viewer.blockedUsers")
	})
}

const (
	week  = 7 * 24 * time.Hour
	month = 30 * 24 * time.Hour
)

// The message of a request is for whoever may still answer it.
func TestAMessageIsGoneWithItsRequest(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		v.api.As(v.a).Ask(`mutation($id: ID!) { requestFriend(userId: $id, message: "hello") { request { message } } }`, apitest.Vars{"id": v.b}).Is(`{"requestFriend": {"request": {"message": "hello"}}}`)
		v.pass(3*month + 4*time.Minute)
		v.api.As(v.b).Ask(`{ viewer { requests(kind: FRIEND, state: EXPIRED) { nodes { state message } } } }`, nil).Is(`{"viewer": {"requests": {"nodes": [{"state": "EXPIRED", "message": null}]}}}`)
	})
}

func TestFriendRequests(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		for _, pair := range v.twoPairs() {
			a, b := pair[0], pair[1]
			v.api.As(a).Ask(`mutation($id: ID!) { requestFriend(userId: $id, message: " hello\n ") { changed
				request { state message from { handle } to { handle } }
				relationship { status sentRequest { state } receivedRequest { state } } user { handle } viewer { user { handle } } } }`,
				apitest.Vars{"id": b.String()}).Is(fmt.Sprintf(`{"requestFriend": {"changed": true,
				"request": {"state": "PENDING", "message": "hello", "from": {"handle": "u%[1]s"}, "to": {"handle": "u%[2]s"}},
				"relationship": {"status": "NONE", "sentRequest": {"state": "PENDING"}, "receivedRequest": null},
				"user": {"handle": "u%[2]s"}, "viewer": {"user": {"handle": "u%[1]s"}}}}`, a, b))
			v.doesNothing(a, "requestFriend", b) // a double click
			v.api.As(b).Ask(`{ viewer { requests(kind: FRIEND, direction: RECEIVED) { totalCount complete nodes { id message from { handle } } } } }`, nil).
				Is(fmt.Sprintf(`{"viewer": {"requests": {"totalCount": 1, "complete": true, "nodes": [
				{"id": "req_%[1]s_%[2]s", "message": "hello", "from": {"handle": "u%[1]s"}}]}}}`, a, b))
			v.do(a, "acceptRequest FRIEND", b).Refused("NOT_FOUND") // only the other user can accept it
			v.do(b, "withdrawRequest FRIEND", a).Refused("NOT_FOUND")

			v.api.As(b).Ask(`mutation($id: ID!) { acceptRequest(kind: FRIEND, userId: $id) { changed request { state message expiresAt }
				viewer { user { followingCount followerCount friendCount } } user { followingCount followerCount friendCount } relationship { status } } }`,
				apitest.Vars{"id": a.String()}).Is(`{"acceptRequest": {"changed": true, "request": {"state": "ACCEPTED", "message": null, "expiresAt": null},
				"viewer": {"user": {"followingCount": 1, "followerCount": 1, "friendCount": 1}},
				"user": {"followingCount": 1, "followerCount": 1, "friendCount": 1}, "relationship": {"status": "MUTUAL"}}}`)
			v.stand(a, b, "MUTUAL sent ACCEPTED", "MUTUAL received ACCEPTED")
			v.doesNothing(b, "acceptRequest FRIEND", a)
			v.doesNothing(a, "requestFriend", b) // they are friends
			v.do(b, "declineRequest FRIEND", a).Refused("NOT_FOUND")
			v.do(a, "withdrawRequest FRIEND", b).Refused("NOT_FOUND")

			v.does(b, "removeFriend", a)
			v.stand(a, b, "NONE sent ACCEPTED received REMOVED", "NONE sent REMOVED received ACCEPTED")
			v.doesNothing(b, "removeFriend", a)
			v.doesNothing(a, "removeFriend", b)

			v.does(a, "requestFriend", b)
			v.does(b, "declineRequest FRIEND", a)
			v.doesNothing(b, "declineRequest FRIEND", a)
			v.stand(a, b, "NONE sent DECLINED received REMOVED", "NONE sent REMOVED received DECLINED")
			v.do(b, "acceptRequest FRIEND", a).Refused("NOT_FOUND")
			v.impossible(a, "requestFriend", b, declined) // it is too soon
			check.Equal(t, "the wait before it may ask again", fmt.Sprint(v.do(a, "requestFriend", b).Errors[0].Extensions["retryAfter"]), fmt.Sprint(week.Seconds()))
			v.pass(week - time.Minute)
			v.impossible(a, "requestFriend", b, declined)
			v.pass(2 * time.Minute)
			v.does(a, "requestFriend", b)

			v.does(a, "withdrawRequest FRIEND", b)
			v.doesNothing(a, "withdrawRequest FRIEND", b)
			v.do(b, "acceptRequest FRIEND", a).Refused("NOT_FOUND")
			v.does(a, "requestFriend", b) // a user who cancels may ask again at once

			v.pass(3*month - time.Minute)
			v.stand(a, b, "NONE sent PENDING received REMOVED", "NONE sent REMOVED received PENDING")
			v.pass(4 * time.Minute)
			v.stand(a, b, "NONE sent EXPIRED received REMOVED", "NONE sent REMOVED received EXPIRED")
			v.do(b, "acceptRequest FRIEND", a).Refused("NOT_FOUND")
			v.do(b, "declineRequest FRIEND", a).Refused("NOT_FOUND")
			for _, state := range []string{"PENDING", "EXPIRED"} {
				want := map[string]int{"EXPIRED": 1}[state]
				answer := v.api.As(a).Ask(`query($s: RequestState!) { viewer { requests(kind: FRIEND, direction: SENT, state: $s) { totalCount nodes { state } } } }`, apitest.Vars{"s": state})
				p := apitest.Into[page](answer, "viewer.requests")
				check.That(t, p.TotalCount == want && len(p.Nodes) == want, "%s: %s", state, answer.Text)
			}
			v.does(b, "requestFriend", a) // this does not accept the expired request
			v.stand(a, b, "NONE sent EXPIRED received PENDING", "NONE sent PENDING received EXPIRED")
			v.does(a, "requestFriend", b) // two requests that cross
			v.stand(a, b, "MUTUAL sent ACCEPTED received ACCEPTED", "MUTUAL sent ACCEPTED received ACCEPTED")
			v.does(a, "unfollow", b)
			v.does(b, "unfollow", a)
			v.does(b, "follow", a)
			v.does(a, "follow", b)
			v.does(a, "removeFriend", b) // they are friends by follows alone
			got := v.standing(a, b)
			check.That(t, strings.HasPrefix(got, "NONE "), "after removing a friend: %s", got)
			v.counts(a, b)
		}
		v.do(v.a, "requestFriend", v.a).Refused("BAD_USER_INPUT")
		v.do(v.a, "acceptRequest FRIEND", v.a).Refused("BAD_USER_INPUT")
		v.do(v.a, "requestFriend", 77).Refused("NOT_FOUND")
		v.do(v.a, "acceptRequest FRIEND", 77).Refused("NOT_FOUND")
		v.do(99, "requestFriend", v.a).Refused("UNAUTHENTICATED")
		v.api.As(v.a).Ask(`mutation($id: ID!, $m: String) { requestFriend(userId: $id, message: $m) { changed } }`,
			apitest.Vars{"id": v.d.String(), "m": strings.Repeat("é", 301)}).Refused("BAD_USER_INPUT")
		v.api.As(v.a).Ask(`mutation($id: ID!, $m: String) { requestFriend(userId: $id, message: $m) { changed } }`,
			apitest.Vars{"id": v.d.String(), "m": strings.Repeat("é", 300)}).Whole()
	})
}

// Both need room for one more following. The one who accepts is checked first.
func TestAcceptingKeepsTheLimitOfFollowings(t *testing.T) {
	onShards(t, apitest.Options{MaxFollowing: 1}, func(t *testing.T, v *village) {
		v.does(v.a, "requestFriend", v.b)
		v.does(v.b, "follow", v.c)
		v.do(v.b, "acceptRequest FRIEND", v.a).Refused("LIMIT_REACHED")
		v.does(v.b, "unfollow", v.c)
		v.does(v.a, "follow", v.c)
		message := v.do(v.b, "acceptRequest FRIEND", v.a).Refused("LIMIT_REACHED")
		check.Has(t, "whose limit it is", message, "the other user")
		v.stand(v.a, v.b, "NONE sent PENDING", "NONE received PENDING")
		v.does(v.a, "unfollow", v.c)
		v.does(v.a, "follow", v.b) // a user who follows already needs no room
		v.does(v.b, "acceptRequest FRIEND", v.a)
		v.stand(v.a, v.b, "MUTUAL sent ACCEPTED", "MUTUAL received ACCEPTED")
	})
}

// atOnce does several acts at once, and counts how many of them changed something.
func (v *village) atOnce(acts ...func() apitest.Answer) (changed int) {
	v.t.Helper()
	answers := make([]apitest.Answer, len(acts))
	var all sync.WaitGroup
	for i, act := range acts {
		all.Go(func() { answers[i] = act() })
	}
	all.Wait()
	for _, a := range answers {
		if len(a.Errors) == 0 && a.At("done.changed") == true {
			changed++
		}
	}
	return changed
}

func (v *village) will(user storage.UserID, field string, other storage.UserID) func() apitest.Answer {
	return func() apitest.Answer { return v.do(user, field, other) }
}

// Double clicks and races leave one outcome.
func TestRacesLeaveOneOutcome(t *testing.T) {
	onAllShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		const rounds = 4 // one for each act at the same time as a block
		for n := range rounds {
			for _, pair := range v.twoPairs() {
				a, b := pair[0], pair[1]
				click := func(user storage.UserID, field string, other storage.UserID) {
					t.Helper()
					changed := v.atOnce(v.will(user, field, other), v.will(user, field, other), v.will(user, field, other), v.will(user, field, other))
					check.Equal(t, "of four equal "+field+" that changed something", changed, 1)
				}
				clear := func() {
					t.Helper()
					for _, one := range [][2]storage.UserID{{a, b}, {b, a}} {
						v.do(one[0], "unblock", one[1]).Whole()
						v.do(one[0], "removeFriend", one[1]).Whole()
						v.do(one[0], "unfollow", one[1]).Whole()
						v.do(one[0], "withdrawRequest FRIEND", one[1])
					}
				}
				click(a, "requestFriend", b)
				click(b, "acceptRequest FRIEND", a)
				v.both(a, b, "MUTUAL")
				click(a, "block", b)
				v.both(a, b, "NONE")
				click(a, "unblock", b)

				// Two users who ask each other at the same time become friends.
				v.atOnce(v.will(a, "requestFriend", b), v.will(b, "requestFriend", a))
				v.both(a, b, "MUTUAL")
				clear()

				// One user accepts while the other takes the request back: one of the two succeeds.
				v.does(a, "requestFriend", b)
				check.Equal(t, "of accepting and cancelling, that changed something", v.atOnce(v.will(b, "acceptRequest FRIEND", a), v.will(a, "withdrawRequest FRIEND", b)), 1)
				if got := v.standing(a, b); strings.Contains(got, "sent ACCEPTED") {
					v.both(a, b, "MUTUAL")
				} else {
					v.both(a, b, "NONE")
				}
				clear()

				// If a block and any other act happen at once, the block wins.
				v.does(a, "requestFriend", b)
				other := []func() apitest.Answer{
					v.will(b, "acceptRequest FRIEND", a), v.will(b, "requestFriend", a), v.will(b, "follow", a), v.will(a, "follow", b),
				}[n%4]
				blocker := [2]storage.UserID{a, b}
				if n%2 == 1 {
					blocker = [2]storage.UserID{b, a}
				}
				v.atOnce(v.will(blocker[0], "block", blocker[1]), other)
				v.both(a, b, "NONE")
				for _, got := range []string{v.standing(a, b), v.standing(b, a)} {
					check.That(t, !strings.Contains(got, "PENDING") && strings.Contains(got, "block"), "after a block: %s", got)
				}
				clear()
			}
		}
	})
}

// both checks the status of two users, as both see it, and their counts.
func (v *village) both(a, b storage.UserID, status string) {
	v.t.Helper()
	for _, one := range [][2]storage.UserID{{a, b}, {b, a}} {
		got := v.standing(one[0], one[1])
		check.That(v.t, strings.HasPrefix(got, status), "%s sees towards %s: %s, want %s", one[0], one[1], got, status)
	}
	v.counts(a, b)
}
