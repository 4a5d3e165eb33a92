// Package examples_test runs the examples against Kith, and checks from outside what they do.
package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// patience bounds every wait.
const patience = 2 * time.Minute

// Libraries with their own cache show the same things: see recipe.
func TestExamples(t *testing.T) {
	kith := start(t)
	for _, name := range []string{"apollo", "urql"} {
		t.Run(name, func(t *testing.T) {
			testenv.NPM(t, name)
			e := recipe(t, kith, name, filepath.Join(name, "main.mjs"))
			check.Equal(t, fmt.Sprintf("%s warns", name), e.stop(), "") // for example about an object without a key
		})
	}
	t.Run("go", func(t *testing.T) { goClient(t, kith) })
}

// goClient checks what the client in Go prints.
func goClient(t *testing.T, kith kith) {
	program := filepath.Join(t.TempDir(), "example")
	inFolder := func(arguments ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "go", arguments...)
		cmd.Dir, cmd.Env = "go", append(os.Environ(), "GOWORK=off") // a module of its own
		return cmd.CombinedOutput()
	}
	if out, err := inFolder("mod", "download"); err != nil {
		testenv.Missing(t, fmt.Sprintf("modules of examples/go: %v: %s", err, out))
	}
	out, err := inFolder("build", "-o", program, ".")
	must.That(t, err == nil, "%v: %s", err, out)

	out, err = inFolder("test", ".")
	must.That(t, err == nil, "%v: %s", err, out)

	saysWhatIsMissing(t, program)
	p, between := kith.person(t, "gopher"), &between{}
	cmd := exec.CommandContext(t.Context(), program, between.serve(t, kith), p.handle, password, demo(300))
	cmd.Env = append(os.Environ(), "KITH_TOKEN="+token(t, p.id, -time.Minute))
	before := p.followings(t)
	e := started(t, cmd)
	if got := e.until("list").Handles; !slices.Equal(got, before) || between.refused() != 1 || between.logins() != 1 {
		t.Errorf("with %d refused requests and %d logins the list is %v, want %v", between.refused(), between.logins(), got, before)
	}
	check.Equal(t, "the status after the follow", e.until("followed").Status, "FOLLOWING")
	if got := e.until("list").Handles; len(got) != following+1 || !slices.Equal(got, p.followings(t)) || between.written() == "" || between.brought() != between.written() {
		t.Errorf("after the follow the list is %v, asked for with %q, want %q", got, between.brought(), between.written())
	}
	check.Equal(t, "the code of a follow of nobody", e.until("refused").Code, "BAD_USER_INPUT")
	sees := func(follower string) {
		t.Helper()
		e.until("connected")
		kith.subscriptions(t, 1)
		kith.as(t, follower, follow, p.id)
		e.untilSame(happening{What: "follower", Handle: kith.handle(t, follower)})
	}
	sees(demo(400))
	kith.as(t, p.id, `mutation { signOutEverywhere { changed } }`, "")
	sees(demo(401))
	check.Equal(t, "logins after the end of all tokens", between.logins(), 2)
}

// Connections end with their tokens. The example has renewed its token, connects again with it, asks for what it has
// missed, and is notified of followers as before.
func TestSubscriptions(t *testing.T) {
	testenv.NPM(t, "subscriptions")
	kith := start(t, "--token-ttl", "3s")
	for _, transport := range []string{"ws", "sse"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			p, between := kith.person(t, "watcher_"+transport), &between{}
			e := run(t, "subscriptions/main.mjs", between.serve(t, kith), p.handle, transport, "")
			e.until("connected")
			kith.as(t, demo(400), follow, p.id)
			kith.Until(t, "a token of a renewed token", func() bool { return between.renewals() >= 2 })
			missed := kith.handle(t, demo(400))
			e.first("the list with "+missed, func(h happening) bool { return h.What == "connected" && slices.Contains(h.Handles, missed) })
			e.untilFollower(p, 401)
		})
	}
}

