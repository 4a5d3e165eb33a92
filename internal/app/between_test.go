package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/webtest"
)

// between is a proxy in front of two gateways. One gateway gets all mutations, the other gets everything else, so a page
// never reads on the gateway on which it has written. The proxy holds requests and answers back as tests tell it.
type between struct {
	*httptest.Server
	writes, reads http.Handler

	mu   sync.Mutex
	kept []*kept
}

// kept is one request that is held back: the next request that contains all the parts.
type kept struct {
	parts  []string
	before bool   // whether it waits before a gateway gets it, and not after
	answer string // the answer, if no gateway is to answer
	came   chan struct{}
	goes   chan struct{}
}

func newBetween(t *testing.T, writes, reads *kithtest.Gateway) *between {
	t.Helper()
	to := func(g *kithtest.Gateway) http.Handler {
		target, err := url.Parse(g.URL)
		must.OK(t, err)
		return &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host // as load balancers do: sockets accept only pages of the same host
			},
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // pages close while requests are under way
		}
	}
	b := &between{writes: to(writes), reads: to(reads)}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *between) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		b.reads.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the browser has disconnected
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	gateway := b.reads
	if bytes.Contains(body, []byte(`"query":"mutation`)) {
		gateway = b.writes
	}
	switch k := b.take(string(body)); {
	case k == nil:
		gateway.ServeHTTP(w, r)
	case k.answer != "":
		k.wait(r)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, k.answer) // the browser may have disconnected
	case k.before:
		k.wait(r)
		gateway.ServeHTTP(w, r)
	default:
		answer := httptest.NewRecorder()
		gateway.ServeHTTP(answer, r)
		k.wait(r)
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = answer.Body.WriteTo(w)
	}
}

func (b *between) take(body string) *kept {
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for i, k := range b.kept {
		for _, part := range k.parts {
			if !strings.Contains(body, part) {
				continue next
			}
		}
		b.kept = append(b.kept[:i:i], b.kept[i+1:]...)
		return k
	}
	return nil
}

func (b *between) keep(k *kept) *kept {
	k.came, k.goes = make(chan struct{}), make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, k)
	return k
}

// keepRequest holds back the next request that contains all the parts. keepAnswer holds back its answer.
func (b *between) keepRequest(parts ...string) *kept {
	return b.keep(&kept{parts: parts, before: true})
}
func (b *between) keepAnswer(parts ...string) *kept { return b.keep(&kept{parts: parts}) }

// refuse answers the next such request itself, with an error, when it is released.
func (b *between) refuse(field, message string, parts ...string) *kept {
	answer := fmt.Sprintf(`{"data":{%q:null},"errors":[{"message":%q,"path":[%q],"extensions":{"code":"UNAVAILABLE"}}]}`, field, message, field)
	return b.keep(&kept{parts: parts, answer: answer})
}

func (k *kept) wait(r *http.Request) {
	close(k.came)
	select {
	case <-k.goes:
	case <-r.Context().Done():
	}
}

// arrives waits until the request, or its answer, is held back.
func (k *kept) arrives(t *testing.T) {
	t.Helper()
	select {
	case <-k.came:
	case <-time.After(2 * time.Minute):
		t.Fatalf("nothing came with %q", k.parts)
	}
}

func (k *kept) letGo() { close(k.goes) }

// openTwo is open with two gateways on one store, in the redundancy mode in which followers lag most.
func openTwo(t *testing.T) (site, *between) {
	t.Helper()
	needsApp(t)
	servers := testenv.SharedMariaDB(t, 2)
	args := []string{
		"--demo", "--store", "mysql:" + servers[0].CreateDatabase(t, "app") + ";" + servers[1].CreateDatabase(t, "app"),
		"--redundancy", "stream", "--redis", testenv.Redis(t).URL(), "--jwt-secret", "the secret of the tests of the app",
	}
	writes := kithtest.Start(t, kithtest.Args(args...), trusting(t, "log"), patient)
	reads := kithtest.Start(t, kithtest.Args(args...), trusting(t, "log"), patient)
	knowsTheApp(t, writes)
	knowsTheApp(t, reads)
	b := newBetween(t, writes, reads)
	return browse(t, reads, b.URL), b
}

// does changes something between two demo users.
func (s site) does(t *testing.T, user int, change string, other int) {
	t.Helper()
	s.mutate(t, user, "mutation($id: ID!) { "+change+"(userId: $id) { changed } }", map[string]any{"id": other}, nil)
}

