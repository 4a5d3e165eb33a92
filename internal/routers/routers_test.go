// Package routers_test asks Kith through routers of Federation 2, as one of two subgraphs.
package routers_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

const secret = "a secret of at least 32 bytes, for tests"

// seen holds what a router has sent to Kith.
type seen struct {
	mu       sync.Mutex
	requests []request
}

type request struct {
	header http.Header
	query  string
	of     int // how many representations, or ids
}

// take returns the requests since the last call.
func (s *seen) take() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.requests
	s.requests = nil
	return all
}

// observed returns an address of Kith behind a server that notes what is sent there.
func (s *seen) observed(t *testing.T, kith string) string {
	t.Helper()
	to, err := url.Parse(kith)
	must.OK(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var asked struct {
			Query     string
			Variables map[string]any
		}
		_ = json.Unmarshal(body, &asked)
		longest := 0
		for _, v := range asked.Variables {
			if by, ok := v.(map[string]any); ok {
				v = by["ids"]
			}
			list, _ := v.([]any)
			longest = max(longest, len(list))
		}
		s.mu.Lock()
		s.requests = append(s.requests, request{r.Header.Clone(), asked.Query, longest})
		s.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/graphql"
}

// router is a router that runs.
type router struct {
	t   *testing.T
	url string
	*seen
}

// start starts a router of run.mjs, by its name, the file with Kith's schema or "-", and the second subgraph, articles unless given.
func start(t *testing.T, kith *kithtest.Gateway, arguments ...string) *router {
	t.Helper()
	r := &router{t: t, seen: &seen{}}
	arguments = append([]string{"run.mjs", arguments[0], r.observed(t, kith.URL)}, append(slices.Clone(arguments[1:]), "articles")[:2]...)
	cmd := exec.CommandContext(t.Context(), "node", arguments...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http") {
			r.url = lines.Text()
			r.take()
			return r
		}
	}
	t.Fatalf("%v ended without an address", arguments)
	return nil
}

// ask sends a query to the router. header has names and values.
func (r *router) ask(query string, header ...string) (http.Header, answer) {
	r.t.Helper()
	body, err := json.Marshal(map[string]string{"query": query})
	must.OK(r.t, err)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url, bytes.NewReader(body))
	must.OK(r.t, err)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(req)
	must.OK(r.t, err)
	defer response.Body.Close()
	var a answer
	a.text, err = io.ReadAll(response.Body)
	must.OK(r.t, err)
	err = json.Unmarshal(a.text, &a)
	must.That(r.t, err == nil, "%s: %v", a.text, err)
	return response.Header, a
}

type answer struct {
	text []byte
	Data struct {
		Articles []struct {
			Author *struct {
				ID, Name           string
				ViewerRelationship *struct{ Status string }
			}
		}
		Viewer *struct {
			User struct {
				Handle   string
				Articles []struct{ Title string }
			}
		}
		Follow *struct {
			Changed bool
			User    struct {
				Name     string
				Articles []struct{ Title string }
			}
		}
	}
	Errors []struct {
		Message string
		Path    []any
	}
}

// whole fails the test if there are errors.
func (r *router) whole(query string, header ...string) (http.Header, answer) {
	r.t.Helper()
	got, a := r.ask(query, header...)
	must.That(r.t, len(a.Errors) == 0, "%s: %.1000s", query, a.text)
	return got, a
}

func token(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	claims["exp"] = time.Now().Add(time.Hour).Unix()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(secret))
	must.OK(t, err)
	return "Bearer " + text
}

// TestRouters: users of Kith are authors in another subgraph, and requests to a router reach Kith as the right user.
func TestRouters(t *testing.T) {
	kith := serve(t)
	file := printed(t, "schema", "--federation")
	for _, arguments := range [][]string{{"apollo", "-"}, {"hive", file}, {"mesh", file}} { // only Apollo's asks for the schema
		t.Run(arguments[0], func(t *testing.T) {
			r := start(t, kith, arguments...)
			t.Run("authors", r.with(authors))
			t.Run("viewers", r.with(viewers))
			t.Run("own writes", r.with(ownWrites))
		})
	}
}

