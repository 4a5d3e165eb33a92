package examples_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"kith/internal/check"
	"kith/internal/testenv"
)

// TestSubscriptionsBeginAgain: a subscription that could not begin is completed, and one that has fallen behind ends with an error. The
// example begins both again.
func TestSubscriptionsBeginAgain(t *testing.T) {
	testenv.NPM(t, "subscriptions")
	t.Parallel()
	type message map[string]any
	failure := []message{{"message": "no", "extensions": message{"retryable": true}}}
	edge := message{"edge": message{"node": message{"handle": "late"}}}
	answers := make(chan []message, 3) // a subscription each
	for _, one := range [][]message{
		{{"type": "next", "payload": message{"data": nil, "errors": failure}}, {"type": "complete"}},
		{{"type": "error", "payload": failure}},
		{{"type": "next", "payload": message{"data": message{"followerAdded": edge}}}},
	} {
		answers <- one
	}
	close(answers)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, `{"data": {"login": {"token": "a token"}, "viewer": {"user": {"followers": {"nodes": []}}}}}`)
			return
		}
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"graphql-transport-ws"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		for ctx := r.Context(); ; {
			var asked struct{ ID, Type string }
			if wsjson.Read(ctx, conn, &asked) != nil {
				return
			}
			switch asked.Type {
			case "connection_init":
				_ = wsjson.Write(ctx, conn, message{"type": "connection_ack"})
			case "subscribe":
				for _, answer := range <-answers {
					answer["id"] = asked.ID
					_ = wsjson.Write(ctx, conn, answer)
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	e := run(t, "subscriptions/main.mjs", server.URL, "watcher", "ws", "")
	check.Equal(t, "the follower it tells of", e.until("follower").Handle, "late")
}
