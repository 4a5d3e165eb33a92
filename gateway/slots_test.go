package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kith/gateway"
	"kith/gateway/quota"
	"kith/internal/check"
	"kith/internal/must"
)

type partyKey struct{}

// counting counts connections by the address in the header X-From, and by user. The token, in the
// header or in connection_init, is the user's number.
func counting(s gateway.Subscriptions) gateway.Config { return newLive().counting(s) }

func (l *live) counting(s gateway.Subscriptions) gateway.Config {
	s.Init = func(ctx context.Context, payload map[string]any) (context.Context, error) {
		token, _ := payload["Authorization"].(string)
		return signedIn(ctx, token), nil
	}
	s.Party = func(ctx context.Context) quota.Party {
		party, _ := ctx.Value(partyKey{}).(quota.Party)
		return party
	}
	cfg := l.config(s)
	cfg.Identify = func(_ http.Header, r *http.Request) (context.Context, error) {
		ctx := context.WithValue(r.Context(), partyKey{}, quota.Party{Address: r.Header.Get("X-From"), Anonymous: true})
		return signedIn(ctx, r.Header.Get("Authorization")), nil
	}
	return cfg
}

func signedIn(ctx context.Context, token string) context.Context {
	party, _ := ctx.Value(partyKey{}).(quota.Party)
	if _, err := fmt.Sscan(token, &party.User); err == nil {
		party.Anonymous = false
	}
	return context.WithValue(ctx, partyKey{}, party)
}

// from opens a WebSocket from an address with a token in the headers. It returns nil if the
// connection is refused.
func (s site) from(address, token string) (*wsClient, int) {
	s.t.Helper()
	c, response, err := s.dial(http.Header{"X-From": {address}, "Authorization": {token}}, "graphql-transport-ws")
	must.That(s.t, response != nil, "%v", err)
	return c, response.StatusCode
}

func (c *wsClient) init(token string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"type":"connection_init","payload":{"Authorization":%q}}`, token))
}

// join says who it is, and waits for the acknowledgement.
func (c *wsClient) join(token string) {
	c.t.Helper()
	c.init(token)
	c.expect(`{"type":"connection_ack"}`)
}

func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	s := serve(t, counting(gateway.Subscriptions{Bounds: quota.Bounds{AddressConnections: 2}}))
	first, _ := s.from("here", "")
	second, _ := s.from("here", "1")
	must.That(t, first != nil && second != nil, "there is no room for two")
	_, status := s.from("here", "2")
	check.Equal(t, "a third from there", status, http.StatusTooManyRequests)
	got := s.query(followersQuery, "Accept", "text/event-stream", "X-From", "here")
	got.is(t, "a stream from there", 429, "RATE_LIMITED", "at most 2 connections may be open for one address")
	check.That(t, got.header.Get("Retry-After") != "", "it is not said when to come back")
	_, status = s.from("there", "")
	check.Equal(t, "from elsewhere", status, http.StatusSwitchingProtocols)
	check.Equal(t, "refused", s.value("kith_subscription_connections_refused_total"), 2)
	first.conn.Close(websocket.StatusNormalClosure, "")
	must.Soon(t, "there is room again", func() bool {
		_, status := s.from("here", "")
		return status == http.StatusSwitchingProtocols
	})
}

func TestConnectionsOfOneUserAreBounded(t *testing.T) {
	s := serve(t, counting(gateway.Subscriptions{Bounds: quota.Bounds{UserConnections: 2}}))
	s.from("", "1")
	c, _ := s.from("a", "")
	c.join("1")
	_, status := s.from("b", "1")
	check.Equal(t, "a third of user 1", status, http.StatusTooManyRequests)
	late, _ := s.from("c", "")
	late.init("1")
	late.expectClose(1013, "at most 2 connections may be open for one user")
	other, _ := s.from("d", "")
	other.join("2")
	c.conn.Close(websocket.StatusNormalClosure, "")
	must.Soon(t, "there is room again", func() bool {
		_, status := s.from("a", "1")
		return status == http.StatusSwitchingProtocols
	})
}

// TestIdleAnonymousConnectionsAreClosed, but not connections of users, and not connections on which
// an operation runs.
func TestIdleAnonymousConnectionsAreClosed(t *testing.T) {
	s := serve(t, counting(gateway.Subscriptions{IdleTimeout: 50 * time.Millisecond}))
	idle, _ := s.from("a", "")
	idle.join("")
	idle.expectClose(1000, "nobody is signed in and nothing has been asked for a while")
	must.Soon(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=idle") })

	working, _ := s.from("a", "")
	working.join("")
	working.subscribe("a", followersQuery)
	user, _ := s.from("a", "")
	user.join("1")
	time.Sleep(200 * time.Millisecond)
	for _, c := range []*wsClient{working, user} {
		c.send(`{"type":"ping"}`)
		c.expect(`{"type":"pong"}`)
	}
	working.send(`{"type":"complete","id":"a"}`)
	working.expectClose(1000, "nothing has been asked")
}

func TestSubscriptionsOfOneUserAreBounded(t *testing.T) {
	const cost = 72 + uint64(len(followersQuery)/16)
	for name, c := range map[string]struct {
		bounds gateway.Subscriptions
		most   int // on two connections together
		want   string
	}{
		"by number":           {gateway.Subscriptions{Bounds: quota.Bounds{UserSubscriptions: 3}}, 3, "one user may have at most 3 subscriptions"},
		"by cost":             {gateway.Subscriptions{Bounds: quota.Bounds{UserCost: 4*cost - 1}}, 3, fmt.Sprintf("the subscriptions of one user may cost at most %d together", 4*cost-1)},
		"by cost of a socket": {gateway.Subscriptions{Bounds: quota.Bounds{ConnectionCost: 2 * cost}}, 4, fmt.Sprintf("the subscriptions of one connection may cost at most %d together", 2*cost)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive()
			s := serve(t, l.counting(c.bounds))
			refused := func(client *wsClient, id string) {
				t.Helper()
				client.subscribe(id, followersQuery)
				client.reads(`{"id":"`+id+`","type":"error"`, "RATE_LIMITED", c.want)
			}
			first, _ := s.from("a", "1")
			first.join("1")
			second, _ := s.from("b", "1")
			second.join("1")
			for i := range c.most {
				client := []*wsClient{first, second}[i/2]
				client.subscribe(fmt.Sprint(i), followersQuery)
				must.Soon(t, "it has begun", func() bool { return l.began.Load() == int64(i+1) })
			}
			refused(second, "more")
			if c.most == 3 {
				_, data := s.subscribeSSE(followersQuery, "Authorization", "1").next()
				check.That(t, strings.Contains(data, c.want), "by server-sent events: %s", data)
			}
			second.send(`{"type":"complete","id":"2"}`)
			must.Soon(t, "there is room again", func() bool {
				second.subscribe("again", followersQuery)
				second.send(`{"type":"ping"}`)
				got, err := second.read()
				must.OK(t, err)
				if strings.Contains(got, `"error"`) {
					second.expect(`{"type":"pong"}`)
				}
				return got == `{"type":"pong"}`
			})
			other, _ := s.from("a", "2")
			other.join("2")
			other.subscribe("a", followersQuery)
			other.send(`{"type":"ping"}`)
			other.expect(`{"type":"pong"}`)
		})
	}
}