// mutate sends a mutation as a demo user, and decodes its data into data.
func (s site) mutate(t *testing.T, user int, mutation string, variables map[string]any, data any) {
	t.Helper()
	question, err := json.Marshal(map[string]any{"query": mutation, "variables": variables})
	must.OK(t, err)
	var token struct{ Token string }
	post(t, fmt.Sprintf("%s/demo/token?user=%d", s.URL, user), "", nil, &token)
	answer := struct{ Data, Errors any }{Data: data}
	post(t, s.URL+"/graphql", token.Token, question, &answer)
	must.That(t, answer.Errors == nil, "%s: %v", mutation, answer.Errors)
}

func post(t *testing.T, at, token string, body []byte, answer any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, bytes.NewReader(body))
	must.OK(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w, err := http.DefaultClient.Do(r)
	must.OK(t, err)
	defer w.Body.Close()
	err = json.NewDecoder(w.Body).Decode(answer)
	must.That(t, err == nil, "%s: %d, %v", at, w.StatusCode, err)
}

// notes begins to record the value of each expression whenever the page changes.
func notes(tab *webtest.Tab, expressions ...string) {
	tab.Helper()
	tab.Run("note what it says", `
		const heard = window.said = Array.from({length: `+fmt.Sprint(len(expressions))+`}, () => []);
		const note = () => [`+strings.Join(expressions, ", ")+`].forEach((now, i) => heard[i].at(-1) === String(now) || heard[i].push(String(now)));
		note();
		window.noting?.disconnect();
		window.noting = new MutationObserver(note);
		noting.observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true})`)
}

// says compares the recorded values of each expression with what is wanted.
func says(t *testing.T, tab *webtest.Tab, want ...string) {
	t.Helper()
	check.Equal(t, "what the page said", tab.Text(`said.map(one => one.join(" ")).join(", ")`), strings.Join(want, ", "))
}

// TestChangesShowAtOnce delays answers, and reads from another gateway than it writes to. A change shows at once, and the
// old state never shows again, unless the change is refused.
func TestChangesShowAtOnce(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s, b := openTwo(t)
	t.Run("requests while one reads", func(t *testing.T) { requestsMeanwhile(t, s.in(t), b) })
	for name, test := range map[string]func(*testing.T, site, *between){
		"requests to one":    requestsToOne,
		"requests to others": requestsToOthers,
		"blocks":             blocks,
		"marks":              marks,
		"follows":            func(t *testing.T, s site, _ *between) { follows(t, s) },
		"comments":           comments,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s.in(t), b)
		})
	}
}

// requestsMeanwhile has a request come while how many wait is being read, by a gateway that did not know it yet.
func requestsMeanwhile(t *testing.T, s site, b *between) {
	_, name := s.handle(t, 515)
	tab := s.as(415, "/activity")
	s.subscribed(t, 2)
	k := b.keepAnswer("query Viewer")
	tab.Run("read all again", `dispatchEvent(new Event("kith-reconnected"))`)
	k.arrives(t)
	s.does(t, 515, "requestFriend", 415)
	tab.Sees(name + " wants to be friends.")
	k.letGo()
	tab.Until("one is counted", waiting+` === "1"`)
}

func requestsToOne(t *testing.T, s site, b *between) {
	const me, one, two, three, fan = 410, 510, 511, 512, 513
	for _, from := range []int{one, two, three} {
		s.does(t, from, "requestFriend", me)
	}
	row := func(user int) (name, there string) {
		handle, name := s.handle(t, user)
		return name, fmt.Sprintf(`!!document.querySelector(".row[data-user=%s]")`, handle)
	}
	fanName, _ := row(fan)
	firstName, first := row(one)
	secondName, second := row(two)
	thirdName, third := row(three)
	tab := s.as(me, "/requests")
	tab.Until("three wait", first+" && "+second+" && "+third+` && `+waiting+` === "3"`)
	around := func() { // reads in the meantime
		tab.Press("Friend requests sent")
		tab.Sees("You haven’t sent any friend requests.")
		tab.Press("Friend requests")
		tab.Until("the list is back", third)
	}

	// The gateway has accepted the change, and its answer is late.
	notes(tab, first, waiting)
	k := b.keepAnswer("mutation AcceptRequest", fmt.Sprintf(`"userId":"%d"`, one))
	tab.Press("Accept " + firstName)
	tab.Until("it shows at once", `!`+first+` && `+waiting+` === "2"`)
	k.arrives(t)
	s.does(t, fan, "follow", me)
	tab.Sees(fanName + " now follows you.")
	k.letGo()
	tab.Sees("You and " + firstName + " are now friends.")
	around()
	says(t, tab, "true false", "3 2")

	// The gateway has not got the request yet.
	notes(tab, second, waiting)
	k = b.keepRequest("mutation DeclineRequest", fmt.Sprintf(`"userId":"%d"`, two))
	tab.Press("Decline " + secondName)
	tab.Until("it shows at once", `!`+second+` && `+waiting+` === "1"`)
	k.arrives(t)
	s.does(t, fan, "unfollow", me)
	s.does(t, fan, "follow", me)
	tab.Sees(fanName + " now follows you.")
	count := b.keepRequest("query Viewer")
	k.letGo()
	tab.Sees("Request declined.")
	around()
	says(t, tab, "true false", "2 1")

	// How many wait is being read again.
	count.arrives(t)
	notes(tab, third, waiting)
	k = b.refuse("acceptRequest", "the shard does not answer", "mutation AcceptRequest", fmt.Sprintf(`"userId":"%d"`, three))
	tab.Press("Accept " + thirdName)
	tab.Until("it shows at once", `!`+third+` && !`+waiting)
	k.arrives(t)
	count.letGo()
	k.letGo()
	tab.Sees("The shard does not answer.")
	tab.Until("it waits again", third+` && `+waiting+` === "1"`)
	says(t, tab, "true false true", "1 undefined 1")
}

