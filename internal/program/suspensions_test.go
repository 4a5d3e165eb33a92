package program_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/internal/kithtest"
	"kith/internal/must"
)

// A suspension holds on every gateway, outlives all of them, and ends on each by its time.
func TestSuspensionsHoldOnAllGateways(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, make func(testing.TB, int) []database) {
		options := []kithtest.Option{kithtest.Args("--store", location(laidOut(t, make(t, 2)...)...)), kithtest.Env("KITH_JWT_SECRET=" + secret)}
		here, there := kithtest.Start(t, options...), kithtest.Start(t, options...)
		const login = `login(handle: "maya", password: "correct horse")`
		token := tokenOf(t, here, "", `register(handle: "maya", name: "M", password: "correct horse")`)
		operator := signed(t, jwt.MapClaims{"scope": "admin", "sub": "op 7"})
		_, text := askAs(t, here, token, "{ viewer { user { id } } }")
		maya := regexp.MustCompile(`\d+`).FindString(text)
		moderate := func(g *kithtest.Gateway, arguments string) {
			t.Helper()
			_, text := askAs(t, g, operator, fmt.Sprintf("mutation { done: suspendUser(userId: %s, %s) { changed entry { by } } }", maya, arguments))
			if !strings.Contains(text, `{"changed":true,"entry":{"by":"op 7"}}`) {
				t.Fatal(text)
			}
		}
		sees := func(g *kithtest.Gateway) bool {
			_, text := askAs(t, g, "", `{ user(by: {handle: "maya"}) { name } }`)
			return strings.Contains(text, `"M"`)
		}
		refused := func(g *kithtest.Gateway, message string) {
			t.Helper()
			for _, call := range []struct{ token, field string }{
				{"", login + " { token }"}, {token, "renewToken { token }"}, {token, "reactivateAccount { changed }"}, {token, `updateProfile(name: "N") { changed }`},
			} {
				_, text := askAs(t, g, call.token, "mutation { "+call.field+" }")
				if !strings.Contains(text, `"reason":"SUSPENDED"`) || !strings.Contains(text, message) {
					t.Errorf("%s: %s", call.field, text)
				}
			}
			if _, text := askAs(t, g, "", `mutation { login(handle: "maya", password: "wrong horse") { token } }`); strings.Contains(text, "SUSPENDED") {
				t.Errorf("with a wrong password: %s", text)
			}
		}
		page, err := os.ReadFile("../../docs/how-to/sign-in.md")
		must.OK(t, err)
		example := regexp.MustCompile("(?s)```sh\n(curl [^`]*suspendUser[^`]*)```").FindSubmatch(page)
		if example == nil {
			t.Fatal("the page has no example")
		}
		command := exec.CommandContext(t.Context(), "sh", "-c", strings.NewReplacer("http://127.0.0.1:8080", here.URL, "1283", maya).Replace(string(example[1])))
		command.Env = append(os.Environ(), "TOKEN="+operator)
		if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), `{"changed":true,"entry":{"by":"op 7",`) {
			t.Fatalf("%v: %s", err, out)
		}
		for _, g := range []*kithtest.Gateway{here, there} {
			g.Until(t, "hidden", func() bool { return !sees(g) })
			refused(g, "your account is suspended: spam")
		}
		here.Kill(t)
		there.Kill(t)
		here, there = kithtest.Start(t, options...), kithtest.Start(t, options...)
		for _, g := range []*kithtest.Gateway{here, there} {
			if sees(g) {
				t.Error("a new gateway shows the user")
			}
			refused(g, "your account is suspended: spam")
		}
		until := time.Now().Add(5 * time.Second)
		moderate(there, fmt.Sprintf(`reason: "more spam", until: %q`, until.UTC().Format(time.RFC3339Nano)))
		for _, g := range []*kithtest.Gateway{here, there} {
			g.Until(t, "the end", func() bool { return sees(g) })
			if early := time.Until(until); early > 0 {
				t.Errorf("shown %v before the end", early)
			}
			t.Logf("shown %v after the end", time.Since(until))
			tokenOf(t, g, "", login)
			if _, text := askAs(t, g, token, fmt.Sprintf(`mutation { updateProfile(bio: %q) { changed } }`, g.URL)); !strings.Contains(text, `"changed":true`) {
				t.Error(text)
			}
		}
		_, text = askAs(t, here, operator, "{ moderationLog { nodes { reason } } }")
		if !strings.Contains(text, `[{"reason":"more spam"},{"reason":"spam"}]`) {
			t.Error(text)
		}
	})
}
