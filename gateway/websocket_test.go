package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"kith/gateway"
	"kith/graph/apierr"
	"kith/graph/subscription"
	"kith/storage"
)

// wsClient is one end of a WebSocket, used by hand.
type wsClient struct {
	t    *testing.T
	conn *websocket.Conn
}

func (s site) dial(header http.Header, protocols ...string) (*wsClient, *http.Response, error) {
	conn, response, err := websocket.Dial(s.t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/graphql",
		&websocket.DialOptions{Subprotocols: protocols, HTTPHeader: header})
	if err != nil {
		return nil, response, err
	}
	conn.SetReadLimit(1 << 20)
	s.t.Cleanup(func() { conn.CloseNow() })
	return &wsClient{s.t, conn}, response, nil
}

func (s site) connect() *wsClient {
	s.t.Helper()
	c, _, err := s.dial(nil, "graphql-transport-ws")
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// joined is a connection that has been acknowledged.
func (s site) joined() *wsClient {
	s.t.Helper()
	c := s.connect()
	c.send(`{"type":"connection_init"}`)
	c.expect(`{"type":"connection_ack"}`)
	return c
}

func (c *wsClient) send(text string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *wsClient) subscribe(id, query string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"type":"subscribe","id":%q,"payload":{"query":%q}}`, id, query))
}

func (c *wsClient) read() (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
	defer cancel()
	_, text, err := c.conn.Read(ctx)
	return string(text), err
}

func (c *wsClient) expect(want string) {
	c.t.Helper()
	got, err := c.read()
	if err != nil || got != want {
		c.t.Fatalf("got %s %v, want %s", got, err, want)
	}
}

func (c *wsClient) expectClose(code int, reason string) {
	c.t.Helper()
	for {
		got, err := c.read()
		if err == nil && (strings.Contains(got, `"next"`) || strings.Contains(got, `"complete"`)) {
			continue
		}
		if websocket.CloseStatus(err) != websocket.StatusCode(code) || !strings.Contains(err.Error(), reason) {
			c.t.Fatalf("got %s %v, want %d %s", got, err, code, reason)
		}
		return
	}
}

func follower(id storage.UserID, loaders int, relationship string) string {
	return fmt.Sprintf(`{"data":{"newFollowers":{"cursor":"line\nbreak","node":{"id":"%d","followings":{"edges":[{"cursor":"%d"}]},"viewerRelationship":%s}}}}`, id, loaders, relationship)
}

func TestWebSocketSubscription(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{}))
	c := s.joined()
	c.subscribe("a", followersQuery)
	eventually(t, "subscribed", func() bool { return l.began.Load() == 1 })

	// Every answer has loaders of its own; the first set was for the start, and one
	// waits for each event with the subscription.
	l.publish(7)
	c.expect(`{"id":"a","type":"next","payload":` + follower(7, 2, "null") + `}`)
	l.publish(8)
	c.expect(`{"id":"a","type":"next","payload":` + follower(8, 3, "null") + `}`)

	c.send(`{"type":"complete","id":"a"}`)
	eventually(t, "ended", func() bool { return l.ended.Load() == 1 })
	c.subscribe("a", followersQuery) // the id is free
	eventually(t, "subscribed again", func() bool { return l.began.Load() == 2 })
	l.end()
	c.expect(`{"id":"a","type":"complete"}`)
	c.conn.Close(websocket.StatusNormalClosure, "")
	eventually(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=client") })
	for _, want := range []string{"status=101", "transport=websocket", "operations=2", "answers=2"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("no %s in %s", want, s.log)
		}
	}
}

// TestEventsHaveTheirOwnTime: waiting for events takes no time of theirs, and one
// that is late is an answer with an error, not the end.
func TestEventsHaveTheirOwnTime(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{}))
	c := s.joined()
	c.subscribe("a", followersQuery)
	eventually(t, "subscribed", func() bool { return l.began.Load() == 1 })
	time.Sleep(300 * time.Millisecond) // longer than an answer may take
	for _, e := range []struct {
		id   storage.UserID
		want string
	}{
		{7, ""},
		{404, `"code":"NOT_FOUND"`},
		{408, `"message":"the request took too long","path":["newFollowers","node","viewerRelationship"],"locations":[{"line":1,"column":80}],"extensions":{"code":"TIMEOUT"`},
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
	s := serve(t, l.config(gateway.Subscriptions{}))
	c := s.joined()
	for query, want := range map[string]string{
		`subscription {`:                        `"code":"BAD_USER_INPUT"`,
		`subscription { nonsense }`:             `"code":"BAD_USER_INPUT"`,
		`subscription { newFollowers { cursor `: `"code":"BAD_USER_INPUT"`,
		`{ viewer {` + strings.Repeat(` followers(first: 100) { nodes {`, 9) + ` id` + strings.Repeat(` } }`, 9) + ` } }`: `"code":"QUERY_TOO_COSTLY"`,
	} {
		c.subscribe("a", query)
		got, err := c.read()
		if err != nil || !strings.HasPrefix(got, `{"id":"a","type":"error","payload":[{`) || !strings.Contains(got, want) {
			t.Errorf("%s: %s %v", query, got, err)
		}
	}

	l.refuseWith(apierr.Unauthenticated("somebody has to be signed in"))
	c.subscribe("a", followersQuery)
	got, _ := c.read()
	if !strings.HasPrefix(got, `{"id":"a","type":"next","payload":{"errors":[{`) || !strings.Contains(got, `"code":"UNAUTHENTICATED"`) {
		t.Errorf("got %s", got)
	}
	c.expect(`{"id":"a","type":"complete"}`)
}

func TestSubscriptionsToldWhyTheyEnd(t *testing.T) {
	for _, c := range []struct {
		err        error
		code, text string
	}{
		{apierr.RateLimited("the client is too slow"), "RATE_LIMITED", "too slow"},
		{fmt.Errorf("read %s", secret), "INTERNAL_SERVER_ERROR", "went wrong"},
	} {
		schema := newSchema(map[string]resolver{"tick": func(ctx context.Context, _ map[string]any) (any, error) {
			subscription.Fail(ctx, c.err)
			return nil, nil
		}})
		s := serve(t, gateway.Config{Schema: schema})
		client := s.joined()
		client.subscribe("a", `subscription { tick }`)
		got, err := client.read()
		if err != nil || !strings.HasPrefix(got, `{"id":"a","type":"error","payload":[{`) || !strings.Contains(got, c.code) ||
			!strings.Contains(got, c.text) || strings.Contains(got, secret) {
			t.Errorf("got %s %v", got, err)
		}
	}
}

func TestQueriesOverWebSocket(t *testing.T) {
	s := serve(t, gateway.Config{})
	c := s.joined()
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

func TestQueriesOverWebSocketHaveADeadline(t *testing.T) {
	s := serve(t, gateway.Config{RequestTimeout: 50 * time.Millisecond})
	c := s.joined()
	c.subscribe("1", `{ wait }`)
	got, err := c.read()
	if err != nil || !strings.Contains(got, `"code":"TIMEOUT"`) {
		t.Errorf("got %s %v", got, err)
	}
}

func TestProtocolViolations(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{InitTimeout: 2 * time.Second, Init: withToken}))
	init := `{"type":"connection_init"}`
	for name, c := range map[string]struct {
		messages []string
		code     int
		reason   string
	}{
		"nothing":                {nil, 4408, "initialisation timeout"},
		"no JSON":                {[]string{"hello"}, 4400, "Invalid message"},
		"more than JSON":         {[]string{init + "x"}, 4400, "Invalid message"},
		"no object":              {[]string{"[]"}, 4400, "Invalid message"},
		"unknown type":           {[]string{init, `{"type":"start","id":"1"}`}, 4400, "Invalid message"},
		"payload is no object":   {[]string{`{"type":"connection_init","payload":[1]}`}, 4400, "Invalid message"},
		"subscribe first":        {[]string{`{"type":"subscribe","id":"1","payload":{"query":"{hello}"}}`}, 4401, "Unauthorized"},
		"initialised twice":      {[]string{init, init}, 4429, "Too many"},
		"no id":                  {[]string{init, `{"type":"subscribe","payload":{"query":"{hello}"}}`}, 4400, "Invalid message"},
		"no payload":             {[]string{init, `{"type":"subscribe","id":"1"}`}, 4400, "Invalid message"},
		"no query":               {[]string{init, `{"type":"subscribe","id":"1","payload":{}}`}, 4400, "Invalid message"},
		"the same id twice":      {[]string{init, sub("x"), sub("x")}, 4409, "Subscriber for x already exists"},
		"the same long id twice": {[]string{init, sub(strings.Repeat("ü", 64)), sub(strings.Repeat("ü", 64))}, 4409, "… already exists"},
		"too long an id":         {[]string{init, sub(strings.Repeat("x", 129))}, 4400, "an id has at most 128 bytes"},
		"too long a ping":        {[]string{init, ping(1<<10 + 1)}, 4400, "a ping has at most 1024 bytes"},
		"too long an init":       {[]string{`{"type":"connection_init","payload":` + payload(16<<10+1) + `}`}, 4400, "connection_init has at most 16384 bytes"},
		"a bad token":            {[]string{`{"type":"connection_init","payload":{"Authorization":"Bearer eve"}}`}, 4403, "the token is not valid"},
		"a fault of the server":  {[]string{`{"type":"connection_init","payload":{"Authorization":"Bearer broken"}}`}, 4500, "something went wrong"},
		"too large":              {[]string{`"` + strings.Repeat("x", 128<<10) + `"`}, 1009, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := site{t, s.url, s.log}.connect()
			for i, m := range c.messages {
				if err := client.conn.Write(t.Context(), websocket.MessageText, []byte(m)); err != nil {
					break // closed already
				}
				if m == init && i == 0 {
					client.expect(`{"type":"connection_ack"}`)
				}
			}
			client.expectClose(c.code, c.reason)
		})
	}
	t.Run("binary", func(t *testing.T) {
		client := site{t, s.url, s.log}.connect()
		_ = client.conn.Write(t.Context(), websocket.MessageBinary, []byte(init))
		client.expectClose(4400, "Invalid message")
	})
	for _, protocols := range [][]string{nil, {"graphql-ws"}} {
		t.Run(fmt.Sprint("subprotocol ", protocols), func(t *testing.T) {
			client, _, err := site{t, s.url, s.log}.dial(nil, protocols...)
			if err != nil {
				t.Fatal(err)
			}
			client.expectClose(4406, "Subprotocol not acceptable")
		})
	}
}

// payload is an object of so many bytes.
func payload(bytes int) string { return `{"a":"` + strings.Repeat("x", bytes-len(`{"a":""}`)) + `"}` }

func ping(bytes int) string { return `{"type":"ping","payload":` + payload(bytes) + `}` }

// TestLongestMessages: what is exactly at its bound is let through.
func TestLongestMessages(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{}))
	c := s.connect()
	c.send(`{"type":"connection_init","payload":` + payload(16<<10) + `}`)
	c.expect(`{"type":"connection_ack"}`)
	c.send(ping(1 << 10))
	c.expect(`{"type":"pong","payload":` + payload(1<<10) + `}`)
	c.send(sub(strings.Repeat("x", 128)))
	eventually(t, "subscribed", func() bool { return l.began.Load() == 1 })
	most := `{"type":"pong","payload":` + payload(128<<10-len(`{"type":"pong","payload":}`)) + `}`
	c.send(most)
	c.send(ping(10))
	c.expect(`{"type":"pong","payload":` + payload(10) + `}`)
}

// TestHeadersOfWebSockets: they are kept as long as the connection.
func TestHeadersOfWebSockets(t *testing.T) {
	s := serve(t, gateway.Config{})
	for size, want := range map[int]int{8 << 10: http.StatusSwitchingProtocols, 17 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		_, response, err := s.dial(http.Header{"Cookie": {strings.Repeat("x", size)}}, "graphql-transport-ws")
		if response == nil || response.StatusCode != want {
			t.Errorf("%d bytes: %v %v, want %d", size, response, err, want)
		}
	}
}

func sub(id string) string {
	return fmt.Sprintf(`{"type":"subscribe","id":%q,"payload":{"query":%q}}`, id, followersQuery)
}

func TestWebSocketOrigins(t *testing.T) {
	s := serve(t, gateway.Config{CORSOrigins: []string{"https://app.example.org", "https://*.example.net"}})
	for origin, want := range map[string]bool{
		"":                        true, // a program
		s.url:                     true,
		"https://app.example.org": true,
		"https://a.example.net":   true,
		"http://app.example.org":  false,
		"https://evil.example":    false,
		"null":                    false,
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		c, response, err := s.dial(header, "graphql-transport-ws")
		if (err == nil) != want {
			t.Errorf("origin %q: %v, want %v", origin, err, want)
		}
		if c != nil {
			c.conn.CloseNow()
		}
		if !want {
			text, _ := io.ReadAll(response.Body)
			if response.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "FORBIDDEN") {
				t.Errorf("origin %q: %d %s", origin, response.StatusCode, text)
			}
		}
	}
}

func TestConnectionsEndWithTheirToken(t *testing.T) {
	l := newLive()
	l.tick(t)
	s := serve(t, l.config(gateway.Subscriptions{Init: withToken, Expires: soon}))
	c := s.connect()
	c.send(`{"type":"connection_init","payload":{"Authorization":"Bearer expired"}}`)
	c.expect(`{"type":"connection_ack"}`)
	c.subscribe("a", followersQuery)
	c.expectClose(4403, "the token has expired")
	eventually(t, "the subscription's context is done", func() bool { return l.ended.Load() == 1 })
	eventually(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=expired") })

	stays := s.connect()
	stays.send(`{"type":"connection_init","payload":{"Authorization":"Bearer ann"}}`)
	stays.expect(`{"type":"connection_ack"}`)
	stays.subscribe("a", followersQuery)
	if got, err := stays.read(); err != nil || !strings.Contains(got, "Bearer ann") {
		t.Errorf("got %s %v", got, err)
	}
}

func TestBoundsOfConnections(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{MaxConnections: 2, MaxOperations: 3}))
	c := s.joined()
	for _, id := range []string{"1", "2", "3"} {
		c.subscribe(id, followersQuery)
	}
	eventually(t, "three run", func() bool { return l.began.Load() == 3 })
	c.subscribe("4", followersQuery)
	if got, err := c.read(); err != nil || !strings.HasPrefix(got, `{"id":"4","type":"error"`) || !strings.Contains(got, `"code":"RATE_LIMITED"`) {
		t.Errorf("got %s %v", got, err)
	}
	c.send(`{"type":"complete","id":"2"}`)
	eventually(t, "two run", func() bool { return l.ended.Load() == 1 })
	c.subscribe("4", followersQuery)
	eventually(t, "three run again", func() bool { return l.began.Load() == 4 })

	other := s.joined()
	_, response, err := s.dial(nil, "graphql-transport-ws")
	if err == nil || response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("third connection: %v %v", response, err)
	}
	if got := s.query(followersQuery, "Accept", "text/event-stream"); got.status != 503 || got.code(t) != "UNAVAILABLE" {
		t.Errorf("third connection: %d %s", got.status, got.text)
	}
	other.conn.Close(websocket.StatusNormalClosure, "")
	eventually(t, "there is room again", func() bool {
		_, _, err := s.dial(nil, "graphql-transport-ws")
		return err == nil
	})
}

// slowWebSocket subscribes to ticks over a connection with little room, and takes nothing.
func slowWebSocket(t *testing.T, s site) net.Conn {
	var raw net.Conn
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		raw = conn
		return conn, err
	}}}
	conn, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/graphql",
		&websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	c := &wsClient{t, conn}
	c.send(`{"type":"connection_init"}`)
	c.subscribe("a", `subscription { tick }`)
	return raw
}

// slowStream does so by server-sent events.
func slowStream(t *testing.T, s site) net.Conn {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	body := `{"query":"subscription { tick }"}`
	fmt.Fprintf(conn, "POST /graphql HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return conn
}

// TestSlowClientsAreDropped: one that takes nothing, or a long answer byte by byte, is not
// waited for, over WebSocket nor over server-sent events.
func TestSlowClientsAreDropped(t *testing.T) {
	for name, c := range map[string]struct {
		open     func(t *testing.T, s site) net.Conn
		trickles bool
	}{
		"websocket":               {slowWebSocket, false},
		"websocket, byte by byte": {slowWebSocket, true},
		"sse":                     {slowStream, false},
		"sse, byte by byte":       {slowStream, true},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			length := 20_000
			if c.trickles {
				length = 3 << 20 // 16 MB
			}
			schema := newSchema(map[string]resolver{"tick": func(ctx context.Context, _ map[string]any) (any, error) {
				ticks := make(chan string)
				go func() {
					defer close(ended)
					long := strings.Repeat("tick ", length)
					for {
						select {
						case ticks <- long:
						case <-ctx.Done():
							return
						}
					}
				}()
				return ticks, nil
			}})
			registry := prometheus.NewRegistry()
			s := serve(t, gateway.Config{Schema: schema, Subscriptions: gateway.Subscriptions{WriteTimeout: 200 * time.Millisecond}, Metrics: gateway.NewMetrics(registry)})
			conn := c.open(t, s)
			defer conn.Close()
			if c.trickles {
				go trickle(conn)
			}
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				t.Fatal("it is still waited for")
			}
			eventually(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=slow") })
			eventually(t, "the metrics", func() bool {
				return value(t, registry, "kith_subscription_connections") == 0 && value(t, registry, "kith_subscription_operations") == 0 &&
					value(t, registry, "kith_subscription_connections_ended_total") == 1 && value(t, registry, "kith_graphql_requests_in_flight") == 0
			})
		})
	}
}

// trickle takes a byte now and then until the connection ends.
func trickle(conn net.Conn) {
	for b := make([]byte, 1); ; time.Sleep(20 * time.Millisecond) {
		if _, err := conn.Read(b); err != nil {
			return
		}
	}
}

// TestDeadConnectionsAreNoticed: one whose other end does not answer pings is cut.
func TestDeadConnectionsAreNoticed(t *testing.T) {
	l := newLive()
	s := serve(t, l.config(gateway.Subscriptions{PingInterval: 50 * time.Millisecond}))
	c := s.joined() // a pong is sent only while reading
	c.subscribe("a", followersQuery)
	eventually(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=unresponsive") })
	eventually(t, "the subscription's context is done", func() bool { return l.ended.Load() == 1 })

	alive := s.joined()
	go func() { _, _ = alive.read() }()
	time.Sleep(300 * time.Millisecond)
	if strings.Count(s.log.String(), "ended=") != 1 {
		t.Errorf("a connection that answers was ended: %s", s.log)
	}
}

// TestStreamMetrics: connections that stay open are no requests in flight, and do
// not spoil the durations.
func TestStreamMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	l := newLive()
	cfg := l.config(gateway.Subscriptions{})
	cfg.Metrics = gateway.NewMetrics(registry)
	s := serve(t, cfg)
	c := s.joined()
	c.subscribe("a", followersQuery)
	eventually(t, "subscribed", func() bool { return l.began.Load() == 1 })
	l.publish(1)
	_, _ = c.read()
	for name, want := range map[string]float64{
		"kith_subscription_connections": 1, "kith_subscription_operations": 1, "kith_subscription_answers_total": 1, "kith_graphql_requests_in_flight": 0,
	} {
		if got := value(t, registry, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	l.end()
	c.expect(`{"id":"a","type":"complete"}`)
	if got := value(t, registry, "kith_graphql_requests_total"); got != 1 {
		t.Errorf("%v operations, want 1", got)
	}
}

// value is the sum over the labels of a metric.
func value(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// TestCompletedOperationsTakePlacesUntilTheyEnd: a client that starts and completes one
// operation after another has no more of them running than one that does not.
func TestCompletedOperationsTakePlacesUntilTheyEnd(t *testing.T) {
	var running atomic.Int64
	release := make(chan struct{})
	schema := newSchema(map[string]resolver{"hello": func(context.Context, map[string]any) (any, error) {
		running.Add(1)
		<-release
		return "late", nil
	}})
	s := serve(t, gateway.Config{Schema: schema, Subscriptions: gateway.Subscriptions{MaxOperations: 3, MaxAnswers: 32}})
	c := s.joined()
	for i := range 3 {
		c.subscribe(fmt.Sprint(i), `{ hello }`)
		eventually(t, "it runs", func() bool { return running.Load() == int64(i+1) })
		c.send(fmt.Sprintf(`{"type":"complete","id":"%d"}`, i))
	}
	c.subscribe("more", `{ hello }`)
	time.Sleep(100 * time.Millisecond) // for it to begin, where it may
	if running.Load() != 3 {
		t.Errorf("%d run at once, want 3", running.Load())
	}
	close(release)
	c.expect(`{"id":"more","type":"next","payload":{"data":{"hello":"late"}}}`)
}

// A token that is taken back ends its connection, too.
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
		c.send(`{"type":"connection_init","payload":{"Authorization":"Bearer ann"}}`)
		c.expect(`{"type":"connection_ack"}`)
		return c
	}
	c, leaves := connect(), connect()
	(<-ends)()
	c.expectClose(4403, "the token is not valid any more")
	eventually(t, "the log", func() bool { return strings.Contains(s.log.String(), "ended=revoked") })
	leaves.conn.CloseNow()
	eventually(t, "nobody waits for those who have left", func() bool { return calledOff.Load() == 2 })
}
