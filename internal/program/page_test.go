package program_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kith/internal/kithtest"
	"kith/web"
	"kith/web/webtest"
)

// TestPageRunsItsExample opens the page that the program serves in a browser, runs the
// example that it shows, and sees the demo graph.
func TestPageRunsItsExample(t *testing.T) {
	t.Parallel()
	t.Run("graphiql", func(t *testing.T) {
		if !web.HasGraphiQL(web.Assets()) {
			webtest.Missing(t, "GraphiQL has not been built: make web")
		}
		t.Parallel()
		drive(t, "graphiql")
	})
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		drive(t, "plain", kithtest.Without(t, graphiQLFiles(t)...))
	})
}

// drive starts the program with the demo graph and compares what the page shows with
// what the API says.
func drive(t *testing.T, page string, options ...kithtest.Option) {
	webtest.Chromium(t)
	g := kithtest.Start(t, append(options, kithtest.Args("--demo"))...)
	result := webtest.Drive(t, g.URL)
	if result.Page != page {
		t.Errorf("the page is %s, want %s", result.Page, page)
	}
	var shown struct{ Data any }
	if err := json.Unmarshal(result.Answer, &shown); err != nil {
		t.Fatal(err)
	}
	var said any
	g.Query(t, web.Example, nil, &said)
	if a, b := canonical(t, shown.Data), canonical(t, said); a != b {
		t.Errorf("the page shows\n%s\nand the API says\n%s", a, b)
	}
}

// TestSubscriptionRunsInGraphiQL: the page is signed in as user 1, over its WebSocket as well,
// and shows who begins to follow user 1.
func TestSubscriptionRunsInGraphiQL(t *testing.T) {
	t.Parallel()
	if !web.HasGraphiQL(web.Assets()) {
		webtest.Missing(t, "GraphiQL has not been built: make web")
	}
	webtest.Chromium(t)
	g := kithtest.Start(t, kithtest.Args("--demo"))
	var follower struct{ Register struct{ Token string } }
	g.Query(t, `mutation { register(handle: "a_new_fan", name: "Follower", password: "correct horse battery") { token } }`, nil, &follower)
	subscribed := regexp.MustCompile(`(?m)^kith_subscription_operations 1$`)
	webtest.Subscribe(t, g.URL, `subscription { newFollowers { node { handle } } }`, func() {
		g.Until(t, "subscribed", func() bool {
			_, metrics := g.Get(t, "/metrics")
			return subscribed.MatchString(metrics)
		})
		follow(t, g.URL, follower.Register.Token, "1")
	}, "a_new_fan")
}

// follow makes the user whom a token signs in follow another.
func follow(t *testing.T, gateway, token, user string) {
	t.Helper()
	body := fmt.Sprintf(`{"query": "mutation { follow(userId: %s) { __typename } }"}`, user)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, gateway+"/graphql", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || strings.Contains(string(text), `"errors"`) {
		t.Fatalf("follow: status %d, %s, %v", answer.StatusCode, text, err)
	}
}

// TestTokenIsForOwnNames asks the program for the page as a browser does that somebody else's
// DNS has led here.
func TestTokenIsForOwnNames(t *testing.T) {
	t.Parallel()
	g := kithtest.Start(t, kithtest.Args("--demo"))
	port := g.URL[strings.LastIndex(g.URL, ":"):]
	for host, own := range map[string]bool{"127.0.0.1" + port: true, "localhost" + port: true, "[::1]" + port: true, "evil.example" + port: false, "evil.example": false} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.URL+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || strings.Contains(string(page), "Bearer ey") != own {
			t.Errorf("Host %s: status %d, error %v, a token %t", host, answer.StatusCode, err, !own)
		}
	}
}

func canonical(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// graphiQLFiles are the built files, by their paths from the root; a tree without Node has none.
func graphiQLFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(filepath.Join(root, "web", "assets", "graphiql"), func(path string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil && !entry.IsDir() {
			path, err = filepath.Rel(root, path)
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
