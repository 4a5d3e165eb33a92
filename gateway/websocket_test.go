package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
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
		got := c.reads(`"next"`, fmt.Sprintf(`"id":"%d"`, e.id), e.want)
		check.That(t, strings.Contains(got, "errors") == (e.want != "") && !strings.Contains(got, secret), "follower %d: %s", e.id, got)
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

// wsClient is one end of a WebSocket, driven by hand.
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

func (s site) connect(headers ...string) *wsClient {
	s.t.Helper()
	header := http.Header{}
	set(header, headers)
	c, _, err := s.dial(header, "graphql-transport-ws")
	must.OK(s.t, err)
	return c
}

// joined opens a connection and waits for its acknowledgement.
func (s site) joined(headers ...string) *wsClient {
	s.t.Helper()
	c := s.connect(headers...)
	c.send(`{"type":"connection_init"}`)
	c.expect(`{"type":"connection_ack"}`)
	return c
}

func (c *wsClient) send(text string) {
	c.t.Helper()
	must.OK(c.t, c.conn.Write(c.t.Context(), websocket.MessageText, []byte(text)))
}

func (c *wsClient) subscribe(id, query string) {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"type":"subscribe","id":%q,"payload":{"query":%q}}`, id, query))
}

func (c *wsClient) read() (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	_, text, err := c.conn.Read(ctx)
	return string(text), err
}

// reads returns the next message, which has some parts.
func (c *wsClient) reads(parts ...string) string {
	c.t.Helper()
	got, err := c.read()
	must.OK(c.t, err)
	check.Has(c.t, "a message", got, parts...)
	return got
}

func (c *wsClient) expect(want string) {
	c.t.Helper()
	got, err := c.read()
	must.That(c.t, err == nil && got == want, "got %s %v, want %s", got, err, want)
}

func (c *wsClient) expectClose(code int, reason string) {
	c.t.Helper()
	for {
		got, err := c.read()
		if err == nil && (strings.Contains(got, `"next"`) || strings.Contains(got, `"complete"`)) {
			continue
		}
		must.That(c.t, websocket.CloseStatus(err) == websocket.StatusCode(code) && strings.Contains(err.Error(), reason), "got %s %v, want %d %s", got, err, code, reason)
		return
	}
}

func follower(id storage.UserID, loaders int, relationship string) string {
	return fmt.Sprintf(`{"data":{"followerAdded":{"edge":{"cursor":"line\nbreak","node":{"id":"%d","followings":{"edges":[{"cursor":"%d"}]},"viewerRelationship":%s}}}}}`, id, loaders, relationship)
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
		"a user not known yet":   {[]string{`{"type":"connection_init","payload":{"Authorization":"Bearer lost"}}`}, 1013, "cannot be looked up"},
		"a fault of the server":  {[]string{`{"type":"connection_init","payload":{"Authorization":"Bearer broken"}}`}, 4500, "something went wrong"},
		"too large":              {[]string{`"` + strings.Repeat("x", 128<<10) + `"`}, 1009, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := site{t: t, url: s.url, log: s.log}.connect()
			for i, m := range c.messages {
				if err := client.conn.Write(t.Context(), websocket.MessageText, []byte(m)); err != nil {
					break // it is closed already
				}
				if m == init && i == 0 {
					client.expect(`{"type":"connection_ack"}`)
				}
			}
			client.expectClose(c.code, c.reason)
		})
	}
	t.Run("binary", func(t *testing.T) {
		client := site{t: t, url: s.url, log: s.log}.connect()
		_ = client.conn.Write(t.Context(), websocket.MessageBinary, []byte(init))
		client.expectClose(4400, "Invalid message")
	})
	for _, protocols := range [][]string{nil, {"graphql-ws"}} {
		t.Run(fmt.Sprint("subprotocol ", protocols), func(t *testing.T) {
			client, _, err := site{t: t, url: s.url, log: s.log}.dial(nil, protocols...)
			must.OK(t, err)
			client.expectClose(4406, "Subprotocol not acceptable")
		})
	}
}

// payload is an object of so many bytes.
func payload(bytes int) string { return `{"a":"` + strings.Repeat("x", bytes-len(`{"a":""}`)) + `"}` }

func ping(bytes int) string { return `{"type":"ping","payload":` + payload(bytes) + `}` }

// TestLongestMessages: a message exactly at its bound is accepted.
func TestLongestMessages(t *testing.T) {
	l := newLive()
	c := serve(t, l.config(gateway.Subscriptions{})).connect()
	c.send(`{"type":"connection_init","payload":` + payload(16<<10) + `}`)
	c.expect(`{"type":"connection_ack"}`)
	c.send(ping(1 << 10))
	c.expect(`{"type":"pong","payload":` + payload(1<<10) + `}`)
	c.send(sub(strings.Repeat("x", 128)))
	must.Soon(t, "subscribed", func() bool { return l.began.Load() == 1 })
	most := `{"type":"pong","payload":` + payload(128<<10-len(`{"type":"pong","payload":}`)) + `}`
	c.send(most)
	c.send(ping(10))
	c.expect(`{"type":"pong","payload":` + payload(10) + `}`)
}

// TestHeadersOfWebSockets: headers are kept for as long as the connection.
func TestHeadersOfWebSockets(t *testing.T) {
	s := serve(t, gateway.Config{})
	for size, want := range map[int]int{8 << 10: http.StatusSwitchingProtocols, 17 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		_, response, err := s.dial(http.Header{"Cookie": {strings.Repeat("x", size)}}, "graphql-transport-ws")
		check.That(t, response != nil && response.StatusCode == want, "%d bytes: %v %v, want %d", size, response, err, want)
	}
}

func sub(id string) string {
	return fmt.Sprintf(`{"type":"subscribe","id":%q,"payload":{"query":%q}}`, id, followersQuery)
}

func TestWebSocketOrigins(t *testing.T) {
	s := serve(t, gateway.Config{CORSOrigins: []string{"https://app.example.org", "https://*.example.net"}})
	for origin, want := range map[string]bool{
		"":                        true, // from a program, not a browser
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
		check.Equal(t, fmt.Sprintf("origin %q: %v", origin, err), err == nil, want)
		if c != nil {
			c.conn.CloseNow()
		}
		if !want {
			text, _ := io.ReadAll(response.Body)
			check.Equal(t, fmt.Sprintf("origin %q", origin), response.StatusCode, http.StatusForbidden)
			check.Has(t, fmt.Sprintf("origin %q", origin), string(text), "FORBIDDEN")
		}
	}
	for site, want := range map[string]bool{"same-origin": true, "same-site": false, "cross-site": false} { // behind a proxy that changes Host
		c, _, err := s.dial(http.Header{"Origin": {"https://kith.example.org"}, "Sec-Fetch-Site": {site}}, "graphql-transport-ws")
		check.Equal(t, fmt.Sprintf("%s: %v", site, err), err == nil, want)
		if c != nil {
			c.conn.CloseNow()
		}
	}
}
