package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Khan/genqlient/graphql"
	"github.com/gorilla/websocket"
)

// serve answers requests until the test ends, and returns the address.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

// A proxy in front of Kith may refuse in its own words: code says nothing then.
func TestCodeOfAProxy(t *testing.T) {
	for _, body := range []string{`{"message": "bad gateway"}`, `{"errors": []}`, `<html>`} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte(body))
		})
		if _, err := Follow(t.Context(), graphql.NewClient(url, http.DefaultClient), "1"); err == nil || code(err) != "" {
			t.Errorf("the code of %s is %q, of %v", body, code(err), err)
		}
	}
}

// Kith completes a subscription that could not begin: watch ends, and can be called again.
func TestWatchEndsWithItsSubscription(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{"graphql-transport-ws"}}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		for {
			var message struct{ Type, ID string }
			if conn.ReadJSON(&message) != nil {
				return
			}
			switch message.Type {
			case "connection_init":
				_ = conn.WriteJSON(map[string]any{"type": "connection_ack"})
			case "subscribe":
				answer := map[string]any{"data": nil, "errors": []any{map[string]any{"message": "not now"}}}
				_ = conn.WriteJSON(map[string]any{"type": "next", "id": message.ID, "payload": answer})
				_ = conn.WriteJSON(map[string]any{"type": "complete", "id": message.ID})
			}
		}
	})
	ended := make(chan error, 1)
	go func() { ended <- (&Session{}).watch(t.Context(), url, func() {}, func(string) {}) }()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it ends without a reason")
		}
	case <-time.After(10 * time.Second):
		t.Error("it does not end")
	}
}

// A sign-in that fails once is tried again: the session does not go on as nobody.
func TestSessionOutlivesAFailedSignIn(t *testing.T) {
	asked := ""
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked = r.Header.Get("Authorization"); asked == "Bearer old" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(`{"data": {"user": null}}`)) // what nobody may see, too
	})
	signIns := 0
	session := &Session{token: "old", SignIn: func(context.Context) (string, error) {
		if signIns++; signIns == 1 {
			return "", errors.New("the provider is away")
		}
		return "new", nil
	}}
	kith := graphql.NewClient(url, &http.Client{Transport: session})
	if _, err := Followings(t.Context(), kith, "maya", nil); err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("the first request: %v", err)
	}
	if _, err := Followings(t.Context(), kith, "maya", nil); err != nil || asked != "Bearer new" {
		t.Errorf("the second request is of %q: %v", asked, err)
	}
	session.token = "old"
	kith = graphql.NewClientUsingGet(url, &http.Client{Transport: session})
	if _, err := Followings(t.Context(), kith, "maya", nil); err != nil || asked != "Bearer new" {
		t.Errorf("a request without a body is of %q: %v", asked, err)
	}
}

// However much is written, the tokens of consistency fit into a header.
func TestTokensOfManyWritesFitIntoAHeader(t *testing.T) {
	longest, last, writes := 0, "", 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		last = r.Header.Get("Kith-Consistency")
		longest = max(longest, len(last))
		writes++
		w.Header().Set("Kith-Consistency", fmt.Sprint(writes, strings.Repeat("x", 900)))
		_, _ = w.Write([]byte(`{"data": {"follow": null}}`))
	})
	kith := graphql.NewClient(url, &http.Client{Transport: &Session{token: "a"}})
	for range 12 {
		if _, err := Follow(t.Context(), kith, "1"); err != nil {
			t.Fatal(err)
		}
	}
	if longest > 3000 || !strings.Contains(last, "10x") || !strings.Contains(last, "11x") {
		t.Errorf("the longest header has %d bytes, the last one is %.20s…", longest, last)
	}
}
