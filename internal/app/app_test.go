// Package app_test uses the web app as people do: in browsers, on a gateway with the demo graph.
package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/webtest"
	"kith/web"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// site is a gateway and a browser in front of it.
type site struct {
	*kithtest.Gateway
	browser *webtest.Browser
}

func open(t *testing.T, args ...string) site {
	t.Helper()
	needsApp(t)
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", kithtest.DemoStore(t, 1)), trusting(t, "log"), patient, kithtest.Args(args...))
	knowsTheApp(t, g)
	return browse(t, g, g.URL)
}

// patient makes a gateway on a slow machine finish what it has begun.
var patient = kithtest.Args("--request-timeout", "2m", "--statement-timeout", "1m")

// browse opens a browser on a gateway, at its own address or at that of a proxy. Messages stay for as long as a test looks for one: while a slow
// machine is busy with something else, six seconds are over soon.
func browse(t *testing.T, g *kithtest.Gateway, at string) site {
	t.Helper()
	b := webtest.Open(t, at)
	b.Begins(`{ const later = setTimeout; window.setTimeout = (run, wait, ...all) => later(run, wait === 6_000 || wait === 12_000 ? 120_000 : wait, ...all) }`)
	return site{g, b}
}

// told is whether a message at the edge of the page has a text. What it tells is done: a page shows most changes before.
func told(text string) string {
	return fmt.Sprintf(`document.querySelector(".notes").innerText.includes(%q)`, text)
}

// trusting makes a gateway trust one document, in addition to those of the app, and decides how it treats others.
func trusting(t *testing.T, others string) kithtest.Option {
	t.Helper()
	folder := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(folder, "own.graphql"), []byte("{ viewer { user { id } } }"), 0o600))
	return kithtest.Args("--trusted-documents", folder, "--only-trusted", others)
}

// knowsTheApp checks at the end that each operation of the app was trusted. The app's operations have names, the tests' have none,
// and GraphiQL asks for the schema.
func knowsTheApp(t *testing.T, g *kithtest.Gateway) {
	t.Helper()
	t.Cleanup(func() {
		for line := range strings.Lines(g.Stderr()) {
			if strings.Contains(line, "a document is not trusted") && !strings.Contains(line, `operation=""`) && !strings.Contains(line, "operation=IntrospectionQuery") {
				t.Errorf("an operation of the app is not trusted: %s", line)
			}
		}
	})
}

func needsApp(t *testing.T) {
	t.Helper()
	if !web.HasApp(web.Assets()) {
		testenv.Missing(t, "the app has not been built: make web")
	}
	testenv.Chromium(t)
}

// as opens a page of the app as a user of the demo graph.
func (s site) as(user int, path string) *webtest.Tab {
	s.browser.Helper()
	tab := s.browser.Tab("/app/")
	tab.Looks(1440, 900, "light") // without animations, which take most of the processor's time
	tab.Run("sign in", fmt.Sprintf(`
		const answer = await fetch("/demo/token?user=%[1]d", {method: "POST"});
		localStorage.setItem("kith-session", JSON.stringify({token: (await answer.json()).token, renewAt: Date.now() + 3_600_000, userId: "%[1]d"}))`, user))
	tab.Go(s.browser, "/app"+path)
	tab.Until("somebody is signed in", `document.querySelector(".me b")`)
	return tab
}

// handle returns the handle and the name of a demo user.
func (s site) handle(t *testing.T, user int) (handle, name string) {
	t.Helper()
	var answer struct{ User struct{ Handle, Name string } }
	s.Query(t, `query($id: ID!) { user(by: {id: $id}) { handle name } }`, map[string]any{"id": user}, &answer)
	return answer.User.Handle, answer.User.Name
}

// picks opens the menu of somebody, or of a post, and presses one of its items.
func picks(tab *webtest.Tab, menu, item string) {
	tab.Helper()
	tab.Press("More: " + menu)
	tab.Press(item)
}

// waiting is how many requests the navigation shows.
const waiting = `document.querySelector("nav [href$='/requests'] .count")?.textContent`

// count reads the number on a tab of a profile, such as "followers" or "posts".
func count(list string) string {
	return fmt.Sprintf(`Number(document.querySelector(".tabs [data-list=%s]")?.dataset.count)`, list)
}

func TestApp(t *testing.T) {
	t.Parallel()
	s := open(t)
	t.Run("two follow each other live", func(t *testing.T) { live(t, s.in(t)) })
	s.each(t, map[string]func(*testing.T, site){
		"register, follow many, post": registers,
		"follows do not flicker":      follows,
	})
}

// in returns the site for a subtest.
func (s site) in(t *testing.T) site { return site{s.Gateway, s.browser.For(t)} }

// each runs tests side by side. Tests that wait for the gateway's number of subscriptions run before it.
func (s site) each(t *testing.T, tests map[string]func(*testing.T, site)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s.in(t))
		})
	}
}