func requestsToOthers(t *testing.T, s site, b *between) {
	handle, name := s.handle(t, 520)
	tab := s.as(420, "/u/"+handle)
	picks(tab, name, "Ask to be friends")
	tab.Press("Send request")
	tab.Sees("Request sent to " + name + ".")
	tab.Until("it can be withdrawn", `document.body.innerText.includes("You asked to be friends.")`)
	asked := `document.querySelector(".head").innerText.includes("You asked to be friends.")`
	notes(tab, asked)
	k := b.refuse("withdrawRequest", "too many requests at once", "mutation WithdrawRequest", `"userId":"520"`)
	picks(tab, name, "Withdraw request")
	tab.Until("it shows at once", "!"+asked)
	k.arrives(t)
	k.letGo()
	tab.Sees("Too many requests at once.")
	tab.Until("it waits again", asked)
	k = b.keepRequest("mutation WithdrawRequest", `"userId":"520"`)
	picks(tab, name, "Withdraw request")
	k.arrives(t)
	tab.Run("see the followers", `document.querySelector(".tabs a[href$='/followers']").click()`)
	k.letGo()
	tab.Sees("Request withdrawn.")
	says(t, tab, "true false true false")
}

func marks(t *testing.T, s site, b *between) {
	handle, name := s.handle(t, 531)
	s.does(t, 431, "follow", 531)
	tab := s.as(431, "/u/"+handle)
	tab.Until("the profile", `document.querySelector(".head-actions .follow")?.dataset.following === "true"`)
	remark := `document.querySelector(".mark-line")?.textContent.trim()`
	notes(tab, remark)
	k := b.keepAnswer("mutation SetFollowMark", `"userId":"531"`)
	picks(tab, name, "Mark")
	tab.Type("dialog input[name=remark]", "knows-trains")
	tab.Press("Save")
	tab.Until("it shows at once", remark+` === "knows-trains"`)
	k.arrives(t)
	k.letGo()
	tab.Sees("Saved. Only you see it.")
	says(t, tab, "undefined knows-trains")

	// The list is read before the gateway has got the mark.
	k = b.keepRequest("mutation SetFollowMark", `"userId":"531"`)
	picks(tab, name, "Mark")
	tab.Run("special", `document.querySelector("dialog input[type=checkbox]").click()`)
	tab.Press("Save")
	k.arrives(t)
	shows(tab, "/marked")
	tab.Until("nobody yet", isEmptyAs("No one is marked yet."))
	k.letGo()
	tab.Until("the mark is listed", fmt.Sprintf(`document.querySelector(".row[data-user=%s]")?.innerText.includes("knows-trains")`, handle))
}

func blocks(t *testing.T, s site, b *between) {
	handle, name := s.handle(t, 530)
	s.does(t, 430, "follow", 530)
	tab := s.as(430, "/u/"+handle)
	tab.Until("the profile", `document.querySelector(".head-actions .follow")?.dataset.following === "true"`)
	buttons := `document.querySelector(".head-actions").innerText.includes("Unblock")`
	followers := count("followers")
	before := tab.Text("String(" + followers + ")")
	block := func() {
		picks(tab, name, "Block")
		tab.Until("the dialog", `document.querySelector("dialog[open] .danger")`)
		tab.Run("block", `document.querySelector("dialog[open] .danger").click()`)
	}
	notes(tab, buttons)
	k := b.refuse("block", "the shard does not answer", "mutation Block", `"userId":"530"`)
	block()
	tab.Until("it shows at once", buttons+" && "+followers+" === "+before+" - 1")
	k.arrives(t)
	k.letGo()
	tab.Sees("The shard does not answer.")
	tab.Until("it is as before", "!"+buttons+" && "+followers+" === "+before)
	k = b.keepRequest("mutation Block", `"userId":"530"`)
	block()
	k.arrives(t)
	tab.Until("no list is offered", `document.querySelector(".tabs") && !document.querySelector(".tabs a")`)
	shows(tab, "/u/"+handle+"/followers")
	k.letGo()
	tab.Sees("You blocked " + name + ".")
	tab.Until("the list says why it is empty", fmt.Sprintf(`document.querySelector(".empty-title")?.textContent === %q`, "You blocked "+name+"."))
	says(t, tab, "false true false true")

	frame := b.keepAnswer("query Viewer") // who reads it shows at once what one changes on the page
	tab.Go(s.browser, "/app/blocked")
	frame.arrives(t)
	row := fmt.Sprintf(`!!document.querySelector(".row[data-user=%s]")`, handle)
	tab.Until("the block is listed", row)
	notes(tab, row)
	k = b.keepAnswer("mutation Unblock", `"userId":"530"`)
	tab.Press("Unblock: " + name)
	tab.Until("it shows at once", "!"+row)
	k.arrives(t)
	frame.letGo()
	k.letGo()
	tab.Sees("You unblocked " + name + ".")
	tab.Sees("You haven’t blocked anyone.")
	says(t, tab, "true false")
}

