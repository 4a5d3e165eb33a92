package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kith/gateway"
	"kith/internal/check"
	"kith/internal/must"
)

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
}
