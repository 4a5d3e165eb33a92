package resolvers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/logged"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/events"
)

// subscribe opens a subscription over server-sent events and returns its answers. When the function
// returns, the subscription is open.
func subscribe(t *testing.T, api *apitest.API, hub *events.Hub, user storage.UserID, query string) <-chan string {
	t.Helper()
	return api.For(t).As(user).Subscribe(t.Context(), apitest.Events, query, nil)
}

// What is selected below an event is answered as a query for the same objects is.
func TestEventsAreAnsweredAsQueriesAre(t *testing.T) {
	const users, viewer, other = 9, 3, 2
	store, hub := oracle.New(), events.NewHub(nil)
	apitest.Users(t, store, users)
	apitest.Tangle(t, store, users)
	apitest.Publish(t, store, users)
	api := apitest.New(t, store, apitest.Options{Hub: hub, Limits: apitest.NoLimits}).As(viewer)
	at := storage.MicrosOf(time.Now())
	properties.Check(t, 200, func(t *rapid.T) {
		write, vars := apitest.Selection(t, users)
		event := write("subscription", `followerAdded { edge { node %[1]s } viewer { user %[1]s } }`)
		whole := api.For(t).Ask(write("query", fmt.Sprintf(`user(by: {id: %d}) %%[1]s viewer { user %%[1]s }`, other)), vars)
		for _, over := range apitest.Transports {
			answers := api.For(t).Subscribe(t.Context(), over, event, vars)
			got := until(t, answers, func(int) {
				at++
				hub.Publish(events.Event{Row: storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: other, To: viewer, Type: storage.Following, UpdateTime: at}}})
			})
			var a struct {
				Data struct {
					FollowerAdded struct {
						Edge   struct{ Node json.RawMessage }
						Viewer json.RawMessage
					}
				}
			}
			err := json.Unmarshal([]byte(got), &a)
			must.That(t, err == nil, "%s: %v", got, err)
			node, self := string(a.Data.FollowerAdded.Edge.Node), string(a.Data.FollowerAdded.Viewer)
			must.That(t, strings.Contains(whole.Text, `"user":`+node+`,"viewer":`+self), "%s\nwith %v is answered %s\nand as a query %s", event, vars, got, whole.Text)
			n := strings.Count(got, `"message":`)
			must.That(t, n == len(whole.Errors), "%s\nwith %v has %d errors, and as a query %d: %s\n%s", event, vars, n, len(whole.Errors), got, whole.Text)
		}
	})
}

// A subscription has one root field (section 5.2.4.1).
func TestSubscriptionsHaveOneField(t *testing.T) {
	store, log := oracle.New(), &logged.Text{}
	apitest.Users(t, store, 2)
	api := apitest.New(t, store, apitest.Options{Log: log})
	for _, query := range []string{
		`subscription { a: followerAdded { edge { cursor } } b: followerAdded { edge { cursor } } }`,
		`subscription { followerAdded { edge { cursor } } ...F } fragment F on Subscription { b: followerAdded { edge { cursor } } }`,
		`subscription { followerAdded @skip(if: true) { edge { cursor } } }`,
		`subscription { followerAdded @include(if: true) { edge { cursor } } }`,
		`subscription($x: Boolean = false) { ... @include(if: $x) { followerAdded { edge { cursor } } } }`,
		`subscription { ...F @skip(if: false) } fragment F on Subscription { followerAdded { edge { cursor } } }`,
		`subscription { ...F } fragment F on Subscription { followerAdded @skip(if: true) { edge { cursor } } }`,
	} {
		for _, over := range apitest.Transports {
			select {
			case got := <-api.As(1).Subscribe(t.Context(), over, query, nil):
				check.Has(t, query, got, `"reason":"INVALID_QUERY"`)
			case <-time.After(generous):
				t.Errorf("%s is not answered", query)
			}
		}
	}
	check.Lacks(t, "the log", log.String(), "level=ERROR")
}

// wantNext waits for the next answer.
func wantNext(t *testing.T, answers <-chan string, want string) {
	t.Helper()
	must.Equal(t, "the next answer", next(t, answers), want)
}

// next returns what a subscription sends next.
func next(t *testing.T, answers <-chan string) (answer string) {
	t.Helper()
	select {
	case answer = <-answers:
	case <-time.After(generous):
		t.Fatal("nothing was sent")
	}
	return answer
}

// comes waits for an answer that has a text. Others may come before it.
func comes(t *testing.T, answers <-chan string, text string) {
	t.Helper()
	for got := ""; !strings.Contains(got, text); got = next(t, answers) {
	}
}