// Relay's compiler accepts Kith's schema with @semanticNonNull, and TypeScript accepts what it generates.
func TestRelay(t *testing.T) {
	testenv.Clients(t)
	testenv.NPM(t, "relay")
	at := t.TempDir()
	inTree, err := filepath.Abs("relay/node_modules")
	must.OK(t, err)
	for _, file := range []string{"relay/package.json", "relay/relay.config.js", "relay/babel.config.json", "relay/tsconfig.json",
		"relay/src/environment.ts", "relay/src/Changes.tsx", "relay/src/Page.tsx", "relay/src/main.tsx"} {
		text := must.File(t, file)
		write(t, filepath.Join(at, file), text)
	}
	folder := filepath.Join(at, "relay")
	must.OK(t, os.Symlink(inTree, filepath.Join(folder, "node_modules")))
	write(t, filepath.Join(folder, "schema.graphql"), []byte(kithtest.Run(t, kithtest.Args("schema")).Stdout))
	build := exec.CommandContext(t.Context(), "npm", "run", "build")
	build.Dir = folder
	out, err := build.CombinedOutput()
	must.That(t, err == nil, "%v: %s", err, out)
	artifact, err := os.ReadFile(filepath.Join(folder, "src/__generated__/Page_followings.graphql.ts"))
	check.That(t, err == nil && strings.Contains(string(artifact), "readonly node: {"), "an edge may have no node: %s, %v", artifact, err)
	recipe(t, start(t), "relay", filepath.Join(folder, "build/main.js"))
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.OK(t, os.WriteFile(path, text, 0o644))
}

// recipe checks what an example prints: a list of several pages, a follow that is shown before it is answered, a
// follow that is refused and taken back, followers as they come, and all that with tokens that expire.
func recipe(t *testing.T, kith kith, handle, program string) *example {
	p, other := kith.person(t, handle), demo(300)
	between := &between{held: make(chan struct{})}
	e := run(t, program, between.serve(t, kith), p.handle, kith.handle(t, other), token(t, p.id, -time.Minute))

	followed := p.followings(t)
	must.Equal(t, "followings", len(followed), following)
	before := happening{What: "shown", Handles: followed, Followings: following, Followers: kith.followerCount(t, other), Status: "NONE"}
	e.untilSame(before)
	if between.refused() == 0 || between.logins() != 1 {
		t.Errorf("%d requests were refused for their token, and there were %d logins; want some, and 1", between.refused(), between.logins())
	}

	after := before
	after.Handles = append([]string{kith.handle(t, other)}, followed...)
	after.Followings, after.Followers, after.Status = following+1, before.Followers+1, "FOLLOWING"
	e.untilSame(after)
	check.Equal(t, "followings while the follow is held back", len(p.followings(t)), following)
	between.held <- struct{}{}
	e.until("followed")
	check.Equal(t, "followings after the follow", p.followings(t), after.Handles)

	myself := after
	myself.Handles, myself.Followings = append([]string{p.handle}, after.Handles...), after.Followings+1
	e.untilSame(myself)
	between.held <- struct{}{}
	check.Equal(t, "the code of a follow of oneself", e.until("refused").Code, "BAD_USER_INPUT")
	e.untilSame(after)
	written, brought := between.written(), between.brought()
	check.That(t, written != "" && brought == written, "the follow has the token of consistency %q, later reads bring %q", written, brought)

	e.untilSame(before)
	check.Equal(t, "followings while the unfollow is held back", p.followings(t), after.Handles)
	between.held <- struct{}{}
	e.until("unfollowed")
	check.Equal(t, "followings after the unfollow", p.followings(t), followed)
	e.dismisses(p, between)

	e.sees(p, demo(400), between, 2)
	between.sockets.Lock()
	kith.as(t, p.id, `mutation { signOutEverywhere { changed } }`, "")
	kith.subscriptions(t, 0)
	kith.as(t, demo(401), follow, p.id) // nobody is notified of this
	between.sockets.Unlock()
	e.sees(p, demo(402), between, 3)
	check.Equal(t, "logins after the end of all tokens", between.logins(), 2)
	return e
}

