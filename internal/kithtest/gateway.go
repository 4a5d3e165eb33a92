package kithtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"kith/internal/must"
)

// Gateway is `kith serve`.
type Gateway struct {
	*Command
	URL    string // such as "http://127.0.0.1:41234"
	Admin  string // its address for operators
	Token  string // of who asks; "": nobody
	client *http.Client
}

// Start starts `kith serve` on a free port and waits until it is ready.
func Start(t testing.TB, options ...Option) *Gateway {
	t.Helper()
	g := Serve(t, options...)
	g.Until(t, "ready", func() bool {
		g.failIfEnded(t)
		status, _, err := g.get("/readyz")
		return err == nil && status == http.StatusOK
	})
	return g
}

// Serve starts `kith serve` on a free port and waits until it announces the port.
func Serve(t testing.TB, options ...Option) *Gateway {
	t.Helper()
	options = append([]Option{Args("serve", "--addr", "127.0.0.1:0")}, options...)
	return Announced(t, Launch(t, options...))
}

// Announced waits until a program announces where it serves.
func Announced(t testing.TB, c *Command) *Gateway {
	t.Helper()
	g := &Gateway{Command: c, client: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	t.Cleanup(g.client.CloseIdleConnections)
	g.Until(t, "serve", func() bool {
		g.failIfEnded(t)
		found := announced.FindStringSubmatch(g.Stdout())
		if found != nil {
			g.URL, g.Admin = found[1], found[2]
		}
		return found != nil
	})
	return g
}

// announced finds the two addresses that the program announces, once it has announced all.
var announced = regexp.MustCompile(`(?ms)^  (http://\S+)/graphql .*^  (http://\S+)/debug/pprof/ `)

func (g *Gateway) failIfEnded(t testing.TB) {
	t.Helper()
	if g.Ended() {
		t.Fatalf("%q has ended: %+v", g.process.Cmd.Args[1:], g.Wait(t))
	}
}

// Get returns the status and body of a page, from the operators' address if the page is there.
func (g *Gateway) Get(t testing.TB, path string) (status int, body string) {
	t.Helper()
	status, body, err := g.get(path)
	must.OK(t, err)
	return status, body
}

// Metrics are those of the program, as text.
func (g *Gateway) Metrics(t testing.TB) string {
	t.Helper()
	_, text := g.Get(t, "/metrics")
	return text
}

func (g *Gateway) get(path string) (int, string, error) {
	base := g.URL
	for _, page := range []string{"/metrics", "/readyz", "/schema.graphql", "/debug/"} {
		if strings.HasPrefix(path, page) {
			base = g.Admin
		}
	}
	r, err := g.client.Get(base + path)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return r.StatusCode, string(body), err
}

// DemoToken returns a token of user 1 of the demo graph.
func (g *Gateway) DemoToken(t testing.TB) string {
	t.Helper()
	r, err := g.client.Post(g.URL+"/demo/token?user=1", "", nil)
	must.OK(t, err)
	defer r.Body.Close()
	var signedIn struct{ Token string }
	err = json.NewDecoder(r.Body).Decode(&signedIn)
	must.That(t, err == nil && signedIn.Token != "", "status %d, %v", r.StatusCode, err)
	return signedIn.Token
}

// Response is an answer over GraphQL.
type Response struct {
	Status int `json:"-"`
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Path       []any
		Extensions map[string]any
	}
}

// Busy reports whether the gateway refused the request, before it executed anything, because the machine is busy.
func (r Response) Busy() bool {
	return r.Status == http.StatusServiceUnavailable && len(r.Errors) > 0 && r.Errors[0].Extensions["retryable"] == true
}

// Ask sends a query and returns the response, whatever it is.
func (g *Gateway) Ask(query string, variables map[string]any) (Response, error) {
	var answer Response
	question, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return answer, err
	}
	post, err := http.NewRequest(http.MethodPost, g.URL+"/graphql", bytes.NewReader(question))
	if err != nil {
		return answer, err
	}
	post.Header.Set("Content-Type", "application/json")
	if g.Token != "" {
		post.Header.Set("Authorization", "Bearer "+g.Token)
	}
	r, err := g.client.Do(post)
	if err != nil {
		return answer, err
	}
	defer r.Body.Close()
	answer.Status = r.StatusCode
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("answer with status %d: %w", r.StatusCode, err)
	}
	return answer, nil
}

// Query sends a query that must be answered without errors, and puts its data where
// data points to. While the gateway is busy it is asked again.
func (g *Gateway) Query(t testing.TB, query string, variables map[string]any, data any) {
	t.Helper()
	var answer Response
	var err error
	g.Until(t, "answer", func() bool {
		answer, err = g.Ask(query, variables)
		return err != nil || !answer.Busy()
	})
	must.That(t, err == nil, "%s %v: %v", query, variables, err)
	must.That(t, answer.Status == http.StatusOK && len(answer.Errors) == 0, "%s %v: status %d, errors %+v", query, variables, answer.Status, answer.Errors)
	if err := json.Unmarshal(answer.Data, data); err != nil {
		t.Fatalf("%s %v: %v", query, variables, err)
	}
}