// comments tests two pages of comments below a post, writes and deletes some, and favorites the post.
func comments(t *testing.T, s site, b *between) {
	handle, name := s.handle(t, 440)
	_, other := s.handle(t, 441)
	var published struct {
		PublishPost struct{ Post struct{ ID string } }
	}
	s.mutate(t, 440, `mutation { publishPost(text: "On rainy days", clientKey: "rain") { post { id } } }`, nil, &published)
	id := published.PublishPost.Post.ID
	for i := range 25 {
		s.mutate(t, 441, `mutation($id: ID!, $text: String!) { addComment(postId: $id, text: $text, clientKey: $text) { changed } }`,
			map[string]any{"id": id, "text": fmt.Sprintf("n%d", i)}, nil)
	}
	tab := s.as(440, "/u/"+handle)
	post := `document.querySelector("article[aria-label='Post by ` + name + `']")`
	texts := `[...document.querySelectorAll(".comment .text")].map(e => e.textContent)`
	talk := `Number(` + post + `.querySelector(".talk").textContent)`
	tab.Until("the post", post+"?.innerText.includes('On rainy days') && "+talk+" === 25")
	k := b.keepAnswer("query Comments") // which lacks what is written meanwhile
	tab.Press("Comments, 25")
	k.arrives(t)
	notes(tab, texts+`.includes("One-likes-rain")`)
	tab.Type(".comments textarea", "One-likes-rain")
	tab.Press("Comment")
	tab.Until("it is being sent", `document.querySelector(".comments textarea").readOnly`)
	k.letGo()
	tab.Until("all as one scrolls", `(scrollTo(0, 1e9), `+texts+`.length === 26)`)
	tab.Until("it is the first", texts+`[0] === "One-likes-rain" && `+talk+` === 26 && `+post+`.querySelector("textarea").value === ""`)
	k = b.refuse("deleteComment", "the shard does not answer", "mutation DeleteComment")
	tab.Press("Delete the comment by " + name)
	tab.Until("it is gone at once", `!`+texts+`.includes("One-likes-rain") && `+talk+` === 25`)
	k.arrives(t)
	k.letGo()
	tab.Sees("The shard does not answer.")
	tab.Until("it is back", texts+`[0] === "One-likes-rain" && `+talk+` === 26`)
	tab.Press("Delete the comment by " + name)
	tab.Until("it is gone", `!`+texts+`.includes("One-likes-rain")`)
	tab.Run("count answers", `
		const send = window.fetch;
		window.answers = 0;
		window.fetch = async (...all) => {
			const answer = await send(...all);
			if (all[1]?.body?.includes("mutation DeleteComment")) window.answers++;
			return answer;
		}`)
	tab.Press("Delete the comment by " + other) // the author of the post may do so
	tab.Until("so is another", texts+`.length === 24 && !`+texts+`.includes("n24") && `+talk+` === 24`)
	tab.Until("it is answered", `answers > 0`)
	tab.Run("draw the answer", `await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame)`)
	tab.Until("the count is that of the answer", talk+` === 24`)
	says(t, tab, "false true false true false")

	tab.Press("Favorite, 0")
	tab.Press("1 Favorite")
	tab.Until("it is a favorite", post+`?.innerText.includes("On rainy days")`)
	picks(tab, "the post by "+name, "Delete this post")
	tab.Sees("You don’t have any favorites yet.")
	s.Until(t, "have deleted both comments and the post", func() bool {
		var left struct{ Node any }
		s.Query(t, `query($id: ID!) { node(id: $id) { id } }`, map[string]any{"id": id}, &left)
		return left.Node == nil
	})
}