// dismisses checks that the first suggestion is gone before the dismissal is answered, and back when it is undone.
func (e *example) dismisses(p user, between *between) {
	e.t.Helper()
	suggested := e.until("suggested")
	must.Least(e.t, "suggestions", len(suggested.Handles), 2)
	rest := happening{What: "suggested", Handles: suggested.Handles[1:]}
	e.untilSame(rest)
	check.Equal(e.t, "dismissed while that is held back", p.dismissed(e.t), nil)
	between.held <- struct{}{}
	e.until("dismissed")
	check.Equal(e.t, "dismissed", p.dismissed(e.t), suggested.Handles[:1])
	between.held <- struct{}{}
	var back, undone bool // in either order: libraries ask again before or after they say that the mutation has ended
	e.first("the list as before, and undone", func(h happening) bool {
		back, undone = back || h.same(suggested), undone || h.What == "undone"
		return back && undone
	})
	check.Equal(e.t, "dismissed after the undo", p.dismissed(e.t), nil)
}

// The guide shows parts of the files that are tested here, word for word, and leads to each of them.
func TestTheGuideShowsTheExamples(t *testing.T) {
	guide := kithtest.Excerpts(t, "..", "docs/how-to/connect-a-front-end.md")
	for _, file := range shown {
		text := must.File(t, file)
		check.Has(t, "docs/how-to/connect-a-front-end.md", guide, "](../../examples/"+file+")")
		check.Most(t, "lines of "+file+": examples are short", strings.Count(string(text), "\n"), 140)
	}
}

// shown are the files that the guide leads to.
var shown = []string{
	"apollo/client.mjs", "relay/src/environment.ts", "relay/src/Page.tsx", "relay/src/Changes.tsx", "urql/client.mjs", "subscriptions/client.mjs",
	"bff/bff.mjs", "go/session.go", "go/client.go",
}

// happening is a line that an example prints.
type happening struct {
	What, Code, Status, Handle string
	Handles                    []string
	Followers, Followings      int
}

func (h happening) same(as happening) bool { return fmt.Sprint(h) == fmt.Sprint(as) }

// example is an example that runs, in its own process.
type example struct {
	t     *testing.T
	lines chan happening
	// stop ends the example, and returns what it has written to its standard error.
	stop func() string
}

// run starts an example that follows a user. token is that of an earlier visit.
func run(t *testing.T, program, url, handle, other, token string) *example {
	t.Helper()
	saysWhatIsMissing(t, "node", program)
	cmd := exec.CommandContext(t.Context(), "node", program, url, handle, password, other)
	cmd.Env = append(os.Environ(), "KITH_TOKEN="+token)
	return started(t, cmd)
}

// saysWhatIsMissing checks that a program without its arguments ends with one line.
func saysWhatIsMissing(t *testing.T, command ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
	check.That(t, err != nil && strings.HasPrefix(string(out), "arguments are missing: ") && strings.Count(string(out), "\n") == 1, "%s: %v, %s", command, err, out)
}

// started starts an example. It ends when the test does.
func started(t *testing.T, cmd *exec.Cmd) *example {
	t.Helper()
	var warned bytes.Buffer
	cmd.Stderr = &warned
	in, err := cmd.StdinPipe()
	must.OK(t, err)
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	e := &example{t: t, lines: make(chan happening, 1000)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(e.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var h happening
			if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
				h.What = lines.Text()
			}
			e.lines <- h
		}
	}()
	e.stop = sync.OnceValue(func() string {
		_ = in.Close()
		<-ended
		_ = cmd.Wait()
		return warned.String()
	})
	t.Cleanup(func() {
		if warned := e.stop(); warned != "" && t.Failed() {
			t.Log(warned)
		}
	})
	return e
}

// next returns the next line. It returns false if none comes in time.
func (e *example) next(within time.Duration) (happening, bool) {
	e.t.Helper()
	select {
	case h, more := <-e.lines:
		if !more {
			e.t.Fatalf("the example has ended: %s", e.stop())
		}
		return h, true
	case <-time.After(within):
		return happening{}, false
	}
}

// first returns the next line that fits, and skips others.
func (e *example) first(what any, fits func(happening) bool) happening {
	e.t.Helper()
	var seen []happening
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		h, some := e.next(time.Until(deadline))
		if some && fits(h) {
			return h
		}
		seen = append(seen, h)
	}
	e.t.Fatalf("no %+v, but %+v", what, seen)
	return happening{}
}

func (e *example) until(what string) happening {
	e.t.Helper()
	return e.first(what, func(h happening) bool { return h.What == what })
}

