package resolvers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/events"
)

func TestFollowMarks(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		mark := func(args string) apitest.Answer {
			return v.api.As(v.a).Ask(`mutation($id: ID!) { setFollowMark(userId: $id, `+args+`) { changed relationship { special remark } } }`,
				apitest.Vars{"id": v.b.String()})
		}
		is := func(a apitest.Answer, changed bool, special bool, remark string) {
			t.Helper()
			a.Is(fmt.Sprintf(`{"setFollowMark": {"changed": %t, "relationship": {"special": %t, "remark": %s}}}`, changed, special, remark))
		}
		mark(`special: true`).Refused("NOT_FOUND") // 2 is not followed
		v.does(v.a, "follow", v.b)
		v.does(v.a, "follow", v.c)
		is(mark(`special: true`), true, true, "null")
		is(mark(`special: true`), false, true, "null")
		is(mark(`remark: " from school "`), true, true, `"from school"`) // a value that is not given does not change
		is(mark(`special: false`), true, false, `"from school"`)
		is(mark(`remark: ""`), true, false, "null")
		mark(fmt.Sprintf("remark: %q", strings.Repeat("é", 101))).Refused("BAD_USER_INPUT")
		is(mark(fmt.Sprintf("remark: %q", strings.Repeat("é", 100))), true, false, fmt.Sprintf("%q", strings.Repeat("é", 100)))
		is(mark(`special: true, remark: "x"`), true, true, `"x"`)

		// Only the follower sees the mark. It does not move the list, and it ends with the follow.
		v.api.As(v.b).Ask(`query($a: ID!, $b: ID!) { relationship(from: $a, to: $b) { special remark } }`,
			apitest.Vars{"a": v.a.String(), "b": v.b.String()}).Is(`{"relationship": {"special": null, "remark": null}}`)
		answer := v.api.As(v.a).Ask(`{ viewer { user { followings { nodes { id } } special: followings(filter: {special: true}) { nodes { id } } } } }`, nil)
		answer.Is(fmt.Sprintf(`{"viewer": {"user": {"followings": {"nodes": [{"id": "%s"}, {"id": "%s"}]}, "special": {"nodes": [{"id": "%s"}]}}}}`, v.c, v.b, v.b))
		v.does(v.a, "unfollow", v.b)
		v.does(v.a, "follow", v.b)
		is(mark(`remark: ""`), false, false, "null")
		is(mark(`special: true`), true, true, "null")
		v.does(v.b, "block", v.a) // this ends the follow on the other user's shard
		v.does(v.b, "unblock", v.a)
		v.does(v.a, "follow", v.b)
		is(mark(`remark: ""`), false, false, "null")
		v.do(v.a, "setFollowMark", v.a).Refused("BAD_USER_INPUT")
	})
}

