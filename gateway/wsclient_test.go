package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

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