func (e *example) untilSame(as happening) {
	e.t.Helper()
	e.first(as, as.same)
}

// sees lets somebody follow p as soon as the example has subscribed, and has asked for the followers a number of times.
func (e *example) sees(p user, follower string, between *between, asked int) {
	e.t.Helper()
	p.kith.Until(e.t, "asked for followers", func() bool { return between.askedForFollowers() == asked })
	p.kith.subscriptions(e.t, 1)
	p.kith.as(e.t, follower, follow, p.id)
	all := p.followers(e.t)
	e.untilSame(happening{What: "follower", Handle: all[0], Handles: all, Followers: len(all)})
}

// untilFollower lets one user after another follow p until the example is notified of one, because it may still be connecting.
func (e *example) untilFollower(p user, from int) {
	e.t.Helper()
	for id := from; id < from+100; id++ {
		p.kith.as(e.t, demo(id), follow, p.id)
		for h, some := e.next(500 * time.Millisecond); some; h, some = e.next(500 * time.Millisecond) {
			if h.What == "follower" && slices.Contains(p.followers(e.t), h.Handle) {
				return
			}
		}
	}
	e.t.Fatal("the example is told of no follower")
}

// between passes requests on to Kith, and notes them. If held is set, each follow, unfollow and dismissal, and the undoing of one,
// waits for a value from it.
// WebSockets wait while sockets is locked.
type between struct {
	held    chan struct{}
	sockets sync.Mutex
	away    atomic.Bool // answers nothing

	mu               sync.Mutex
	unauthenticated  int
	signedIn         int
	renewed          int
	followers        int
	wrote, broughtIt string
}

func (b *between) refused() int           { b.mu.Lock(); defer b.mu.Unlock(); return b.unauthenticated }
func (b *between) askedForFollowers() int { b.mu.Lock(); defer b.mu.Unlock(); return b.followers }
func (b *between) logins() int            { b.mu.Lock(); defer b.mu.Unlock(); return b.signedIn }
func (b *between) renewals() int          { b.mu.Lock(); defer b.mu.Unlock(); return b.renewed }
func (b *between) written() string        { b.mu.Lock(); defer b.mu.Unlock(); return b.wrote }
func (b *between) brought() string        { b.mu.Lock(); defer b.mu.Unlock(); return b.broughtIt }

var heldBack = regexp.MustCompile(`follow\(|dismissSuggestion\(`)

var followersQuery = regexp.MustCompile(`query \w*Followers`)

func (b *between) untilSocketsMayPass() { b.sockets.Lock(); defer b.sockets.Unlock() }

// query is the context key of a request's text.
type query struct{}

// forget forgets which consistency token was sent.
func (b *between) forget() { b.mu.Lock(); defer b.mu.Unlock(); b.broughtIt = "" }

// serve returns the address of the proxy.
func (b *between) serve(t *testing.T, kith kith) string {
	t.Helper()
	to, err := url.Parse(kith.URL)
	must.OK(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(r *http.Response) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		asked, _ := r.Request.Context().Value(query{}).(string)
		if r.StatusCode == http.StatusUnauthorized {
			b.unauthenticated++
		} else if followersQuery.MatchString(asked) {
			b.followers++
		} else if strings.Contains(asked, "renewToken") {
			b.renewed++
		}
		if written := r.Header.Get("Kith-Consistency"); written != "" {
			b.wrote = written
		}
		return nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.away.Load() {
			panic(http.ErrAbortHandler)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var asked struct {
			Query      string
			Extensions struct{ ConsistencyToken string }
		}
		_ = json.Unmarshal(body, &asked)
		if b.held != nil && heldBack.MatchString(asked.Query) {
			select {
			case <-b.held:
			case <-r.Context().Done():
			}
		}
		b.mu.Lock()
		if strings.Contains(asked.Query, "login(") {
			b.signedIn++
		}
		if token := asked.Extensions.ConsistencyToken + r.Header.Get("Kith-Consistency"); token != "" {
			b.broughtIt = token
		}
		b.mu.Unlock()
		if r.Header.Get("Upgrade") != "" {
			b.untilSocketsMayPass()
		}
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), query{}, asked.Query)))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/graphql"
}
