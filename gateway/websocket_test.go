package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kith/gateway"
	"kith/graph/apierr"
	"kith/graph/subscription"
	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

func TestWebSocketSubscription(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{}))
	c := s.joined()
	c.subscribe("a", followersQuery)
	must.Soon(t, "subscribed", func() bool { return l.began.Load() == 1 })

	// Every answer has its own loaders. The first set was for the start, and the subscription holds
	// one set that waits for the next event.
	l.publish(7)
	c.expect(`{"id":"a","type":"next","payload":` + follower(7, 2, "null") + `}`)
	l.publish(8)
	c.expect(`{"id":"a","type":"next","payload":` + follower(8, 3, "null") + `}`)

	c.send(`{"type":"complete","id":"a"}`)
	must.Soon(t, "ended", func() bool { return l.ended.Load() == 1 })
	c.subscribe("a", followersQuery) // the id is free
	must.Soon(t, "subscribed again", func() bool { return l.began.Load() == 2 })
	l.end()
	c.expect(`{"id":"a","type":"complete"}`)
	c.conn.Close(websocket.StatusNormalClosure, "")
	must.Soon(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=client") })
	check.Has(t, "the log", s.log.String(), "status=101", "transport=websocket", "operations=2", "answers=2")
}

// TestEventsHaveTheirOwnTime: waiting for an event does not use up the time for its answer. An
// answer that is late is an error, but does not end the subscription.
func TestEventsHaveTheirOwnTime(t *testing.T) {
	l := newLive()
	c := serve(t, l.config(gateway.Subscriptions{})).joined()
	c.subscribe("a", followersQuery)
	must.Soon(t, "subscribed", func() bool { return l.began.Load() == 1 })
	time.Sleep(300 * time.Millisecond) // longer than an answer may take
	for _, e := range []struct {
		id   storage.UserID
		want string
	}{
		{7, ""},
		{404, `"code":"NOT_FOUND"`},
		{408, `"message":"the request took too long","path":["followerAdded","edge","node","viewerRelationship"],"locations":[{"line":1,"column":88}],"extensions":{"code":"TIMEOUT"`},
		{500, `"code":"INTERNAL_SERVER_ERROR"`},
		{8, ""},
	} {
		l.publish(e.id)
		got, err := c.read()
		if err != nil || !strings.Contains(got, `"next"`) || !strings.Contains(got, fmt.Sprintf(`"id":"%d"`, e.id)) ||
			!strings.Contains(got, e.want) || strings.Contains(got, "errors") != (e.want != "") || strings.Contains(got, secret) {
			t.Fatalf("follower %d: %s %v", e.id, got, err)
		}
	}
}

func TestSubscriptionsThatDoNotStartOrFail(t *testing.T) {
	l := newLive()
	c := serve(t, l.config(gateway.Subscriptions{})).joined()
	for query, want := range map[string]string{
		`subscription {`:                                `"code":"BAD_USER_INPUT"`,
		`subscription { nonsense }`:                     `"code":"BAD_USER_INPUT"`,
		`subscription { followerAdded { edge { cursor `: `"code":"BAD_USER_INPUT"`,
		`{ viewer { user {` + strings.Repeat(` followers(first: 100) { nodes {`, 9) + ` id` + strings.Repeat(` } }`, 9) + ` } } }`: `"code":"QUERY_TOO_COSTLY"`,
	} {
		c.subscribe("a", query)
		c.reads(`{"id":"a","type":"error","payload":[{`, want)
	}

	l.refuseWith(apierr.NotSignedIn.Error("somebody has to be signed in"))
	c.subscribe("a", followersQuery)
	c.reads(`{"id":"a","type":"next","payload":{"errors":[{`, `"code":"UNAUTHENTICATED"`)
	c.expect(`{"id":"a","type":"complete"}`)
}

func TestSubscriptionsReportWhyTheyEnd(t *testing.T) {
	for _, c := range []struct {
		err        error
		code, text string
	}{
		{apierr.TooManyWrites.Error("the client is too slow"), "RATE_LIMITED", "too slow"},
		{fmt.Errorf("read %s", secret), "INTERNAL_SERVER_ERROR", "went wrong"},
	} {
		schema := newSchema(map[string]resolver{"tick": func(ctx context.Context, _ map[string]any) (any, error) {
			subscription.Fail(ctx, c.err)
			return nil, nil
		}})
		client := serve(t, gateway.Config{Schema: schema}).joined()
		client.subscribe("a", `subscription { tick }`)
		check.Lacks(t, c.code, client.reads(`{"id":"a","type":"error","payload":[{`, c.code, c.text), secret)
	}
}

func TestQueriesOverWebSocket(t *testing.T) {
	c := serve(t, gateway.Config{}).joined()
	c.subscribe("1", `{ hello }`)
	c.expect(`{"id":"1","type":"next","payload":{"data":{"hello":"world \u003c3"}}}`)
	c.expect(`{"id":"1","type":"complete"}`)
	c.subscribe("2", `mutation { touch }`)
	c.expect(`{"id":"2","type":"next","payload":{"data":{"touch":"touched"}}}`)
	c.expect(`{"id":"2","type":"complete"}`)
	c.send(`{"type":"ping","payload":{"n":12345678901234567890}}`)
	c.expect(`{"type":"pong","payload":{"n":12345678901234567890}}`)
	c.send(`{"type":"pong"}`)
	c.send(`{"type":"complete","id":"nobody"}`)
	c.subscribe("3", `{ hello }`)
	c.expect(`{"id":"3","type":"next","payload":{"data":{"hello":"world \u003c3"}}}`)
}
