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

	"kith/internal/check"
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
		maya := idOf(t, here, token)
		moderate := func(g *kithtest.Gateway, arguments string) {
			t.Helper()
			textAs(t, g, operator, fmt.Sprintf("mutation { done: suspendUser(userId: %s, %s) { changed entry { by } } }", maya, arguments), `{"changed":true,"entry":{"by":"op 7"}}`)
		}
		sees := func(g *kithtest.Gateway) bool {
			text := textAs(t, g, "", `{ user(by: {handle: "maya"}) { name } }`)
			return strings.Contains(text, `"M"`)
		}
		refused := func(g *kithtest.Gateway, message string) {
			t.Helper()
			for _, call := range []struct{ token, field string }{
				{"", login + " { token }"}, {token, "renewToken { token }"}, {token, "reactivateAccount { changed }"}, {token, `updateProfile(name: "N") { changed }`},
			} {
				textAs(t, g, call.token, "mutation { "+call.field+" }", `"reason":"SUSPENDED"`, message)
			}
			check.Lacks(t, "with a wrong password", textAs(t, g, "", `mutation { login(handle: "maya", password: "wrong horse") { token } }`), "SUSPENDED")
		}
		page := must.File(t, "../../docs/how-to/sign-in.md")
		example := regexp.MustCompile("(?s)```sh\n(curl [^`]*suspendUser[^`]*)```").FindSubmatch(page)
		must.That(t, example != nil, "the page has no example")
		command := exec.CommandContext(t.Context(), "sh", "-c", strings.NewReplacer("http://127.0.0.1:8080", here.URL, "1283", maya).Replace(string(example[1])))
		command.Env = append(os.Environ(), "TOKEN="+operator)
		out, err := command.CombinedOutput()
		must.That(t, err == nil && strings.Contains(string(out), `{"changed":true,"entry":{"by":"op 7",`), "%v: %s", err, out)
		for _, g := range []*kithtest.Gateway{here, there} {
			g.Until(t, "hidden", func() bool { return !sees(g) })
			refused(g, "your account is suspended: spam")
		}
		here.Kill(t)
		there.Kill(t)
		here, there = kithtest.Start(t, options...), kithtest.Start(t, options...)
		for _, g := range []*kithtest.Gateway{here, there} {
			check.That(t, !sees(g), "a new gateway shows the user")
			refused(g, "your account is suspended: spam")
		}
		until := time.Now().Add(5 * time.Second)
		moderate(there, fmt.Sprintf(`reason: "more spam", until: %q`, until.UTC().Format(time.RFC3339Nano)))
		for _, g := range []*kithtest.Gateway{here, there} {
			g.Until(t, "the end", func() bool { return sees(g) })
			check.Most(t, "the time to the end", time.Until(until), 0)
			t.Logf("shown %v after the end", time.Since(until))
			tokenOf(t, g, "", login)
			textAs(t, g, token, fmt.Sprintf(`mutation { updateProfile(bio: %q) { changed } }`, g.URL), `"changed":true`)
		}
		textAs(t, here, operator, "{ moderationLog { nodes { reason } } }", `[{"reason":"more spam"},{"reason":"spam"}]`)
	})
}
