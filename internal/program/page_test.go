package program_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kith/examples"
	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/webtest"
	"kith/web"
)

// TestGraphiQLRunsItsTabs opens the page that the program serves in a browser, and runs the operation of each tab. Another
// user has subscribed before, and is shown the follow.
func TestGraphiQLRunsItsTabs(t *testing.T) {
	t.Parallel()
	if !web.HasGraphiQL(web.Assets()) {
		testenv.Missing(t, "GraphiQL has not been built: make web")
	}
	testenv.Chromium(t)
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1)))
	browser := webtest.Open(t, g.URL)
	other := browser.Tab("/")
	other.Becomes(5)
	other.Runs("NewFollowers")
	g.Until(t, "subscribed", func() bool {
		return regexp.MustCompile(`(?m)^kith_subscription_operations 1$`).MatchString(g.Metrics(t))
	})

	tab := browser.Tab("/")
	for i, operation := range examples.All() {
		if name := examples.Names[i]; name != "subscription" {
			tab.Runs(title.FindStringSubmatch(operation)[1])
			tab.Answers(answer(t, name))
		}
	}
	other.Answers(answer(t, "subscription"))
}

// title finds the name of an operation.
var title = regexp.MustCompile(`(?m)^(?:query|mutation|subscription) (\w+)`)

// answer is the answer in the file beside an operation.
func answer(t *testing.T, name string) json.RawMessage {
	t.Helper()
	text := must.File(t, filepath.Join("..", "..", "examples", "answers", name+".json"))
	var answer struct{ Data json.RawMessage }
	must.OK(t, json.Unmarshal(text, &answer))
	return answer.Data
}

// TestPagesWithoutDemo: without --demo there are no demo query and no demo users. Both pages can be left out.
func TestPagesWithoutDemo(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t, kithtest.Args("--pages", "graphiql"))
	status, page := g.Get(t, "/")
	check.That(t, status == http.StatusOK && !strings.Contains(page, "query Read") && strings.Contains(page, "# A social graph"), "status %d, %s", status, page)
	status, _ = g.Get(t, "/app")
	check.That(t, status == http.StatusNotFound, "the app answers %d", status)
	check.Equal(t, "a demo token", demoToken(t, g.URL, "127.0.0.1", ""), http.StatusForbidden)
	g = kithtest.Start(t, kithtest.Args("--pages", "app"))
	if status, _ := g.Get(t, "/"); status != http.StatusNotFound || strings.Contains(g.Stdout(), "GraphiQL") {
		t.Errorf("GraphiQL answers %d; the program says\n%s", status, g.Stdout())
	}
}

// TestTokenIsForOwnNames asks the program for a token, as a browser does that was led here by somebody else's DNS, and as a
// proxy on this machine does for others.
func TestTokenIsForOwnNames(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1)))
	port := g.URL[strings.LastIndex(g.URL, ":"):]
	g.Until(t, "said where a token is", func() bool { return strings.Contains(g.Stdout(), g.URL+"/demo/token?user=1") })
	check.Lacks(t, "what may be kept as a log", g.Stdout(), "eyJ")
	end := kithtest.Run(t, kithtest.Args("token", "--demo", g.URL, "--user", "1"))
	check.That(t, end.Code == 0 && strings.HasPrefix(end.Stdout, "eyJ"), "kith token: %+v", end)
	for _, wrong := range [][]string{{"--user", "999999"}, {"--user", "1", "--scope", "admin"}} {
		end := kithtest.Run(t, kithtest.Args(append([]string{"token", "--demo", g.URL}, wrong...)...))
		check.That(t, end.Code != 0 && end.Stdout == "", "kith token %q: %+v", wrong, end)
	}
	for host, want := range map[string]int{
		"127.0.0.1" + port: http.StatusOK, "localhost" + port: http.StatusOK, "[::1]" + port: http.StatusOK,
		"evil.example" + port: http.StatusForbidden, "evil.example": http.StatusForbidden,
	} {
		check.Equal(t, host, demoToken(t, g.URL, host, ""), want)
	}
	check.Equal(t, "through a proxy on this machine", demoToken(t, g.URL, "localhost", "203.0.113.9"), http.StatusForbidden)
	g = kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1), "--trusted-proxy", "127.0.0.1", "--cors-origin", "http://localhost:5173"))
	for origin, want := range map[string]string{"http://localhost:5173": "http://localhost:5173", "http://evil.example": ""} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.URL+"/demo/token?user=1", nil)
		must.OK(t, err)
		request.Header.Set("Origin", origin)
		answer, err := http.DefaultClient.Do(request)
		must.OK(t, err)
		answer.Body.Close()
		got := answer.Header.Get("Access-Control-Allow-Origin")
		check.That(t, answer.StatusCode == http.StatusOK && got == want, "a page of %s: status %d, allowed %q", origin, answer.StatusCode, got)
	}
	for _, client := range []string{"203.0.113.9", "127.0.0.1", "::1"} { // clients may say the same to a proxy
		check.Equal(t, "through a trusted proxy, for "+client, demoToken(t, g.URL, "localhost", client), http.StatusForbidden)
	}
}

// demoToken asks for a token of user 1 under a host name, for another client if one is given.
func demoToken(t *testing.T, gateway, host, client string) (status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, gateway+"/demo/token?user=1", nil)
	must.OK(t, err)
	request.Host = host
	if client != "" {
		request.Header.Set("X-Forwarded-For", client)
	}
	answer, err := http.DefaultClient.Do(request)
	must.OK(t, err)
	defer answer.Body.Close()
	return answer.StatusCode
}