// subscribed waits until the gateway has n subscriptions.
func (s site) subscribed(t *testing.T, n int) {
	t.Helper()
	line := fmt.Sprintf("\nkith_subscription_operations %d\n", n)
	s.Until(t, "have all subscriptions", func() bool {
		_, metrics := s.Get(t, "/metrics")
		return strings.Contains(metrics, line)
	})
}

func registers(t *testing.T, s site) {
	tab := s.browser.Tab("/app/")
	tab.Press("Register")
	tab.Type(`input[name="name"]`, "Nadia Berg")
	tab.Type(`input[name="handle"]`, "maya_okafor")
	tab.Type(`input[name="password"]`, "correct horse battery")
	tab.Press("Create an account")
	tab.Until("the handle is refused, and the field is at hand", `document.querySelector(".problem").textContent.length > 5 && document.activeElement.name == "handle"`)
	tab.Type(`input[name="handle"]`, "_nadia")
	tab.Press("Create an account")

	tab.Sees("Who do you know?")
	tab.Until("people are suggested", `document.querySelectorAll(".choices li").length == 40`)
	tab.Until("nobody is chosen before somebody chooses", `!document.querySelector(".choices :checked") && document.querySelector(".bar .primary").disabled`)
	first := tab.Text(`document.querySelector(".choices b").textContent`)
	tab.Press("Choose all")
	tab.Run("leave out the first", `document.querySelector(".choices input").click()`)
	tab.Press("Follow 39 people")
	tab.Sees("You now follow 39 more people.")
	tab.Until("their posts are there", `document.querySelectorAll(".post").length >= 10`)

	tab.Type("textarea", "Good morning from a test")
	tab.Press("Post")
	tab.Sees("Posted. Your followers can see it now.")
	tab.Go(s.browser, "/app/u/maya_okafor_nadia")
	tab.Sees("Good morning from a test")
	tab.Until("39 are counted", count("following")+" === 39")
	tab.Press("39 Following")
	tab.Until("they are listed", `document.querySelectorAll(".row[data-user]").length >= 30`)
	check.That(t, !strings.Contains(tab.Text(`document.querySelector(".list").innerText`), first), "%s was left out, and is followed", first)

	tab.Press("Sign out")
	tab.Type(`input[name="handle"]`, "maya_okafor_nadia")
	tab.Type(`input[name="password"]`, "wrong horse battery")
	tab.Press("Sign in to Kith")
	tab.Until("the password is refused", `document.querySelector(".problem").textContent.length > 5`)
	tab.Run("empty the field", `document.querySelector("input[name=password]").select()`)
	tab.Type(`input[name="password"]`, "correct horse battery")
	tab.Press("Sign in to Kith")
	tab.Until("Nadia is back", `document.querySelector(".me b")?.textContent === "Nadia Berg"`)

	tab.Press("Sign out")
	tab.Go(s.browser, "/app/u/mateo_silva")
	tab.Press("Follow: Mateo Silva")
	tab.Until("it is said what for", `document.querySelector("dialog[open] h2")?.textContent === "Sign in to follow Mateo Silva"`)
	tab.Type(`input[name="handle"]`, "maya_okafor_nadia")
	tab.Type(`input[name="password"]`, "correct horse battery")
	tab.Press("Sign in to Kith")
	tab.Until("she is where she was", `document.querySelector(".me b")?.textContent === "Nadia Berg" && document.querySelector("h1")?.textContent === "Mateo Silva" && !document.querySelector("dialog")`)
}

func isSomebody(t *testing.T, s site) {
	tab := s.browser.Tab("/app/")
	tab.Until("faces are drawn", `document.querySelector("button[data-user=mateo_silva] img")?.naturalWidth > 0`)
	tab.Run("be Mateo", `document.querySelector("button[data-user=mateo_silva]").click()`)
	tab.Until("Mateo is signed in", `document.querySelector(".me b")?.textContent === "Mateo Silva"`)
	like := `document.querySelector(".post .like")`
	tab.Until("the feed", like)
	before := tab.Text(like + ".textContent")
	tab.Run("favor the first post", like+".click()")
	tab.Until("it is one more", fmt.Sprintf(`%[1]s.ariaPressed === "true" && Number(%[1]s.textContent) === %[2]s + 1`, like, before))
	tab.Until("it is sent", `performance.getEntriesByType("resource").length > 0 && !document.querySelector(".note.bad")`)
	tab.Run("meddle", meddle)
	tab.Run("late answers", `hold = "avorite($postId"`)
	for _, pressed := range []string{"false", "true"} {
		tab.Run("a click", like+".click()")
		tab.Until("it shows at once", fmt.Sprintf(`%s.ariaPressed === %q`, like, pressed))
	}
	for range 2 {
		tab.Until("the next one is sent", `held.length === 1`)
		tab.Run("let it go", `held.pop()()`)
	}
	tab.Go(s.browser, "/app/u/maya_okafor")
	tab.Until("who of her followers Mateo knows", `/Followed by \d+ you know/.test(document.body.innerText)`)
	tab.Run("see them", `document.querySelector(".known").click()`)
	tab.Until("they are listed", `document.querySelectorAll(".row[data-user]").length >= 3`)
	handle, _ := s.handle(t, 800) // no other test follows this user
	tab.Go(s.browser, "/app/u/"+handle)
	tab.Until("the profile", `document.querySelector(".head")`)
	for _, list := range []string{"following", "followers", "friends"} {
		tab.Run("open "+list, fmt.Sprintf(`document.querySelector(".tabs a[href$='/%s']").click()`, list))
		tab.Until(list+" are all there", fmt.Sprintf(`(scrollTo(0, 1e9), document.querySelectorAll(".row[data-user]").length === %s)`, count(list)))
	}
}

