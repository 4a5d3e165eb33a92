package program_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
)

// askAs sends a query with a token and returns the status and the text of the answer.
func askAs(t *testing.T, g *kithtest.Gateway, token, query string) (status int, answer string) {
	t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	must.OK(t, err)
	var headers []string
	if token != "" {
		headers = []string{"Authorization", "Bearer " + token}
	}
	status, answer, err = send(g, string(body), headers...)
	must.OK(t, err)
	return status, answer
}

// textAs is the text of the answer to a query with a token. It has some parts.
func textAs(t *testing.T, g *kithtest.Gateway, token, query string, parts ...string) string {
	t.Helper()
	_, text := askAs(t, g, token, query)
	check.Has(t, query, text, parts...)
	return text
}

// idOf is the user of a token.
func idOf(t *testing.T, g *kithtest.Gateway, token string) string {
	t.Helper()
	return regexp.MustCompile(`\d+`).FindString(textAs(t, g, token, "{ viewer { user { id } } }"))
}

// tokenOf runs a mutation that signs a user in, and returns the token.
func tokenOf(t *testing.T, g *kithtest.Gateway, token, field string) string {
	t.Helper()
	text := textAs(t, g, token, "mutation { session: "+field+" { token expiresAt } }")
	var answer struct {
		Data struct {
			Session struct {
				Token     string
				ExpiresAt time.Time
			}
		}
	}
	err := json.Unmarshal([]byte(text), &answer)
	must.That(t, err == nil && answer.Data.Session.Token != "" && !answer.Data.Session.ExpiresAt.Before(time.Now()), "%s: %s", field, text)
	return answer.Data.Session.Token
}

// listen opens a WebSocket with a token, and returns how it is closed.
func listen(t *testing.T, g *kithtest.Gateway, token string) chan websocket.CloseError {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	conn, _, err := websocket.Dial(ctx, strings.Replace(g.URL, "http", "ws", 1)+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	must.OK(t, err)
	t.Cleanup(func() { conn.CloseNow() })
	init := `{"type":"connection_init","payload":{"Authorization":"Bearer ` + token + `"}}`
	must.OK(t, conn.Write(ctx, websocket.MessageText, []byte(init)))
	_, text, err := conn.Read(ctx)
	must.That(t, err == nil && strings.Contains(string(text), "connection_ack"), "%v %v", string(text), err)
	closed := make(chan websocket.CloseError, 1)
	go func() {
		for {
			if _, _, err := conn.Read(ctx); err != nil {
				var end websocket.CloseError
				errors.As(err, &end)
				closed <- end
				return
			}
		}
	}()
	return closed
}

// If a password is changed, the older tokens and the connections that were opened with them end on
// every gateway, within five seconds.
func TestAChangedPasswordEndsOlderTokens(t *testing.T) {
	t.Parallel()
	options := []kithtest.Option{
		kithtest.Args("--store", location(newSQLite(t, 2)...)), kithtest.Env("KITH_JWT_SECRET=" + secret),
	}
	here, there := kithtest.Start(t, options...), kithtest.Start(t, options...)
	const me = "{ viewer { user { handle } } }"
	isGood := func(g *kithtest.Gateway, token string) bool {
		status, text := askAs(t, g, token, me)
		must.That(t, status == http.StatusOK || status == http.StatusUnauthorized, "status %d: %s", status, text)
		return status == http.StatusOK && !strings.Contains(text, "errors")
	}
	first := tokenOf(t, here, "", `register(handle: "maya", name: "Maya", password: "correct horse")`)
	other := tokenOf(t, here, "", `register(handle: "zoe", name: "Zoe", password: "correct horse")`)
	second := tokenOf(t, there, "", `login(handle: "maya", password: "correct horse")`)
	renewed := tokenOf(t, there, first, `renewToken`)
	check.That(t, isGood(here, renewed) && isGood(here, first), "a renewed token is refused, or has ended the one before: %s, %s", renewed, first)
	ended, stays := listen(t, there, second), listen(t, there, other)

	textAs(t, here, first, `mutation { changePassword(current: "correct horse", new: "short") { token } }`, "PASSWORD_TOO_SHORT", `"argument":"new"`)
	fresh := tokenOf(t, here, first, `changePassword(current: "correct horse", new: "battery staple")`)
	changed := time.Now()
	for name, token := range map[string]string{"the first": first, "the second": second, "the renewed": renewed} {
		check.That(t, !isGood(here, token), "%s token is still good where the password was changed", name)
	}
	there.Until(t, "refuse older tokens", func() bool { return !isGood(there, first) && !isGood(there, second) && !isGood(there, renewed) })
	end := <-ended
	late := time.Since(changed)
	check.That(t, late <= 20*time.Second && end.Code == 4403, "after %s, closed with %d %s", late, end.Code, end.Reason)
	for name, token := range map[string]string{
		"the payload's": fresh, "another user's": other,
		"a new": tokenOf(t, there, "", `login(handle: "maya", password: "battery staple")`),
	} {
		check.That(t, isGood(here, token) && isGood(there, token), "%s token is refused", name)
	}
	if len(stays) > 0 {
		t.Errorf("another user's connection was closed: %+v", <-stays)
	}
	// A gateway that starts later also knows of the change.
	if late := kithtest.Start(t, options...); isGood(late, first) || !isGood(late, fresh) {
		t.Error("a gateway that has started since takes the wrong tokens")
	}
}

// Logins that come all at once are answered, one after another: hashing has a queue of its own.
func TestManyLoginsAtOnce(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t, kithtest.Args("--store", location(newSQLite(t, 1)...), "--login-limit", "0", "--address-limit", "0", "--request-timeout", "2m"))
	var all sync.WaitGroup
	for range 80 {
		all.Go(func() {
			answer, err := g.Ask(`mutation { login(handle: "nobody", password: "correct horse") { token } }`, nil)
			check.That(t, err == nil && len(answer.Errors) == 1 && answer.Errors[0].Extensions["code"] == "UNAUTHENTICATED", "%v %+v", err, answer)
		})
	}
	all.Wait()
}