// until repeats something until an answer comes. The subscription may not have begun yet when its
// request has been answered.
func until(t apitest.T, answers <-chan string, try func(i int)) (first string) {
	t.Helper()
	for i := range 1000 {
		try(i)
		select {
		case first = <-answers:
			return first
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("nothing was sent")
	return ""
}

// Who is hidden is as nobody: what becomes of it is not told, and a user who comes back is as the viewer knows it.
func TestWhatBecomesOfAHiddenUserIsNotTold(t *testing.T) {
	hub := events.NewHub(nil)
	api, _ := withUsers(t, 6, apitest.Options{Hub: hub})
	do := func(by storage.UserID, mutation string) { api.As(by).Ask(`mutation { `+mutation+` }`, nil).Whole() }
	for _, other := range []storage.UserID{2, 3, 5, 6} {
		do(1, fmt.Sprintf(`follow(userId: %s) { changed }`, other))
		do(other, `follow(userId: 1) { changed }`)
		if other < 4 {
			do(other, `deactivateAccount { changed }`)
		}
	}
	answers := subscribe(t, api, hub, 1, `subscription { relationshipChanged(userIds: [2, 3, 4, 5, 6]) { relationship { id status muted } } }`)
	until(t, answers, func(i int) { do(1, []string{"follow", "unfollow"}[i%2]+`(userId: 4) { changed }`) })
	do(2, `deleteAccount { complete }`)
	do(5, `deleteAccount { complete }`)
	do(6, `deactivateAccount { changed }`)
	do(1, `mute(userId: 4) { changed } unfollow(userId: 6) { changed }`)
	do(3, `reactivateAccount { changed } unfollow(userId: 1) { changed }`)
	for got := ""; !strings.Contains(got, `"rel_1_3","status":"FOLLOWING"`); {
		got = next(t, answers)
		for _, hidden := range []string{"rel_1_2", "rel_1_5", "rel_1_6"} {
			check.Lacks(t, "an answer", got, hidden)
		}
	}
}

func TestRelationshipChanged(t *testing.T) {
	hub := events.NewHub(nil)
	api, store := withUsers(t, 4, apitest.Options{Hub: hub})
	answers := subscribe(t, api, hub, 1, `subscription { relationshipChanged(userIds: [2, 3]) { relationship { id status to { handle } } } }`)

	follow := func(viewer storage.UserID, field, id string) {
		api.As(viewer).Ask(`mutation($id: ID!) { `+apitest.Call(field, "$id")+` { changed } }`, apitest.Vars{"id": id}).Whole()
	}
	until(t, answers, func(i int) { follow(1, []string{"follow", "unfollow"}[i%2], "2") })
	follow(1, "unfollow", "2")
	follow(1, "follow", "3") // answers before this one are from the beginning of the test
	comes(t, answers, "rel_1_3")
	follow(1, "unfollow", "3")
	wantNext(t, answers, `{"data":{"relationshipChanged":{"relationship":{"id":"rel_1_3","status":"NONE","to":{"handle":"u3"}}}}}`)
	follow(1, "follow", "4") // the subscription does not ask about user 4
	follow(2, "follow", "3") // this is not the viewer's follow
	follow(3, "follow", "1")
	wantNext(t, answers, `{"data":{"relationshipChanged":{"relationship":{"id":"rel_1_3","status":"FOLLOWED_BY","to":{"handle":"u3"}}}}}`)
	follow(1, "follow", "3")
	wantNext(t, answers, `{"data":{"relationshipChanged":{"relationship":{"id":"rel_1_3","status":"MUTUAL","to":{"handle":"u3"}}}}}`)
	hub.Publish(events.Event{Row: storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 1, To: 3, Type: storage.Following, UpdateTime: 1}}}) // an old event, sent once more
	follow(3, "unfollow", "1")
	wantNext(t, answers, `{"data":{"relationshipChanged":{"relationship":{"id":"rel_1_3","status":"FOLLOWING","to":{"handle":"u3"}}}}}`)

	// A change whose event is lost is sent after the next gap.
	apitest.Follow(t, store, 2, 1)
	hub.Publish(events.Event{Kind: events.Gap})
	wantNext(t, answers, `{"data":{"relationshipChanged":{"relationship":{"id":"rel_1_2","status":"FOLLOWED_BY","to":{"handle":"u2"}}}}}`)
}

func TestNewFollowers(t *testing.T) {
	hub := events.NewHub(nil)
	api, store := withUsers(t, 9, apitest.Options{Hub: hub})
	answers := subscribe(t, api, hub, 1, `subscription { followerAdded { edge { node { handle followingCount } } viewer { user { id } } } }`)
	follow := func(viewer storage.UserID, field string) {
		api.As(viewer).Ask(`mutation { `+field+`(userId: 1) { changed } }`, nil).Whole()
	}
	until(t, answers, func(i int) { follow(2, []string{"follow", "unfollow"}[i%2]) })
	follow(2, "unfollow")
	follow(3, "follow")
	wantNext(t, answers, `{"data":{"followerAdded":{"edge":{"node":{"handle":"u3","followingCount":1}},"viewer":{"user":{"id":"1"}}}}}`)
	row := storage.EdgeLookups[storage.Inverse].Read(t.Context(), store, storage.Pair{From: 3, To: 1})[0].Value
	hub.Publish(events.Event{Row: storage.Row{Side: storage.Inverse, Edge: row}}) // an event that comes twice is sent once
	api.As(1).Ask(`mutation { block(userId: 5) { changed } }`, nil).Whole()
	hub.Publish(events.Event{Row: storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 5, To: 1, Type: storage.Following, UpdateTime: row.UpdateTime}}}) // one that comes after a block
	api.As(1).Ask(`mutation { follow(userId: 4) { changed } }`, nil).Whole()
	follow(4, "follow")
	wantNext(t, answers, `{"data":{"followerAdded":{"edge":{"node":{"handle":"u4","followingCount":1}},"viewer":{"user":{"id":"1"}}}}}`)
}

