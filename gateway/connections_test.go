package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kith/gateway"
	"kith/gateway/quota"
	"kith/internal/check"
	"kith/internal/must"
)

func TestBoundsOfConnections(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{Bounds: quota.Bounds{Connections: 2}, MaxOperations: 3}))
	c := s.joined()
	for _, id := range []string{"1", "2", "3"} {
		c.subscribe(id, followersQuery)
	}
	must.Soon(t, "three run", func() bool { return l.began.Load() == 3 })
	c.subscribe("4", followersQuery)
	c.reads(`{"id":"4","type":"error"`, `"code":"RATE_LIMITED"`)
	c.send(`{"type":"complete","id":"2"}`)
	must.Soon(t, "two run", func() bool { return l.ended.Load() == 1 })
	c.subscribe("4", followersQuery)
	must.Soon(t, "three run again", func() bool { return l.began.Load() == 4 })

	other := s.joined()
	_, response, err := s.dial(nil, "graphql-transport-ws")
	must.That(t, err != nil && response != nil, "a third connection: %v", err)
	check.Equal(t, "a third connection", response.StatusCode, http.StatusServiceUnavailable)
	check.That(t, response.Header.Get("Retry-After") != "", "it is not said when to come back")
	s.query(followersQuery, "Accept", "text/event-stream").is(t, "third connection", 503, "UNAVAILABLE")
	other.conn.Close(websocket.StatusNormalClosure, "")
	must.Soon(t, "there is room again", func() bool {
		_, _, err := s.dial(nil, "graphql-transport-ws")
		return err == nil
	})
}

// TestCompletedOperationsTakeSlotsUntilTheyEnd: a client that starts and completes one operation
// after another has no more of them running than other clients.
func TestCompletedOperationsTakeSlotsUntilTheyEnd(t *testing.T) {
	var running atomic.Int64
	release := make(chan struct{})
	schema := newSchema(map[string]resolver{"hello": func(context.Context, map[string]any) (any, error) {
		running.Add(1)
		<-release
		return "late", nil
	}})
	s := serve(t, gateway.Config{Schema: schema, Subscriptions: gateway.Subscriptions{MaxOperations: 3, Bounds: quota.Bounds{Answers: 32}}})
	c := s.joined()
	for i := range 3 {
		c.subscribe(fmt.Sprint(i), `{ hello }`)
		must.Soon(t, "it runs", func() bool { return running.Load() == int64(i+1) })
		c.send(fmt.Sprintf(`{"type":"complete","id":"%d"}`, i))
	}
	c.subscribe("more", `{ hello }`)
	time.Sleep(100 * time.Millisecond) // time to begin, if it may begin
	check.Equal(t, "run at once", running.Load(), 3)
	close(release)
	c.expect(`{"id":"more","type":"next","payload":{"data":{"hello":"late"}}}`)
}

func TestConnectionsEndWithTheirToken(t *testing.T) {
	l := newLive()
	l.tick(t)
	s := serve(t, l.config(gateway.Subscriptions{Init: withToken, Expires: soon}))
	c := s.connect()
	c.join("Bearer expired")
	c.subscribe("a", followersQuery)
	c.expectClose(4403, "the token has expired")
	must.Soon(t, "the subscription's context is done", func() bool { return l.ended.Load() == 1 })
	must.Soon(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=expired") })

	stays := s.connect()
	stays.join("Bearer ann")
	stays.subscribe("a", followersQuery)
	stays.reads("Bearer ann")
}

// If a token is revoked, its connection also ends.
func TestConnectionsEndWhenTheirTokenIsRevoked(t *testing.T) {
	l := newLive()
	ends := make(chan func(), 2)
	var calledOff atomic.Int64
	s := serve(t, l.config(gateway.Subscriptions{Init: withToken, Revoked: func(ctx context.Context, end func()) func() {
		if ctx.Value(viewerKey{}) == "Bearer ann" {
			ends <- end
		}
		return func() { calledOff.Add(1) }
	}}))
	connect := func() *wsClient {
		c := s.connect()
		c.join("Bearer ann")
		return c
	}
	c, leaves := connect(), connect()
	(<-ends)()
	c.expectClose(4403, "the token is not valid any more")
	must.Soon(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=revoked") })
	leaves.conn.CloseNow()
	must.Soon(t, "nobody waits for those who have left", func() bool { return calledOff.Load() == 2 })
}

// TestDeadConnectionsAreNoticed: a connection whose other end does not answer pings is closed.
func TestDeadConnectionsAreNoticed(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{PingInterval: 50 * time.Millisecond}))
	c := s.joined() // the client sends a pong only while it reads
	c.subscribe("a", followersQuery)
	must.Soon(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=unresponsive") })
	must.Soon(t, "the subscription's context is done", func() bool { return l.ended.Load() == 1 })

	alive := s.joined()
	go func() { _, _ = alive.read() }()
	time.Sleep(300 * time.Millisecond)
	check.Equal(t, "connections that were ended", strings.Count(s.log.String(), "ended="), 1)
}

// TestAnswersToPingsMayComeLate: what a client has answered is not read while an earlier message is worked on.
func TestAnswersToPingsMayComeLate(t *testing.T) {
	release := make(chan struct{})
	wait := func(ctx context.Context, _ map[string]any) (context.Context, error) {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return ctx, nil
	}
	s := serve(t, newLive().config(gateway.Subscriptions{PingInterval: 10 * time.Millisecond, Init: wait}))
	pings := 0
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/graphql", &websocket.DialOptions{
		Subprotocols: []string{"graphql-transport-ws"}, OnPingReceived: func(context.Context, []byte) bool {
			if pings++; pings == 3 {
				close(release)
			}
			return true
		},
	})
	must.OK(t, err)
	defer conn.CloseNow()
	c := &wsClient{t, conn}
	c.send(`{"type":"connection_init"}`)
	c.expect(`{"type":"connection_ack"}`)
}