// follows holds the mutation back, and notes everything that the button shows. The button shows the follow at once, and
// nothing else until it is clicked again.
func follows(t *testing.T, s site) {
	handle, name := s.handle(t, 77)
	mine, _ := s.handle(t, 100)
	tab := s.as(100, "/u/"+handle)
	tab.Until("the button", `document.querySelector(".head-actions .follow")?.dataset.following === "false"`)
	tab.Run("hold mutations back", `
		const send = window.fetch;
		window.held = [];
		window.fetch = (...all) => all[1]?.body?.includes("mutation") ? new Promise(go => held.push(() => go(send(...all)))) : (window.consistent ||= all[1]?.headers?.has("Kith-Consistency"), send(...all));`)
	notes(tab, `document.querySelector(".head-actions .follow").dataset.following`)
	before := tab.Text(`document.querySelector(".tabs a[href$='/followers']").dataset.count`)
	tab.Press("Follow: " + name)
	tab.Until("it shows at once", `document.querySelector(".head-actions .follow").dataset.following === "true" && held.length === 1`)
	after := tab.Text(`document.querySelector(".tabs a[href$='/followers']").dataset.count`)
	check.That(t, after != before, "%s followers before and after", after)
	// A list that is read in the meantime may be older than the follow, and must not show that.
	tab.Run("read a list", `document.querySelector(".tabs a[href$='/followers']").click()`)
	tab.Run("let it go", `held.shift()()`)
	tab.Until("it was read with the token of the follow", `window.consistent === true`)
	tab.Until("the follower is on it", fmt.Sprintf(`document.querySelector(".row[data-user=%s]")`, mine))

	// Three clicks are sent one after another, and the last one decides.
	for _, shown := range []string{"false", "true", "false"} {
		tab.Run("a click", `document.querySelector(".head-actions .follow").click()`)
		tab.Until("it shows "+shown+" at once", fmt.Sprintf(`document.querySelector(".head-actions .follow").dataset.following === %q`, shown))
	}
	// What is asked for meanwhile comes when the last one has ended, though the first one is the same change.
	tab.Run("read another list", `document.querySelector(".tabs a[href$='/following']").click()`)
	for range 3 {
		tab.Until("the next one is sent", `held.length === 1`)
		tab.Run("let it go", `held.shift()()`)
	}
	tab.Until("the list is there", `document.querySelector(".row[data-user]")`)
	tab.Until("unfollowed", `held.length === 0 && document.querySelector(".head-actions .follow").dataset.following === "false"`)
	tab.Until("and so says the gateway", fmt.Sprintf(`%s === %q`, `document.querySelector(".tabs a[href$='/followers']").dataset.count`, before))
	says(t, tab, "false true false true false")
}

func live(t *testing.T, s site) {
	_, mine := s.handle(t, 200)
	yours, name := s.handle(t, 300)
	a := s.as(200, "/u/"+yours)
	b := s.as(300, "/u/"+yours)
	b.Until("the profile", count("followers")+" >= 0")
	before := b.Text(`document.querySelector(".tabs a[href$='/followers']").dataset.count`)
	s.subscribed(t, 3+2) // a also watches b's profile
	a.Press("Follow: " + name)
	b.Sees(mine + " now follows you.")
	b.Until("the count has risen", count("followers")+" === "+before+" + 1")
	b.Run("see the followers", `document.querySelector(".tabs a[href$='/followers']").click()`)
	b.Press("Follow back: " + mine)
	a.Until("a sees that they are friends", `document.querySelector(".head-actions .follow").textContent === "Friends"`)
	a.Sees(name + " now follows you.")
	b.Press("Friends: " + mine)
	b.Sees("You’ll no longer be friends.")
	b.Press("Keep following")
	b.Press("Friends: " + mine)
	b.Press("Unfollow")
	a.Until("a sees that they are not any more", `document.querySelector(".head-actions .follow").textContent === "Following"`)
	check.That(t, b.Text(`document.querySelector(".row .follow").textContent`) != "Friends", "b still calls them friends")
}

// meddle lets a test fail the page's requests that contain the text cut, and hold back those that contain hold.
const meddle = `
	const send = window.fetch;
	window.cut = window.hold = "";
	window.held = [];
	window.fetch = async (...all) => {
		const asks = text => text && all[1]?.body?.includes(text);
		if (asks(window.cut)) throw new TypeError("cut off");
		if (asks(window.hold)) await new Promise(go => held.push(go));
		return send(...all);
	}`