// TestCosmoComposes composes Kith with another subgraph, without a warning. Cosmo's router is a program that npm
// does not have.
func TestCosmoComposes(t *testing.T) {
	testenv.Clients(t)
	testenv.NPM(t, ".")
	file := printed(t, "schema", "--federation")
	compose := func() string { return byCosmo(t, file, "articles") }
	wrong := compose()
	check.That(t, wrong == "", "%v", wrong)
	text := must.File(t, file)
	must.OK(t, os.WriteFile(file, bytes.Replace(text, []byte("type PageInfo @shareable"), []byte("type PageInfo"), 1), 0o600))
	check.Has(t, "without @shareable", compose(), "PageInfo")
}

// TestAStitchedSchema: users of Kith are fetched for another schema with users(by:), 500 at a time.
func TestAStitchedSchema(t *testing.T) {
	kith := serve(t)
	r := start(t, kith, "stitch", printed(t, "schema"))
	maya := token(t, jwt.MapClaims{"sub": "1"})
	_, a := r.whole(`{ articles { title author { id name viewerRelationship { status } } } viewer { user { handle } } }`, "Authorization", maya)
	if articles := a.Data.Articles; len(articles) != 1100 || articles[1099].Author.Name == "" || articles[1099].Author.ViewerRelationship == nil || a.Data.Viewer == nil {
		t.Errorf("the authors are %.1000s", a.text)
	}
	var lists []int
	for _, asked := range r.take() {
		check.That(t, asked.header.Get("Authorization") == maya, "Kith was asked %+v", asked)
		if asked.of > 0 {
			lists = append(lists, asked.of)
		}
	}
	slices.Sort(lists)
	check.That(t, slices.Equal(lists, []int{100, 500, 500}), "Kith was asked for %v users", lists)
	written, _ := r.whole(`mutation { follow(userId: 700) { changed } }`, "Authorization", maya)
	check.That(t, written.Get("Kith-Consistency") != "", "no token comes back: %v", written)
	r.take()
	r.whole(`mutation { a: follow(userId: 701) { changed } b: follow(userId: 702) { changed } }`, "Authorization", maya, "Kith-Consistency", written.Get("Kith-Consistency"))
	asked := r.take()
	check.That(t, len(asked) == 2 && strings.Count(asked[1].header.Get("Kith-Consistency"), ",") == 1, "after the first of two writes, Kith was asked %+v", asked)
}

// serve starts Kith with the demo graph.
func serve(t *testing.T, more ...string) *kithtest.Gateway {
	t.Helper()
	testenv.Clients(t)
	testenv.NPM(t, ".")
	return kithtest.Start(t, kithtest.Args(append([]string{"--demo", "--federation", "--jwt-secret", secret, "--store", "sqlite:" + filepath.Join(t.TempDir(), "kith.db")}, more...)...))
}

// printed returns a file with what the program prints.
func printed(t *testing.T, arguments ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kith.graphql")
	must.OK(t, os.WriteFile(file, []byte(kithtest.Run(t, kithtest.Args(arguments...)).Stdout), 0o600))
	return file
}

func (r *router) with(test func(*router)) func(*testing.T) {
	return func(t *testing.T) { r.take(); test(&router{t, r.url, r.seen}) }
}

// authors: 201 articles by 100 users, and one by a user who does not exist, take one request to Kith.
func authors(r *router) {
	_, a := r.ask(`{ articles { title author { id name followerCount } } }`)
	for _, e := range a.Errors { // Hive Gateway reports an error for the unknown author's name
		check.That(r.t, len(e.Path) >= 2 && e.Path[1] == 200.0, "%+v", e)
	}
	articles := a.Data.Articles
	if len(articles) != 201 || articles[0].Author.Name != "Maya Okafor" || articles[100].Author.Name != "Maya Okafor" || articles[99].Author.ID != "100" {
		r.t.Errorf("the authors are %.1000s", a.text)
	}
	if len(articles) == 201 && articles[200].Author != nil {
		r.t.Errorf("nobody's article is by %+v", articles[200].Author)
	}
	asked := r.take()
	check.That(r.t, len(asked) == 1 && strings.Contains(asked[0].query, "_entities") && asked[0].of <= 201, "Kith was asked %d times: %+v", len(asked), asked)
}