// Friend requests page newest first, are refilled if users are hidden, and count the users who remain.
func TestFriendRequestsPage(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		var askers []string
		for id := storage.UserID(1); len(askers) < 30; id++ {
			if id != v.a {
				v.does(id, "requestFriend", v.a)
				askers = append([]string{id.String()}, askers...)
			}
		}
		v.does(v.a, "declineRequest FRIEND", userID(t, askers[0]))
		v.api.As(userID(t, askers[7])).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
		v.api.As(userID(t, askers[8])).Ask(`mutation { deactivateAccount { changed } }`, nil).Whole()
		askers = slices.Delete(askers, 7, 9)[1:]

		me := v.api.As(v.a)
		var got []string
		const query = `query($after: String) { viewer { requests(kind: FRIEND, direction: RECEIVED, first: 6, after: $after) { totalCount complete
			edges { cursor node { id from { id } to { handle } } } pageInfo { hasNextPage hasPreviousPage endCursor } } } }`
		for _, a := range pagesAt(me, query, nil, "viewer.requests") {
			p := apitest.Into[struct {
				TotalCount int
				Complete   bool
				Edges      []struct{ Node struct{ From node } }
				PageInfo   pageInfo
			}](a, "viewer.requests")
			must.That(t, p.TotalCount == len(askers) && p.Complete && !p.PageInfo.HasPreviousPage, "%d requests: %s", len(askers), a.Text)
			for _, e := range p.Edges {
				got = append(got, e.Node.From.ID)
			}
			if !p.PageInfo.HasNextPage {
				break
			}
			must.Equal(t, "the length of a page that goes on", len(p.Edges), 6)
			for _, other := range []string{"kind: FRIEND, direction: SENT", "kind: FRIEND, direction: RECEIVED, state: EXPIRED", "kind: FOLLOW"} {
				me.Ask(fmt.Sprintf(`{ viewer { requests(%s, after: %q) { complete } } }`, other, *p.PageInfo.EndCursor), nil).FailsAt("BAD_USER_INPUT", "viewer.requests")
			}
		}
		check.Equal(t, "who asks", got, askers)
		me.Ask(`{ viewer { requests(kind: FRIEND, direction: RECEIVED, state: DECLINED) { totalCount nodes { state } } } }`, nil).
			Is(`{"viewer": {"requests": {"totalCount": 1, "nodes": [{"state": "DECLINED"}]}}}`)
		v.pass(3*month + 2*month)
		me.Ask(`{ viewer { requests(kind: FRIEND, direction: RECEIVED) { totalCount nodes { state } } expired: requests(kind: FRIEND, direction: RECEIVED, state: EXPIRED) { totalCount } } }`, nil).
			Is(fmt.Sprintf(`{"viewer": {"requests": {"totalCount": 0, "nodes": []}, "expired": {"totalCount": %d}}}`, len(askers)))
		me.Ask(`{ viewer { requests(kind: FRIEND, direction: RECEIVED, state: EXPIRED, first: 3) { nodes { state } pageInfo { hasNextPage } } } }`, nil).
			Is(`{"viewer": {"requests": {"nodes": [{"state": "EXPIRED"}, {"state": "EXPIRED"}, {"state": "EXPIRED"}], "pageInfo": {"hasNextPage": true}}}}`)
		again := userID(t, askers[4]) // the request of this user is the newest, and pending
		v.does(again, "requestFriend", v.a)
		me.Ask(`{ viewer { requests(kind: FRIEND, direction: RECEIVED) { totalCount nodes { from { id } } }
			expired: requests(kind: FRIEND, direction: RECEIVED, state: EXPIRED, first: 2) { totalCount nodes { from { id } } } } }`, nil).
			Is(fmt.Sprintf(`{"viewer": {"requests": {"totalCount": 1, "nodes": [{"from": {"id": "%s"}}]},
			"expired": {"totalCount": %d, "nodes": [{"from": {"id": "%s"}}, {"from": {"id": "%s"}}]}}}`, again, len(askers)-1, askers[0], askers[1]))
	})
}

// In every redundancy mode, blocks and requests are on both shards before the mutation is answered. Only
// follows may be propagated later.
func TestBlocksAndRequestsAreCompleteInEveryMode(t *testing.T) {
	onShards(t, apitest.Options{Redundancy: never{}}, func(t *testing.T, v *village) {
		for _, pair := range v.twoPairs() {
			a, b := pair[0], pair[1]
			v.does(a, "requestFriend", b)
			answer := v.api.As(b).Ask(`mutation($id: ID!) { acceptRequest(kind: FRIEND, userId: $id) { user { friendCount followerCount } viewer { user { friendCount } } relationship { status } } }`,
				apitest.Vars{"id": a.String()}).Whole()
			check.That(t, !answer.Stale() && answer.At("acceptRequest.relationship.status") == "MUTUAL", "accepting: %s", answer.Text)
			token := answer.Token()
			read := v.api.As(a).With("Kith-Consistency", token).Ask(`query($id: ID!) { user(by: {id: $id}) { viewerRelationship { status } } }`, apitest.Vars{"id": b.String()})
			check.That(t, !read.Stale() && token != "", "read with the token %q: %s", token, read.Text)
			v.stand(a, b, "MUTUAL sent ACCEPTED", "MUTUAL received ACCEPTED")
			v.does(b, "block", a)
			v.stand(a, b, "NONE blocked sent ACCEPTED", "NONE blocking received ACCEPTED")
		}
	})
}

// severed is a store whose writes to a dead shard fail if they come from another shard.
type severed struct {
	storage.Store
	shards *storage.ShardMap
	dead   atomic.Int64 // the shard, or -1
}

func (s *severed) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	owner := func(e storage.Edge) int { return s.shards.Of(side.Owner(e.Pair())) }
	results := s.Store.Apply(ctx, side, slices.DeleteFunc(slices.Clone(edges), func(e storage.Edge) bool { return int64(owner(e)) == s.dead.Load() }), rule)
	var all []storage.Result[storage.Changed]
	for _, e := range edges {
		if int64(owner(e)) == s.dead.Load() {
			all = append(all, storage.Result[storage.Changed]{Err: storage.ErrUnavailable})
			continue
		}
		all, results = append(all, results[0]), results[1:]
	}
	return all
}