// All answers of a request together may read one budget, and each event may read it anew, however many came before.
func TestEachEventMayReadWhatARequestMay(t *testing.T) {
	store, hub := oracle.New(), events.NewHub(nil)
	apitest.Users(t, store, 300)
	for id := storage.UserID(8); id <= 300; id++ {
		for by := range storage.UserID(7) {
			apitest.Follow(t, store, by+1, id)
		}
	}
	api := apitest.New(t, store, apitest.Options{Hub: hub, Budget: 1500})
	var text strings.Builder
	for with := 2; with <= 7; with++ {
		fmt.Fprintf(&text, "a%d: commonFollowings(with: %[1]d) { complete totalCount } ", with)
	}
	got := api.As(1).Ask(`{ user(by: {id: 1}) { `+text.String()+` } }`, nil).Whole().Text
	whole := strings.Count(got, `{"complete":true,"totalCount":293}`)
	check.That(t, whole != 0 && whole != 6, "%d answers of a request are complete: %s", whole, got)
	answers := subscribe(t, api, hub, 1, `subscription { followerAdded { edge { node { commonFollowings(with: 1) { complete totalCount } } } } }`)
	at := storage.MicrosOf(time.Now())
	publish := func(int) {
		at++
		hub.Publish(events.Event{Row: storage.Row{Side: storage.Inverse, Edge: storage.Edge{From: 2, To: 1, Type: storage.Following, UpdateTime: at}}})
	}
	const want = `{"data":{"followerAdded":{"edge":{"node":{"commonFollowings":{"complete":true,"totalCount":293}}}}}}`
	for range 20 {
		must.Equal(t, "the answer", until(t, answers, publish), want)
	}
}

func TestSubscriptionsNeedAViewer(t *testing.T) {
	api := apitest.New(t, oracle.New(), apitest.Options{})
	answers := subscribe(t, api, nil, 0, `subscription { followerAdded { edge { cursor } } }`)
	select {
	case got := <-answers:
		check.Has(t, "a client without a viewer", got, "UNAUTHENTICATED")
	case <-time.After(generous):
		t.Error("a client without a viewer gets nothing")
	}
}

// TestEventsThatWaitMakeOneAnswer: while a subscription works on one event, any number of events
// about the same users may come. They make one answer, and do not end the subscription as too slow.
func TestEventsThatWaitMakeOneAnswer(t *testing.T) {
	store := double.Of(oracle.New())
	var held atomic.Pointer[chan struct{}] // what reads of edges wait for; nil if for nothing
	var waiting atomic.Int64
	double.Before(store, func(context.Context, []storage.Pair) error {
		if goOn := held.Load(); goOn != nil {
			waiting.Add(1)
			<-*goOn
		}
		return nil
	}, storage.EdgeLookups...)
	apitest.Users(t, store.Store, 2)
	hub := events.NewHub(nil)
	api := apitest.New(t, store, apitest.Options{Hub: hub})
	answers := subscribe(t, api, hub, 1, `subscription { relationshipChanged(userIds: [2]) { relationship { status } } }`)
	follow := func(viewer storage.UserID, field, id string) {
		api.As(viewer).Ask(`mutation($id: ID!) { `+apitest.Call(field, "$id")+` { changed } }`, apitest.Vars{"id": id}).Whole()
	}
	until(t, answers, func(i int) { follow(1, []string{"follow", "unfollow"}[i%2], "2") })
	follow(1, "unfollow", "2")
	follow(2, "follow", "1")
	comes(t, answers, "FOLLOWED_BY") // answers before this one are from the beginning of the test

	goOn := make(chan struct{})
	held.Store(&goOn)
	edge := storage.Edge{From: 1, To: 2, Type: storage.Following}
	for i := range 1000 { // far more events than there is room for
		edge.UpdateTime = storage.Micros(i)
		hub.Publish(events.Event{Row: storage.Row{Side: storage.Inverse, Edge: edge}})
	}
	must.Soon(t, "something is read", func() bool { return waiting.Load() != 0 })
	held.Store(nil)
	follow(1, "follow", "2")
	close(goOn)
	wantNext(t, answers, `{"data":{"relationshipChanged":{"relationship":{"status":"MUTUAL"}}}}`)
	for range 5 { // the subscription continues
		follow(2, "unfollow", "1")
		wantNext(t, answers, `{"data":{"relationshipChanged":{"relationship":{"status":"FOLLOWING"}}}}`)
		follow(2, "follow", "1")
		wantNext(t, answers, `{"data":{"relationshipChanged":{"relationship":{"status":"MUTUAL"}}}}`)
	}
}
