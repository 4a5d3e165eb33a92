package program_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/golang-jwt/jwt/v5"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// TestPartsAreSettings: what is left out cannot be asked for in any way, also by operators, and all else has the names with the prefix.
func TestPartsAreSettings(t *testing.T) {
	t.Parallel()
	shape := []string{"--without=posts,accounts", "--type-prefix=Kith"}
	g := kithtest.Start(t, kithtest.Args(append(shape, "--demo", "--jwt-secret", secret, "--store", kithtest.DemoStore(t, 1))...))
	admin, maya := adminToken(t), signed(t, jwt.MapClaims{"sub": "1"})
	for _, query := range []string{
		"{ kithLatestPosts { nodes { id } } }", "{ latestPosts { nodes { id } } }", "{ kithViewer { feed { complete } } }", "{ node(id: 1) { ... on KithPost { text } } }",
		`mutation { kithLogin(handle: "a", password: "b") { token } }`, "mutation { register }", "subscription { kithFeedItems { cursor } }", "{ kithUser(id: 1) { postCount } }",
	} {
		persisted := fmt.Sprintf(`{"persistedQuery":{"version":1,"sha256Hash":"%x"}}`, sha256.Sum256([]byte(query)))
		_, byGet := g.Get(t, "/graphql?query="+url.QueryEscape(query)+"&extensions="+url.QueryEscape(persisted))
		_, byHash := g.Get(t, "/graphql?extensions="+url.QueryEscape(persisted))
		byOperator := textAs(t, g, admin, query)
		for way, got := range map[string]string{"GET": byGet, "the hash": byHash, "an operator": byOperator, "events": events(t, g, maya, query), "a WebSocket": overSocket(t, g, maya, query)} {
			check.That(t, strings.Contains(got, "INVALID_QUERY") && !strings.Contains(got, `"data"`), "%s, by %s: %.300s", query, way, got)
		}
	}
	textAs(t, g, maya, `{ node(id: "post_1_1") { id } user: node(id: "1") { ... on User { handle __typename listVisibility { __typename } } } }`,
		`{"node":null,"user":{"handle":"maya_okafor","__typename":"User","listVisibility":{"__typename":"KithListVisibility"}}}`)
	check.Has(t, "an operator on a WebSocket", overSocket(t, g, admin, "{ kithConsistency { __typename } }"), `"KithConsistency"`)
	check.Has(t, "a user on a WebSocket", overSocket(t, g, maya, "{ kithConsistency { __typename } }"), "INVALID_QUERY")
	status, _ := g.Get(t, "/app")
	check.That(t, status == http.StatusNotFound, "the app answers %d, and its operations are not valid", status)
	_, schema := g.Get(t, "/schema.graphql")
	if end := kithtest.Run(t, kithtest.Args(append([]string{"schema"}, shape...)...)); end.Stdout != schema || !strings.Contains(schema, "\n  kithUser(") || strings.Contains(schema, "Consistency {") {
		t.Errorf("kith schema %s prints another schema than the gateway has: %.300s", shape, end.Stdout)
	}
	check.Has(t, "for operators", kithtest.Run(t, kithtest.Args("schema", "--operators")).Stdout, "\n  createUser(")
}

// TestSubscriptionsHaveThePrefix: an event has the names that its subscription has.
func TestSubscriptionsHaveThePrefix(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t, kithtest.Args("--type-prefix=Kith", "--demo", "--jwt-secret", secret, "--store", kithtest.DemoStore(t, 1)))
	heard := make(chan string, 1)
	go func() {
		heard <- events(t, g, signed(t, jwt.MapClaims{"sub": "1"}), "subscription { kithRelationshipChanged(userIds: [1900]) { __typename relationship { to { __typename id listVisibility { __typename } } } } }")
	}()
	other := signed(t, jwt.MapClaims{"sub": "1900"})
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		askAs(t, g, other, "mutation { kithUnfollow(userId: 1) { changed } }")
		askAs(t, g, other, "mutation { kithFollow(userId: 1) { changed } }")
		select {
		case got := <-heard:
			want := `{"kithRelationshipChanged":{"__typename":"KithRelationshipChanged","relationship":{"to":{"__typename":"User","id":"1900","listVisibility":{"__typename":"KithListVisibility"}}}}}`
			check.That(t, strings.Contains(got, want), "the event is %s", got)
			return
		case <-time.After(200 * time.Millisecond): // the subscription may not have begun
		}
	}
	t.Error("there is no event")
}

// TestTrustedDocumentsFitTheParts: documents of a part that is left out are refused at the start.
func TestTrustedDocumentsFitTheParts(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(folder, "a.json"), []byte(`{"a": "{ viewer { postCount } }"}`), 0o600))
	end := kithtest.Run(t, kithtest.Args("--without=posts", "--trusted-documents", folder, "--store", "sqlite:"+t.TempDir()+"/kith.db"))
	check.Equal(t, "it ends well", end.Code == 0, false)
	check.Has(t, "it", end.Stderr, "--trusted-documents", `Cannot query field "postCount"`)
}

// events is the first answer to an operation by server-sent events.
func events(t *testing.T, g *kithtest.Gateway, token, query string) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL+"/graphql", strings.NewReader(fmt.Sprintf(`{"query":%q}`, query)))
	if err != nil {
		t.Error(err)
		return ""
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	text, buffer := "", make([]byte, 1<<16)
	for !strings.Contains(text, `"data"`) && !strings.Contains(text, `"errors"`) {
		n, err := response.Body.Read(buffer)
		if text += string(buffer[:n]); err != nil {
			break
		}
	}
	return text
}

// overSocket is the first answer to an operation on a WebSocket.
func overSocket(t *testing.T, g *kithtest.Gateway, token, query string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, strings.Replace(g.URL, "http", "ws", 1)+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	must.OK(t, err)
	defer conn.CloseNow()
	var text []byte
	for _, message := range []string{`{"type":"connection_init","payload":{"Authorization":"Bearer ` + token + `"}}`, fmt.Sprintf(`{"id":"1","type":"subscribe","payload":{"query":%q}}`, query)} {
		must.OK(t, conn.Write(ctx, websocket.MessageText, []byte(message)))
		_, text, err = conn.Read(ctx)
		must.OK(t, err)
	}
	return string(text)
}