// If the other shard does not answer, a block is still written on its own shard. The answer says that it
// is stale, and the same block, sent again, completes it.
func TestABlockStandsWhenTheOtherShardFails(t *testing.T) {
	apart := storage.NewShardMap(2)
	store := &severed{Store: oracle.New(oracle.Together(func(a, b storage.UserID) bool { return apart.Of(a) == apart.Of(b) })), shards: apart}
	store.dead.Store(-1)
	v := settle(t, store, apitest.Options{Redundancy: never{}})
	a, b := v.a, v.b
	v.does(a, "requestFriend", b)
	v.does(b, "acceptRequest FRIEND", a)
	store.dead.Store(int64(apart.Of(b)))
	answer := v.api.As(a).Ask(`mutation($id: ID!) { block(userId: $id) { changed relationship { following blocking } } }`, apitest.Vars{"id": b.String()})
	answer.Is(`{"block": {"changed": true, "relationship": {"following": false, "blocking": true}}}`)
	check.That(t, answer.Stale(), "not said to be stale: %s", answer.Text)
	check.Equal(t, "on the other shard", v.standing(b, a), "MUTUAL received ACCEPTED")
	v.impossible(a, "follow", b, blocking)
	store.dead.Store(-1)
	again := v.do(a, "block", b)
	again.Is(`{"done": {"changed": false}}`)
	check.That(t, !again.Stale(), "still stale: %s", again.Text)
	v.stand(a, b, "NONE blocking sent ACCEPTED", "NONE blocked received ACCEPTED")

	// The same for what accepting writes to the other shard.
	v.does(a, "unblock", b)
	v.does(a, "requestFriend", b)
	store.dead.Store(int64(apart.Of(b)))
	check.That(t, v.do(b, "acceptRequest FRIEND", a).Stale(), "not said to be stale")
	store.dead.Store(-1)
	v.doesNothing(b, "acceptRequest FRIEND", a)
	v.stand(a, b, "MUTUAL sent ACCEPTED", "MUTUAL received ACCEPTED")
}

func TestRequestChanged(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		answers := subscribe(t, v.api, v.hub, v.a, `subscription { requestChanged { request { id state message from { handle } } } }`)
		want := func(id, state, message string) {
			t.Helper()
			from := strings.Split(id, "_")[1]
			wantNext(t, answers, fmt.Sprintf(`{"data":{"requestChanged":{"request":{"id":%q,"state":%q,"message":%s,"from":{"handle":"u%s"}}}}}`, id, state, message, from))
		}
		until(t, answers, func(i int) { v.does(v.c, []string{"requestFriend", "withdrawRequest FRIEND"}[i%2], v.a) })
		if got := v.standing(v.c, v.a); strings.Contains(got, "PENDING") {
			v.does(v.c, "withdrawRequest FRIEND", v.a)
		}
		v.api.As(v.b).Ask(`mutation($id: ID!) { requestFriend(userId: $id, message: "hi") { changed } }`, apitest.Vars{"id": v.a.String()}).Whole()
		in := fmt.Sprintf("req_%s_%s", v.b, v.a)
		for got := ""; !strings.Contains(got, in); { // answers before this one are from the beginning of the test
			got = next(t, answers)
		}
		v.does(v.a, "declineRequest FRIEND", v.b)
		want(in, "DECLINED", "null")
		v.does(v.a, "requestFriend", v.d)
		out := fmt.Sprintf("req_%s_%s", v.a, v.d)
		want(out, "PENDING", "null")
		row := storage.EdgeLookups[storage.Requests].Read(t.Context(), v.store, storage.Pair{From: v.a, To: v.d})[0].Value
		v.hub.Publish(events.Event{Row: storage.Row{Side: storage.Inbox, Edge: row}}) // an event that comes twice is sent once
		v.does(v.b, "requestFriend", v.d)                                             // it is between other users
		v.does(v.d, "block", v.a)
		want(out, "WITHDRAWN", "null")

		// A change whose event is lost is sent after the next gap.
		at := row.UpdateTime + 1_000_000_000
		missed := []storage.Edge{{From: v.c, To: v.a, Type: storage.Pending, UpdateTime: at}}
		apitest.ApplyTo(t, v.store, storage.Requests, missed...)
		v.hub.Publish(events.Event{Kind: events.Gap})
		want(fmt.Sprintf("req_%s_%s", v.c, v.a), "PENDING", "null")

		// So is one that was hidden.
		missed[0].Type, missed[0].UpdateTime = storage.Declined, at+1
		v.api.Admin().Ask(suspendUser, apitest.Vars{"id": v.c.String(), "why": "spam"}).Whole()
		apitest.ApplyTo(t, v.store, storage.Requests, missed...)
		v.hub.Publish(events.Event{Row: storage.Row{Side: storage.Inbox, Edge: missed[0]}})
		v.does(v.a, "requestFriend", v.b)
		want(fmt.Sprintf("req_%s_%s", v.a, v.b), "PENDING", "null")
		v.api.Admin().Ask(reinstateUser, apitest.Vars{"id": v.c.String()}).Whole()
		v.hub.Publish(events.Event{Kind: events.Gap})
		want(fmt.Sprintf("req_%s_%s", v.c, v.a), "DECLINED", "null")
	})
}

