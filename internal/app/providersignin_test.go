package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// openProvided is a gateway where only a provider signs people in, and a browser in front of both.
func openProvided(t *testing.T, p *provider, more string) site {
	t.Helper()
	needsApp(t)
	file := filepath.Join(t.TempDir(), "identity.json")
	must.OK(t, os.WriteFile(file, []byte(p.entry(more)), 0o600))
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1), "--identity", file), trusting(t, "on"), patient)
	s := browse(t, g, g.URL)
	s.browser.Allows(p.URL)
	return s
}

const (
	session    = `JSON.parse(localStorage.getItem("kith-session") ?? "null")`
	noPassword = `!document.querySelector("input[type=password], .tabs, .demo")`
)

// A person registers by a provider, stays signed in while tokens of seconds expire and the provider is away for a while, signs out there,
// and comes back. Answers that do not belong to the sign-in, and refusals, sign nobody in.
func TestSignInByProvider(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	p := newProvider(t)
	s := openProvided(t, p, `, "app": {"clientId": "`+clientID+`", "scopes": ["offline_access"]}`)
	button := "Sign in with " + p.Listener.Addr().String()
	p.now(func() { p.subject = "auth0|nadia" })

	tab := s.browser.Tab("/app/settings")
	tab.Forgives("401 (Unauthorized)")
	tab.Forgives("403 (Forbidden)") // she is not registered
	tab.Forgives("503 (Service Unavailable)")
	tab.Press(button)
	tab.Sees("You are new here")
	tab.Until("there is no way to sign in that cannot succeed", noPassword)
	tab.Until("the code is not in the address", `location.search === ""`)
	tab.Type(`input[name="name"]`, "Nadia Berg")
	tab.Type(`input[name="handle"]`, "maya_okafor")
	tab.Press("Create an account")
	tab.Until("the handle is refused", `document.querySelector("form .problem").textContent.length > 5`)
	tab.Type(`input[name="handle"]`, "_nadia")
	tab.Press("Create an account")
	tab.Sees("Who do you know?")
	tab.Until("she is signed in", `document.querySelector(".me b")?.textContent === "Nadia Berg"`)

	// Sign out and in again. Tokens expire and are renewed, with nobody at the keyboard: the socket ends with its token.
	p.now(func() { p.ttl = 8 * time.Second })
	tab.Press("Sign out")
	s.Until(t, "sign out at the provider", func() bool { return p.count("/end") == 1 })
	tab.Press(button)
	tab.Until("she is signed in again", `document.querySelector(".me b")?.textContent === "Nadia Berg"`)
	first := tab.Text(session + ".token")
	s.Until(t, "the first token has expired", func() bool { return s.status(t, first) == http.StatusUnauthorized })
	s.Until(t, "renew twice", func() bool { return p.count("refresh_token") >= 2 })
	tab.Press("Home")
	tab.Until("her page is there", `location.pathname === "/app/" && document.querySelector("textarea") && `+session+`.token !== "`+first+`"`)
	beside := tab.Beside(s.browser, "/app/u/maya_okafor_nadia")
	beside.Until("another tab is signed in", `document.querySelector(".me b")?.textContent === "Nadia Berg"`)
	beside.Forgives("503 (Service Unavailable)")
	beside.Forgives("401 (Unauthorized)")

	// The provider is away for longer than a token is valid.
	p.now(func() { p.away = true })
	last := tab.Text(session + ".token")
	s.Until(t, "the token has expired", func() bool { return s.status(t, last) == http.StatusUnauthorized })
	tab.Press("Discover")
	s.Until(t, "it is asked in vain", func() bool { return p.count("/.well-known/openid-configuration") > 3 })
	must.That(t, tab.Text(`String(!!`+session+`)`) == "true", "the session has ended because the provider was away")
	p.now(func() { p.away, p.ttl = false, time.Hour })
	tab.Press("Requests")
	tab.Until("she goes on", session+`.token !== "`+last+`" && document.querySelector(".me b")`)
	check.Equal(t, "refresh tokens were used twice", p.count("refused"), 0)

	// Sign out, here and there; in all tabs.
	tab.Run("mark the page", "window.before = true")
	tab.Press("Sign out")
	tab.Until("she is back, signed out", `!window.before && document.querySelector(".welcome") && !`+session)
	s.Until(t, "the session at the provider has ended", func() bool { return p.count("/end") == 2 })
	beside.Until("the other tab, too", `!document.querySelector(".me b")`)

	// She comes back to the page where she has begun.
	tab.Go(s.browser, "/app/settings")
	tab.Press(button)
	tab.Until("she is back", `document.querySelector(".me b")?.textContent === "Nadia Berg" && location.pathname === "/app/settings" && location.search === ""`)

	// She signs out while a request waits for its turn to renew the token: the session has ended because she wants it.
	beside.Run("have the turn", `void navigator.locks.request("kith-session", () => new Promise(go => window.go = go)); while (!window.go) await new Promise(go => setTimeout(go, 10))`)
	tab.Run("time to renew", due)
	tab.Press("Home")
	tab.Run("a request waits", `while ((await navigator.locks.query()).pending.length === 0) await new Promise(go => setTimeout(go, 10))`)
	p.now(func() { p.away = true }) // or it would show a page of its own
	tab.Press("Sign out")
	beside.Run("give the turn back", `window.go()`)
	tab.Run("nothing waits", `while ((await navigator.locks.query()).pending.length > 0) await new Promise(go => setTimeout(go, 10))`)
	tab.Until("nothing went wrong", `document.querySelector(".welcome button")?.disabled === false && !document.querySelector(".problem")`)
	p.now(func() { p.away = false })
	tab.Press(button)
	tab.Until("she is signed in once more", `document.querySelector(".me b")?.textContent === "Nadia Berg"`)

	// The provider is away, and the token is valid: the page goes on with it, and does not ask the provider each time.
	p.now(func() { p.away = true })
	asked := p.count("/.well-known/openid-configuration")
	tab.Run("time to renew", due)
	for _, page := range []string{"Home", "Discover", "Requests"} {
		tab.Press(page)
		tab.Until("the page is there", fmt.Sprintf(`document.querySelector("h1")?.textContent === %q && !document.querySelector(".skeleton")`, page))
	}
	n := p.count("/.well-known/openid-configuration") - asked
	check.That(t, n >= 1 && n <= 2, "the provider was asked %d times in vain, want once by each of the two tabs at most", n)

	// An answer of a provider is not for somebody who is signed in, and not for later.
	tab.Go(s.browser, "/app?code=x&state=y")
	tab.Until("she is still there", `document.querySelector(".me b")?.textContent === "Nadia Berg" && location.search === ""`)
	tab.Press("Sign out")
	tab.Until("she is signed out, and nothing went wrong", `document.querySelector(".welcome button")?.disabled === false && !document.querySelector(".problem")`)
	p.now(func() { p.away = false })

	for name, c := range map[string]struct {
		change func()
		says   string
	}{
		"wrong state": {func() { p.state = "of somebody else" }, `is not accepted: unexpected "state"`},
		"refusal":     {func() { p.denies = "no <b>guests</b>" }, "refuses to sign you in: no <b>guests</b>."},
		"away":        {func() { p.away = true }, "does not answer this page"},
	} {
		t.Run(name, func(t *testing.T) {
			codes := p.count("authorization_code")
			p.now(c.change)
			defer p.now(func() { p.state, p.denies, p.away = "", "", false })
			tab := s.browser.For(t).Tab("/app/")
			tab.Forgives("503 (Service Unavailable)")
			tab.Press(button)
			tab.Sees(c.says)
			tab.Until("nobody is signed in", `!`+session+` && location.search === "" && `+noPassword)
			check.That(t, p.count("authorization_code") == codes, "a code was exchanged")
		})
	}
	t.Run("a code that somebody else has asked for", func(t *testing.T) {
		tab := s.browser.For(t).Tab("/app?code=x&state=y&iss=" + p.URL)
		tab.Sees("This sign-in was not begun here")
		tab.Until("nobody is signed in", `!`+session)
	})
}

// status is how the gateway answers a request with a token.
func (s site) status(t *testing.T, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/graphql?query="+"%7Bviewer%7Buser%7Bid%7D%7D%7D", nil)
	must.OK(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer response.Body.Close()
	return response.StatusCode
}

// Where nobody can sign in, the app says so.
func TestNobodyCanSignIn(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := openProvided(t, newProvider(t), "")
	tab := s.browser.Tab("/app/")
	tab.Sees("Nobody can sign in here")
	tab.Until("there is no form", fmt.Sprintf(`!document.querySelector("form, .card button") && %s`, noPassword))
}