// viewers: Kith answers for the user whose token the router was given, or for whom a backend acts.
func viewers(r *router) {
	const query = `{ viewer { user { handle articles { title } } } articles { author { viewerRelationship { status } } } }`
	for who, header := range map[string][]string{
		"a user":    {"Authorization", token(r.t, jwt.MapClaims{"sub": "1"})},
		"a backend": {"Authorization", token(r.t, jwt.MapClaims{"scope": "act-as"}), "Kith-Viewer", "1"},
	} {
		r.take()
		_, a := r.whole(query, header...)
		v := a.Data.Viewer
		check.That(r.t, v != nil && v.User.Handle == "maya_okafor" && len(v.User.Articles) == 2, "%s: the viewer is %.300s", who, a.text)
		author := a.Data.Articles[1].Author
		check.That(r.t, author.ViewerRelationship != nil && author.ViewerRelationship.Status != "", "%s: the relationship with an author is %+v", who, author)
		for _, asked := range r.take() {
			for i := 0; i < len(header); i += 2 {
				got := asked.header.Get(header[i])
				check.That(r.t, got == header[i+1], "%s: Kith gets %s: %q", who, header[i], got)
			}
		}
	}
	_, a := r.whole(query)
	check.That(r.t, a.Data.Viewer == nil, "without a token the viewer is %+v", a.Data.Viewer)
	_, a = r.ask(query, "Authorization", "Bearer none")
	check.That(r.t, len(a.Errors) != 0, "with a wrong token: %.300s", a.text)
}

// ownWrites: the token of a write comes back. It is sent on to Kith within the operation, and with the next read.
func ownWrites(r *router) {
	maya := token(r.t, jwt.MapClaims{"sub": "1"})
	r.whole(`mutation { unfollow(userId: 77) { changed } }`, "Authorization", maya)
	r.take()
	header, a := r.whole(`mutation { follow(userId: 77) { changed user { name articles { title author { followerCount } } } } }`, "Authorization", maya)
	f := a.Data.Follow
	must.That(r.t, f != nil && f.Changed && len(f.User.Articles) == 2, "the follow is %.300s", a.text)
	written := header.Get("Kith-Consistency")
	asked := r.take()
	must.That(r.t, written != "" && len(asked) == 2 && asked[1].header.Get("Kith-Consistency") == written, "the token is %q, and Kith was asked %+v", written, asked)
	r.whole(`{ user(by: {id: 77}) { followerCount } }`, "Authorization", maya, "Kith-Consistency", written)
	asked = r.take()
	check.That(r.t, len(asked) == 1 && asked[0].header.Get("Kith-Consistency") == written, "the read brings %+v, want the token %s", asked, written)
	_, a = r.ask(`{ user(by: {id: 77}) { followerCount } }`, "Kith-Consistency", "of nobody")
	check.That(r.t, len(a.Errors) != 0, "with a wrong token: %.300s", a.text)
}

// The guide shows parts of the files that are tested here, word for word, and leads to each of them.
func TestTheGuideShowsTheRouters(t *testing.T) {
	guide := kithtest.Excerpts(t, "../..", "docs/how-to/behind-a-router.md")
	for _, file := range []string{"apollo.mjs", "hive.mjs", "gateway.config.mjs", "mesh.mjs", "mesh.config.mjs", "stitch.mjs"} {
		check.That(t, strings.Contains(guide, "](../../internal/routers/"+file+")"), "docs/how-to/behind-a-router.md does not lead to %s", file)
	}
}
