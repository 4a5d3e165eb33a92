package apitest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"kith/internal/must"
)

// Transport is how the answers of a subscription come.
type Transport string

// The transports, and all of them.
const (
	Events    Transport = "server-sent events"
	WebSocket Transport = "graphql-transport-ws"
)

var Transports = []Transport{Events, WebSocket}

// Subscribe opens a subscription and returns its answers, of which up to 100 may wait. It ends with the context. The subscription may
// not have begun yet when Subscribe returns.
func (a *API) Subscribe(ctx context.Context, over Transport, query string, vars Vars) <-chan string {
	a.t.Helper()
	payload, err := json.Marshal(map[string]any{"query": query, "variables": vars})
	must.OK(a.t, err)
	open := a.events
	if over == WebSocket {
		open = a.socket
	}
	answers := make(chan string, 100)
	receive, err := open(ctx, payload)
	must.That(a.t, err == nil, "%s: %v", query, err)
	go func() {
		defer close(answers)
		receive(answers)
	}()
	return answers
}

func (a *API) events(ctx context.Context, payload []byte) (receive func(chan<- string), err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL(), bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	for name, values := range a.header {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	return func(answers chan<- string) {
		defer response.Body.Close()
		for lines := bufio.NewReader(response.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil { // a line without its end was cut off
				return
			}
			if data, ok := strings.CutPrefix(line, "data:"); ok && strings.TrimSpace(data) != "" {
				answers <- strings.TrimSpace(data)
			}
		}
	}, nil
}

func (a *API) socket(ctx context.Context, payload []byte) (receive func(chan<- string), err error) {
	conn, _, err := websocket.Dial(ctx, a.URL(), &websocket.DialOptions{Subprotocols: []string{string(WebSocket)}, HTTPHeader: a.header})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 24)
	for _, message := range []any{map[string]string{"type": "connection_init"}, map[string]any{"type": "subscribe", "id": "1", "payload": json.RawMessage(payload)}} {
		if err := wsjson.Write(ctx, conn, message); err != nil {
			conn.CloseNow()
			return nil, err
		}
	}
	return func(answers chan<- string) {
		defer conn.CloseNow()
		for {
			var m struct {
				Type    string
				Payload json.RawMessage
			}
			if err := wsjson.Read(ctx, conn, &m); err != nil || m.Type == "complete" {
				return
			}
			switch m.Type {
			case "next":
				answers <- string(m.Payload)
			case "error": // a list, and the end
				answers <- `{"errors":` + string(m.Payload) + `}`
				return
			}
		}
	}, nil
}