// Blocks are changes of relationships.
func TestRelationshipChangedReportsBlocks(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		answers := subscribe(t, v.api, v.hub, v.a, fmt.Sprintf(`subscription { relationshipChanged(userIds: [%q]) { relationship { status blocking blockedBy } } }`, v.b))
		want := func(status string, blocking, blockedBy bool) {
			t.Helper()
			wantNext(t, answers, fmt.Sprintf(`{"data":{"relationshipChanged":{"relationship":{"status":%q,"blocking":%t,"blockedBy":%t}}}}`, status, blocking, blockedBy))
		}
		until(t, answers, func(i int) { v.does(v.a, []string{"follow", "unfollow"}[i%2], v.b) })
		for deadline := 0; deadline < 100 && len(answers) > 0; deadline++ {
			<-answers
		}
		v.do(v.a, "follow", v.b).Whole()
		v.does(v.b, "block", v.a)
		for got := ""; !strings.Contains(got, `"blockedBy":true`); {
			got = next(t, answers)
		}
		v.does(v.a, "block", v.b)
		want("NONE", true, true)
		v.does(v.b, "unblock", v.a)
		want("NONE", true, false)
		v.does(v.a, "unblock", v.b)
		want("NONE", false, false)
	})
}

// Marks, mutes and requests are changes of a relationship, if they are selected.
func TestRelationshipChangedReportsAllItsFields(t *testing.T) {
	onShards(t, apitest.Options{}, func(t *testing.T, v *village) {
		for _, over := range apitest.Transports {
			v.does(v.a, "follow", v.b)
			open := func(fields string) <-chan string {
				answers := v.api.As(v.a).Subscribe(t.Context(), over, fmt.Sprintf(`subscription { relationshipChanged(userIds: ["%s"]) { relationship { %s } } }`, v.b, fields), nil)
				until(t, answers, func(i int) { v.do(v.b, []string{"follow", "unfollow"}[i%2], v.a).Whole() })
				return answers
			}
			answers, plain := open(`followedBy special remark muted mutedUntil sentRequest { state } receivedRequest { state }`), open(`followedBy blocking`)
			v.do(v.b, "unfollow", v.a).Whole()
			does := func(by storage.UserID, call, want string) {
				t.Helper()
				v.api.As(by).Ask(`mutation { `+call+` { changed } }`, nil).Whole()
				comes(t, answers, want) // the answers from the beginning may come late
			}
			tomorrow := time.Now().UTC().AddDate(0, 0, 1).Format("2006-01-02T15:04:05")
			a, b := fmt.Sprintf(`(userId: "%s"`, v.a), fmt.Sprintf(`(userId: "%s"`, v.b)
			does(v.a, `setFollowMark`+b+`, special: true, remark: "x")`, `"special":true,"remark":"x","muted":null`)
			does(v.a, `mute`+b+`, scope: POSTS)`, `"muted":"POSTS","mutedUntil":null`)
			does(v.a, `mute`+b+`, scope: EVERYTHING, until: "`+tomorrow+`Z")`, `"muted":"EVERYTHING","mutedUntil":"`+tomorrow)
			does(v.a, `unmute`+b+`)`, `"muted":null`)
			does(v.a, `requestFriend`+b+`)`, `"sentRequest":{"state":"PENDING"}`)
			does(v.a, `withdrawRequest`+b+`, kind: FRIEND)`, `"sentRequest":{"state":"WITHDRAWN"}`)
			does(v.b, `requestFriend`+a+`)`, `"receivedRequest":{"state":"PENDING"}`)
			does(v.b, `withdrawRequest`+a+`, kind: FRIEND)`, `"receivedRequest":{"state":"WITHDRAWN"}`)
			does(v.a, `setFollowMark`+b+`, special: false, remark: "")`, `"special":false,"remark":null`)
			v.does(v.a, "block", v.b)
			for last := ""; !strings.Contains(last, `"blocking":true`); {
				got := <-plain
				must.That(t, got != last, "%s: %s is sent twice", over, got)
				last = got
			}
			v.does(v.a, "unblock", v.b)
		}
	})
}
