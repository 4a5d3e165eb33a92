package program_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// openIDProvider is an OpenID provider from npm, in its own process.
type openIDProvider struct {
	t      *testing.T
	issuer string
	in     io.Writer
	out    *bufio.Reader
}

// newOpenIDProvider installs the provider and starts it.
func newOpenIDProvider(t *testing.T) *openIDProvider {
	t.Helper()
	testenv.NPM(t, "oidc_test")
	node := exec.CommandContext(t.Context(), "node", "provider.mjs")
	node.Dir = "oidc_test"
	in, err := node.StdinPipe()
	must.OK(t, err)
	out, err := node.StdoutPipe()
	must.OK(t, err)
	must.OK(t, node.Start())
	t.Cleanup(func() { _ = node.Wait() }) // the test's context has ended, and so has node
	p := &openIDProvider{t: t, in: in, out: bufio.NewReader(out)}
	p.issuer = p.line()
	return p
}

func (p *openIDProvider) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	must.That(p.t, err == nil, "the provider: %q, %v", line, err)
	return strings.TrimSpace(line)
}

// does makes the provider run a command.
func (p *openIDProvider) does(command string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, command+"\n")
	must.OK(p.t, err)
	must.Equal(p.t, command, p.line(), "ok")
}

// tokens are what the provider's token endpoint answers.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

// eachAlone uses a new connection for each request. The provider closes idle connections, possibly just when the next
// request is sent.
var eachAlone = &http.Transport{DisableKeepAlives: true}

// grant asks for tokens as one of the provider's clients.
func (p *openIDProvider) grant(client string, form url.Values) (got tokens) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.issuer+"/token", strings.NewReader(form.Encode()))
	must.OK(p.t, err)
	request.SetBasicAuth(client, "known")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, text := p.send(&http.Client{Transport: eachAlone}, request)
	must.That(p.t, json.Unmarshal([]byte(text), &got) == nil && got.Access != "", "%v: %s", form, text)
	return got
}

func (p *openIDProvider) send(client *http.Client, request *http.Request) (*http.Response, string) {
	p.t.Helper()
	response, err := client.Do(request)
	must.OK(p.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must.OK(p.t, err)
	return response, string(text)
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	formPrompt = regexp.MustCompile(`name="prompt" value="([^"]+)"`)
)

// signIn signs a user in as a browser does: by the code flow, through the pages for login and consent.
func (p *openIDProvider) signIn(subject string) tokens {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	must.OK(p.t, err)
	const callback = "http://127.0.0.1/callback"
	code := ""
	browser := &http.Client{Transport: eachAlone, Jar: jar, CheckRedirect: func(request *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(request.URL.String(), callback) {
			code = request.URL.Query().Get("code")
			return http.ErrUseLastResponse
		}
		return nil
	}}
	ask := url.Values{
		"client_id": {"app"}, "response_type": {"code"}, "redirect_uri": {callback}, "scope": {"openid offline_access"}, "prompt": {"consent"},
	}
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.issuer+"/auth?"+ask.Encode(), nil)
	for range 4 { // at most this many: login, consent
		must.OK(p.t, err)
		_, page := p.send(browser, request)
		if code != "" {
			return p.grant("app", url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}})
		}
		action, prompt := formAction.FindStringSubmatch(page), formPrompt.FindStringSubmatch(page)
		must.That(p.t, action != nil && prompt != nil, "a page without a form: %s", page)
		form := url.Values{"prompt": {prompt[1]}, "login": {subject}, "password": {"any"}}
		request, err = http.NewRequestWithContext(p.t.Context(), http.MethodPost, action[1], strings.NewReader(form.Encode()))
		if err == nil {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	p.t.Fatal("nobody is signed in")
	return tokens{}
}

// A person signs in at a real provider, which has its own names for people. The person registers, asks, gets new tokens,
// continues after a change of the provider's keys, and signs out everywhere. A backend also has a token of the provider.
func TestOpenIDProvider(t *testing.T) {
	t.Parallel()
	p := newOpenIDProvider(t)
	gateway := func(more string) *kithtest.Gateway {
		t.Helper()
		entry := fmt.Sprintf(`[{"issuer": %q, "jwks": %q, "audience": ["kith"], "subjects": "mapped"%s}]`, p.issuer, p.issuer+"/jwks", more)
		file := written(t, "identity.json", entry)
		return kithtest.Start(t, kithtest.Args("--store=sqlite:"+filepath.Join(t.TempDir(), "kith.db"), "--identity="+file))
	}
	g, strict := gateway(`, "scopes": ["act-as"]`), gateway("")
	const me = `{ viewer { user { handle } } }`
	asks := func(token, query string, status int, holds string) {
		t.Helper()
		got, text := askAs(t, g, token, query)
		check.That(t, got == status && strings.Contains(text, holds), "%s: %d %s, want %d and %q", query, got, text, status, holds)
	}
	until := func(what, token string, status int) {
		t.Helper()
		g.Until(t, what, func() bool {
			got, _ := askAs(t, g, token, me)
			return got == status
		})
	}

	// Sign in, register, ask.
	maya := p.signIn("auth0|64b1-maya")
	asks(maya.Access, me, http.StatusOK, "NOT_REGISTERED")
	asks(maya.Access, `{ __typename }`, http.StatusOK, "NOT_REGISTERED")
	asks(maya.Access, `mutation { follow(userId: 1) { changed } }`, http.StatusOK, "NOT_REGISTERED")
	const register = `mutation { register(handle: "maya", name: "Maya") { token viewer { user { handle } } } }`
	asks(maya.Access, register, http.StatusOK, maya.Access)
	asks(maya.Access, register, http.StatusOK, `"maya"`)
	asks(maya.Access, me, http.StatusOK, `"maya"`)

	// Refresh.
	refresh := func(old tokens) tokens {
		t.Helper()
		got := p.grant("app", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh}})
		if got.Refresh == "" {
			got.Refresh = old.Refresh
		}
		return got
	}
	next := refresh(maya)
	asks(next.Access, me, http.StatusOK, `"maya"`)

	// Tokens expire.
	p.does("ttl 1")
	short := refresh(next)
	until("it expires", short.Access, http.StatusUnauthorized)
	p.does("ttl 300")

	// The keys are rotated: the new key is read when the first token with it comes.
	p.does("rotate")
	rotated := refresh(short)
	asks(rotated.Access, me, http.StatusOK, `"maya"`)
	until("the old key is gone", next.Access, http.StatusUnauthorized)

	// A backend uses client credentials. The sub of its token is the client's name.
	backend := p.grant("backend", url.Values{"grant_type": {"client_credentials"}, "scope": {"act-as"}})
	asks(backend.Access, `{ user(by: {handle: "maya"}) { handle } }`, http.StatusOK, `"maya"`)

	status, text := askAs(t, strict, backend.Access, me)
	check.That(t, status == http.StatusOK && strings.Contains(text, "NOT_REGISTERED"), "a scope that is granted to nobody: %d %s", status, text)

	asks(rotated.Access, `mutation { renewToken { token } }`, http.StatusOK, "FORBIDDEN") // the provider renews tokens, not Kith

	// Sign out everywhere takes effect at once here, and a later token is accepted again.
	asks(rotated.Access, `mutation { signOutEverywhere { changed } }`, http.StatusOK, "true")
	asks(rotated.Access, me, http.StatusUnauthorized, "signed out everywhere")
	g.Until(t, "a token of later is good", func() bool { // from a later second, by its iat
		rotated = refresh(rotated)
		status, text := askAs(t, g, rotated.Access, me)
		return status == http.StatusOK && strings.Contains(text, `"maya"`)
	})
}
