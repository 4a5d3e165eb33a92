package examples_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// TestBFF: browsers sign in with a cookie, and see their own writes. The backend's token is renewed once, however
// many requests find that it has expired.
func TestBFF(t *testing.T) {
	testenv.Clients(t)
	testenv.NPM(t, "bff")
	kith := start(t)
	var issued atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		valid := time.Hour
		if issued.Add(1) == 1 {
			valid = -time.Minute
		}
		fmt.Fprintf(w, `{"access_token": %q}`, backendToken(t, valid))
	}))
	t.Cleanup(provider.Close)
	schema := filepath.Join(t.TempDir(), "schema.graphql")
	write(t, schema, []byte(kithtest.Run(t, kithtest.Args("schema")).Stdout))
	saysWhatIsMissing(t, "node", "bff/main.mjs")
	between := &between{}
	begin := func(more ...string) string {
		cmd := exec.CommandContext(t.Context(), "node", append([]string{"bff/main.mjs", between.serve(t, kith), schema}, more...)...)
		cmd.Env = append(os.Environ(), "KITH_TOKEN="+backendToken(t, time.Hour))
		return started(t, cmd).first("an address", func(h happening) bool {
			return strings.HasPrefix(h.What, "http://")
		}).What
	}
	url := begin(provider.URL)

	ann, ben := browser{t: t, url: url}, browser{t: t, url: url}
	annID, benID := ann.signIn(kith, "ann"), ben.signIn(kith, "ben")

	const viewer = `{ viewer { user { id followingCount } } }`
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			got := ann.ask(viewer)
			check.That(t, got.Data.Viewer != nil && got.Data.Viewer.User.ID == annID, "the viewer is %+v", got)
		})
	}
	all.Wait()
	if between.refused() == 0 || issued.Load() != 2 {
		t.Errorf("%d requests were refused for the backend's token, %d tokens were issued; want some, and 2", between.refused(), issued.Load())
	}
	// What is no login is refused, and the backend goes on.
	ask := func(method, body, contentType string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, url+"/login", strings.NewReader(body))
		must.OK(t, err)
		request.Header.Set("Content-Type", contentType)
		response, err := http.DefaultClient.Do(request)
		must.OK(t, err)
		defer response.Body.Close()
		return response.StatusCode
	}
	long := `{"handle": "` + strings.Repeat("x", 5000) + `", "password": ""}`
	for _, c := range [][2]string{{http.MethodGet, ""}, {http.MethodPost, "no JSON"}, {http.MethodPost, "null"}, {http.MethodPost, long}} {
		check.Equal(t, fmt.Sprintf("%s /login with %.20q", c[0], c[1]), ask(c[0], c[1], "application/json"), http.StatusBadRequest)
	}
	for _, form := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		check.Equal(t, "a login from a form of another site", ask(http.MethodPost, fmt.Sprintf(`{"handle": "ann", "password": %q}`, password), form), http.StatusUnsupportedMediaType)
	}
	between.away.Store(true)
	check.Equal(t, "a login while Kith does not answer", ask(http.MethodPost, `{"handle": "ann", "password": ""}`, "application/json"), http.StatusBadGateway)
	between.away.Store(false)
	got := (browser{t: t, url: url}).ask(viewer)
	check.That(t, got.Data.Viewer == nil && len(got.Errors) == 0, "without a cookie the viewer is %+v", got)
	got = (browser{t: t, url: url, viewer: annID}).ask(viewer)
	check.That(t, got.Data.Viewer == nil, "a browser calls itself %+v", got)

	got = ann.ask(`mutation { follow(userId: 300) { viewer { user { id } } } }`)
	check.That(t, got.Data.Follow != nil && got.Data.Follow.Viewer.User.ID == annID, "the follow is %+v", got)
	written := between.written()
	if got := ann.ask(viewer); got.Data.Viewer == nil || got.Data.Viewer.User.FollowingCount != following+1 || written == "" || between.brought() != written {
		t.Errorf("a read after the follow brings %q, want %q, and is %+v", between.brought(), written, got)
	}
	var some []string
	for id := 301; id <= 330; id++ {
		some = append(some, strconv.Itoa(id))
	}
	for range 10 { // each has a token of some 500 characters
		ann.ask(`mutation { followMany(userIds: [` + strings.Join(some, ", ") + `]) { viewer { id } } }`)
	}
	brought := between.brought()
	check.That(t, len(brought) >= 2_000 && len(brought) <= 3_000, "after many writes a request brings %d characters", len(brought))
	between.forget()
	if got := ben.ask(viewer); got.Data.Viewer == nil || got.Data.Viewer.User.ID != benID || between.brought() != "" {
		t.Errorf("another browser brings %q, and is %+v", between.brought(), got)
	}
	got = ann.ask(fmt.Sprintf(`mutation { follow(userId: %s) { changed } }`, annID))
	check.That(t, len(got.Errors) == 1 && got.Errors[0].Extensions.Code == "BAD_USER_INPUT", "a follow of oneself is %+v", got)

	cid := browser{t: t, url: begin(provider.URL, "2")}
	cid.signIn(kith, "cid")
	must.Soon(t, "the session ends", func() bool { return cid.ask(viewer).Data.Viewer == nil })
	dan := browser{t: t, url: begin()}
	check.Equal(t, "the viewer, with a token that was given", dan.signIn(kith, "dan"), dan.ask(viewer).Data.Viewer.User.ID)
}

// browser is a browser, with a cookie if it has signed in.
type browser struct {
	t                   *testing.T
	url, cookie, viewer string
}

// signIn registers a user, signs in, and returns the id.
func (b *browser) signIn(kith kith, handle string) string {
	b.t.Helper()
	p := kith.person(b.t, handle)
	response := b.post("/login", map[string]string{"handle": handle, "password": password})
	defer response.Body.Close()
	for _, cookie := range response.Cookies() {
		if cookie.HttpOnly && cookie.Secure && cookie.SameSite == http.SameSiteStrictMode && cookie.MaxAge > 0 {
			b.cookie = cookie.Name + "=" + cookie.Value
		}
	}
	must.That(b.t, b.cookie != "", "signing in: %s", response.Status)
	return p.id
}

type answerOfBFF struct {
	Data struct {
		Viewer *struct {
			User struct {
				ID             string
				FollowingCount int
			}
		}
		Follow *struct {
			Viewer struct{ User struct{ ID string } }
		}
	}
	Errors []struct{ Extensions struct{ Code string } }
}

func (b browser) ask(query string) (answer answerOfBFF) {
	b.t.Helper()
	response := b.post("/graphql", map[string]string{"query": query})
	defer response.Body.Close()
	err := json.NewDecoder(response.Body).Decode(&answer)
	check.That(b.t, err == nil, "%s: %s, %v", query, response.Status, err)
	return answer
}

func (b browser) post(path string, body any) *http.Response {
	b.t.Helper()
	text, err := json.Marshal(body)
	must.OK(b.t, err)
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+path, bytes.NewReader(text))
	must.OK(b.t, err)
	request.Header.Set("Content-Type", "application/json")
	if b.cookie != "" {
		request.Header.Set("Cookie", b.cookie)
	}
	if b.viewer != "" {
		request.Header.Set("Kith-Viewer", b.viewer)
	}
	response, err := http.DefaultClient.Do(request)
	must.OK(b.t, err)
	return response
}
