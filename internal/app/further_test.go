package app_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"kith/internal/check"
	"kith/internal/testenv"
	"kith/internal/webtest"
)

// TestAppFurther runs the other tests of the app, which take a browser some 20 s on two processors.
func TestAppFurther(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t)
	t.Run("requests", func(t *testing.T) { requests(t, s.in(t)) })
	t.Run("activity", func(t *testing.T) { activity(t, s.in(t)) })
	t.Run("pages stay whole", func(t *testing.T) { wholePages(t, s.in(t)) })
	s.each(t, map[string]func(*testing.T, site){
		"be a demo user":               isSomebody,
		"bring a network":              brings,
		"lists go on and are searched": lists,
		"missed events":                missedEvents,
		"blocks, marks and privacy":    keepsOut,
		"suggestions":                  suggestions,
		"in common":                    common,
		"keyboard":                     keyboard,
		"no answers, late answers":     troubles,
	})
}

func lists(t *testing.T, s site) {
	var answer struct {
		People struct {
			Nodes []struct {
				Handle        string
				FollowerCount int
			}
		}
	}
	s.Query(t, `{ people(where: {followedBy: 1}, first: 100) { nodes { handle followerCount } } }`, nil, &answer)
	most := answer.People.Nodes[0]
	for _, one := range answer.People.Nodes {
		if one.FollowerCount > most.FollowerCount {
			most = one
		}
	}
	tab := s.browser.Tab("/app/u/" + most.Handle + "/followers") // nobody is signed in
	rows := `document.querySelectorAll(".row[data-user]").length`
	tab.Until("the first page", rows+" >= 30")
	last := fmt.Sprintf("%d", most.FollowerCount)
	tab.Until("all as one scrolls", `(scrollTo(0, 1e9), `+rows+` >= `+last+`)`)
	name := tab.Text(`[...document.querySelectorAll(".row .name")].at(-1).textContent`)
	tab.Go(s.browser, "/app/u/"+most.Handle+"/followers")
	tab.Until("the first page again", rows+" >= 30")
	tab.Type(`input[type="search"]`, name)
	tab.Until("the last of them is found", fmt.Sprintf(`%s > 0 && [...document.querySelectorAll(".row .name")].every(e => e.textContent === %q)`, rows, name))
}

// brings imports whom somebody follows, and takes the same away again.
func brings(t *testing.T, s site) {
	one, _ := s.handle(t, 77)
	two, _ := s.handle(t, 78)
	mine, _ := s.handle(t, 930)
	tab := s.as(930, "/settings")
	choose := func(lines ...string) {
		tab.Run("choose a file", fmt.Sprintf(`
			const field = document.querySelector("input[type=file]"), chosen = new DataTransfer();
			chosen.items.add(new File([%q], "following_accounts.csv"));
			field.files = chosen.files;
			field.dispatchEvent(new Event("change", {bubbles: true}));`, strings.Join(lines, "\n")))
	}
	tab.Until("the form", `document.querySelector("input[type=file]")`)
	choose(strings.Repeat("x", 200<<10))
	tab.Sees("The file is larger than 192 KiB")
	tab.Until("the same file can be chosen again", `document.querySelector("input[type=file]").files.length === 0`)
	tab.Run("choose none", `document.querySelector("input[type=file]").dispatchEvent(new Event("change", {bubbles: true}))`)
	lines := []string{"Account address,Show boosts", one + "@example.org,true", "nobody_there@example.org,true", two + ",true"}
	for len(lines) < 60 { // more than is done at once
		lines = append(lines, one)
	}
	choose(append(lines, mine+",true")...)
	tab.Sees("Follows: 60 of 60 lines, 2 of them have changed something, 2 were refused.")
	tab.Sees("Line 3, nobody_there: ")
	tab.Sees("Line 61, " + mine + ": ")
	tab.Run("look at what is exported", `window.exported = ""; URL.createObjectURL = file => (file.text().then(text => window.exported = text), "#");`)
	tab.Press("Export")
	for _, handle := range []string{one, two} {
		tab.Until(handle+" is in the file", fmt.Sprintf(`window.exported.split("\n").some(line => line.split(/[@,]/)[0] === %q)`, handle))
	}
	choose(one)
	tab.Sees("Follows: 1 of 1 lines, 0 of them")
	tab.Run("meddle", meddle)
	tab.Run("cut off", `cut = "mutation RemoveAccountsImport"`)
	tab.Press("Forget")
	tab.Sees("The server can’t be reached.")
	tab.Run("end of the trouble", `cut = ""`)
	tab.Press("Forget")
	tab.Until("one is left", `document.querySelectorAll("[role=status] ul").length === 1`)
}

func suggestions(t *testing.T, s site) {
	tab := s.as(1, "/suggestions")
	tab.Until("people with reasons", `document.querySelectorAll(".row .stack img").length > 10 && /Followed by .* more you follow/.test(document.body.innerText)`)
	name := tab.Text(`document.querySelector(".row .name").textContent`)
	tab.Press("Do not suggest " + name)
	gone := func(name string, most int) string {
		return fmt.Sprintf(`document.querySelectorAll(".row[data-user]").length > %d && ![...document.querySelectorAll(".row .name")].some(e => e.textContent === %q)`, most, name)
	}
	tab.Until("it is gone", gone(name, 5))
	tab.Sees(name + " won’t be suggested to you for now.")
	tab.Go(s.browser, "/app/suggestions")
	tab.Until("it stays away", gone(name, 5))

	tab.Press("Home")
	tab.Until("people beside the feed", `document.querySelectorAll(".beside .row[data-user]").length === 5`)
	name = tab.Text(`document.querySelector(".beside .name").textContent`)
	tab.Press("Do not suggest " + name)
	tab.Sees(name + " won’t be suggested to you for now.")
	tab.Press("Requests")
	tab.Sees("No friend requests.")
	tab.Press("Home")
	tab.Until("it is gone when one returns", gone(name, 4))
}

func common(t *testing.T, s site) {
	var answer struct {
		User struct{ CommonFollowings, CommonFollowers struct{ TotalCount int } }
	}
	s.Query(t, `{ user(by: {id: 1}) { commonFollowings(with: 2) { totalCount } commonFollowers(with: 2) { totalCount } } }`, nil, &answer)
	tab := s.as(3, "/common/maya_okafor/mateo_silva")
	all := func(n int) string {
		return fmt.Sprintf(`(scrollTo(0, 1e9), document.querySelectorAll(".row[data-user]").length === %d)`, n)
	}
	tab.Until("whom both follow", all(answer.User.CommonFollowings.TotalCount))
	tab.Press("Follow both")
	tab.Until("who follows both", all(answer.User.CommonFollowers.TotalCount))
	handle := tab.Text(`document.querySelector(".row .handle").innerText.split(/\s/)[0]`)
	tab.Type(`input[type="search"]`, handle)
	tab.Until("a handle is found as it is shown", fmt.Sprintf(`document.querySelector(".row")?.dataset.user === %q`, strings.TrimPrefix(handle, "@")))
}

// wholePages has a list of several pages read again while it is shown: nobody is lost between two pages, or there twice. Another list begins anew.
func wholePages(t *testing.T, s site) {
	var answer struct {
		People struct {
			Nodes []struct {
				ID, Handle                    string
				FollowerCount, FollowingCount int
			}
		}
	}
	s.Query(t, `{ people(where: {followedBy: 1}, first: 100) { nodes { id handle followerCount followingCount } } }`, nil, &answer)
	one := answer.People.Nodes[0]
	for _, other := range answer.People.Nodes { // of several pages, and not by far the most
		if one.FollowerCount < 65 || other.FollowerCount >= 65 && other.FollowerCount < one.FollowerCount {
			one = other
		}
	}
	user, _ := strconv.Atoi(one.ID)
	tab := s.as(user, "/u/"+one.Handle+"/followers")
	const rows = `[...document.querySelectorAll(".row[data-user]")].map(e => e.dataset.user)`
	tab.Until("three pages as one scrolls", `(scrollTo(0, 1e9), `+rows+`.length >= 65)`)
	tab.Run("note them", `window.before = `+rows)
	s.subscribed(t, 2)
	handle, _ := s.handle(t, 790)
	s.mutate(t, 790, `mutation($id: ID!) { unfollow(userId: $id) { changed } }`, map[string]any{"id": one.ID}, nil)
	s.mutate(t, 790, `mutation($id: ID!) { follow(userId: $id) { changed } }`, map[string]any{"id": one.ID}, nil)
	tab.Until("who has followed comes first", fmt.Sprintf(`%s[0] === %q`, rows, handle))
	tab.Until("all others are there, once", `(now => before.every(one => now.includes(one)) && new Set(now).size === now.length)(`+rows+`)`)
	tab.Run("open whom this one follows", `document.querySelector(".tabs a[href$='/following']").click()`)
	tab.Until("all of them, as one scrolls", fmt.Sprintf(`(scrollTo(0, 1e9), %s.length === %d && !document.querySelector(".failure"))`, rows, one.FollowingCount))
}

// missedEvents ends a subscription as the gateway does when its client falls behind, and then cuts the connection off. The page goes on.
func missedEvents(t *testing.T, s site) {
	handle, _ := s.handle(t, 611)
	says := func(text string) {
		t.Helper()
		s.mutate(t, 611, `mutation($text: String!) { publishPost(text: $text, clientKey: $text) { changed } }`, map[string]any{"text": text}, nil)
	}
	s.mutate(t, 610, `mutation { follow(userId: 611) { changed } }`, nil, nil)
	tab := s.as(610, "/u/"+handle)
	tab.Until("the profile", `document.querySelector(".head-actions .follow")`)
	tab.Run("note subscriptions", `
		const send = WebSocket.prototype.send;
		window.feeds = [];
		WebSocket.prototype.send = function (text) {
			const { id, type, payload } = JSON.parse(text);
			window.line = this;
			send.call(this, text);
			if (type === "subscribe" && payload.query.includes("postAdded")) feeds.push(id);
		}`)
	tab.Press("Home")
	tab.Until("the feed is live", `feeds.length === 1`)
	tab.Run("fall behind", `line.onmessage({ data: JSON.stringify({ id: feeds[0], type: "error", payload: [{ message: "too much", extensions: { code: "UNAVAILABLE", reason: "FELL_BEHIND", retryable: true } }] }) })`)
	tab.Until("it subscribes again", `feeds.length === 2`)
	tab.Run("a shard is away", `for (const message of [
		{ type: "next", payload: { data: null, errors: [{ message: "away", extensions: { code: "UNAVAILABLE", reason: "UNREACHABLE", retryable: true } }] } },
		{ type: "complete" },
	]) line.onmessage({ data: JSON.stringify({ id: feeds[1], ...message }) })`)
	tab.Until("it subscribes again", `feeds.length === 3`)
	s.Until(t, "tell of a post", func() bool {
		says("told-" + time.Now().Format("150405.000"))
		return strings.Contains(tab.Text(`document.body.innerText`), " new post")
	})
	tab.Run("many at once", `for (let i = 0; i < 20; i++) line.onmessage({ data: JSON.stringify({ id: feeds[2], type: "next", payload: { data: { postAdded: { __typename: "PostAdded", edge: null } } } }) })`)
	tab.Until("each is counted", `parseInt(document.querySelector(".button.wide")?.textContent) > 20`)
	tab.Run("hear nothing", `line.onmessage = () => {}`)
	says("missed-while-away")
	tab.Run("cut off, and slow to subscribe again", `
		const sends = WebSocket.prototype.send;
		window.later = [];
		WebSocket.prototype.send = function (text) {
			if (JSON.parse(text).type === "subscribe") later.push(() => sends.call(this, text));
			else sends.call(this, text);
		}
		line.close();`)
	tab.Until("it is connected", `later.length > 2`)
	says("missed-while-subscribing")
	tab.Run("subscribe", `for (const go of later) go()`)
	tab.Sees("missed-while-away")
	tab.Sees("missed-while-subscribing")
}

func requests(t *testing.T, s site) {
	_, mine := s.handle(t, 400)
	yours, name := s.handle(t, 500)
	a := s.as(400, "/u/"+yours)
	b := s.as(500, "/requests")
	b.Sees("No friend requests.")
	s.subscribed(t, 3+2)
	picks(a, name, "Ask to be friends")
	a.Type("dialog textarea", "We met on the train")
	a.Press("Send request")
	a.Sees("You asked to be friends.")
	b.Sees(mine + " wants to be friends.")
	b.Sees("We met on the train")
	b.Until("one is counted", waiting+` === "1"`)
	picks(a, name, "Withdraw request")
	b.Sees("No friend requests.")
	picks(a, name, "Ask to be friends")
	a.Press("Send request")
	b.Press("Accept " + mine)
	a.Sees(name + " accepted your friend request.")
	a.Until("they are friends", `document.querySelector(".head-actions .follow").textContent === "Friends"`)
	b.Sees("No friend requests.")

	rows := `document.querySelectorAll(".row[data-user]").length`
	for _, from := range []int{403, 404} {
		s.does(t, from, "requestFriend", 500)
	}
	b.Until("two wait", rows+" === 2")
	first := b.Text(`document.querySelector(".row .name").textContent`)
	b.DoubleClick(".row-actions .primary")
	b.Sees("You and " + first + " are now friends.")
	b.Until("the other one waits", rows+` === 1 && `+waiting+` === "1"`)
}

func activity(t *testing.T, s site) {
	const me, fan, other = 420, 421, 422
	_, name := s.handle(t, fan)
	_, another := s.handle(t, other)
	badge := `document.querySelector("nav [href$='/activity'] .count")`
	first := fmt.Sprintf(`document.querySelector(".group")?.innerText.includes(%q)`, name)
	tab := s.as(me, "/activity")
	tab.Until("what happened before is there, and seen", `document.querySelector(".group") && !`+badge)
	tab.Press("Home")
	s.subscribed(t, 3)
	s.does(t, fan, "follow", me)
	tab.Sees(name + " now follows you.")
	tab.Until("the badge has risen", badge+`?.textContent === "1"`)
	tab.Press("Show")
	tab.Until("the page has it first, and the badge is gone", `location.pathname === "/app/activity" && `+first+` && !`+badge)
	tab.Go(s.browser, "/app/")
	tab.Until("it is gone for good", `document.querySelector(".post") && !`+badge)
	tab.Press("Activity")
	tab.Until("the page", first)
	s.does(t, other, "follow", me)
	tab.Until("it grows while it is open", fmt.Sprintf(`document.querySelector(".group").innerText.includes(%q) && !`, another)+badge)
	s.does(t, fan, "requestFriend", me)
	tab.Until("another comes while the page is open", `document.querySelector(".group a[href$='/requests']") && `+waiting+` === "1" && !`+badge)
	s.does(t, me, "block", fan)
	tab.Go(s.browser, "/app/activity")
	tab.Until("a blocked person has done nothing", fmt.Sprintf(`document.querySelector(".group") && !document.querySelector("main").innerText.includes(%q)`, name))
	tab.Run("almost an hour passes", `{ const at = Date.parse(document.querySelector(".group time").dateTime); Date.now = () => at + 3_599_000 }`)
	tab.Press("Home")
	tab.Press("Activity")
	tab.Until("it is not an hour yet", `document.querySelector(".group time")?.textContent === "59 minutes ago"`)
}

func keyboard(t *testing.T, s site) {
	tab := s.as(8, "/")
	tab.Until("the feed", `document.querySelector(".post, .empty")`)
	tab.Keys(kb.Tab)
	tab.Until("the skip link first", `document.activeElement.className === "skip"`)
	tab.Keys(kb.Tab + kb.Tab)
	tab.Until("the search", `document.activeElement.getAttribute("role") === "combobox"`)
	tab.Keys("an")
	found := `document.querySelector("[role=listbox]").ariaBusy === "false" && document.querySelectorAll("[role=option]").length > 1`
	tab.Until("people are found", found)
	tab.Run("meddle", meddle)
	tab.Run("late answers", `hold = '"text":"anxzq"'`) // whoever types slowly asks for the beginnings, too
	tab.Keys("xzq" + kb.Enter)
	check.Equal(t, "Enter before the answer is there leads to", tab.Text(`location.pathname + " " + document.activeElement.value`), "/app/ anxzq")
	tab.Until("it is asked", `held.length === 1`)
	tab.Run("let it go", `hold = ""; held.pop()()`)
	tab.Sees("No one found.")
	tab.Run("another text, late answers", `document.activeElement.select(); hold = "query Search"`) // of which nothing has been read yet
	tab.Keys("mateo" + kb.ArrowDown)
	tab.Run("let all go", `hold = ""; for (const go of held.splice(0)) go()`)
	tab.Until("people are found", found)
	tab.Until("the first is chosen, though nobody was found when the key was pressed", `document.querySelectorAll("[role=option]")[0].ariaSelected === "true"`)
	tab.Keys(kb.ArrowDown)
	tab.Until("the second is chosen", `document.querySelectorAll("[role=option]")[1].ariaSelected === "true"`)
	tab.Run("Enter that ends the input of a character", `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", isComposing: true, bubbles: true}))`)
	check.Equal(t, "Enter that ends the input of a character leads to", tab.Text(`location.pathname`), "/app/")
	tab.Keys(kb.ArrowUp + kb.Enter)
	tab.Until("it opens", `location.pathname.startsWith("/app/u/mateo") && document.querySelector("h1")`)
	tab.Until("the heading has the focus", `document.activeElement.tagName === "H1"`)
	tab.Keys(kb.Tab)
	tab.Until("the next is a link or a button", `["A", "BUTTON"].includes(document.activeElement.tagName)`)
	const menu = `document.querySelector(".head-actions .menu-button")`
	tab.Run("to the menu", menu+`.focus()`)
	back := menu + ` === document.activeElement && !document.querySelector("dialog, :popover-open")`
	tab.Keys(kb.Enter)
	tab.Until("it is open", `document.querySelector(":popover-open button")`)
	tab.Keys(kb.Tab)
	tab.Until("its first item has the focus", `document.activeElement.matches(":popover-open > :first-child")`)
	tab.Keys(kb.Escape)
	tab.Until("it is closed, and its button has the focus again", back)
	for _, c := range []struct{ open, end string }{{"Block", ""}, {"Block", "Cancel"}, {"Mute", "Mute"}, {"Muted", "Unmute"}} {
		tab.Keys(kb.Enter)
		tab.Until("the item", fmt.Sprintf(`[...document.querySelectorAll(":popover-open > *")].some(e => e.textContent === %q && (e.focus(), true))`, c.open))
		tab.Keys(kb.Enter)
		tab.Until("the dialog has the focus", `document.querySelector("dialog[open]")?.contains(document.activeElement)`)
		if c.end == "" {
			tab.Keys(kb.Escape)
		} else {
			tab.Run("to the dialog's button", fmt.Sprintf(`[...document.querySelectorAll("dialog .bar button")].find(e => e.textContent === %q).focus()`, c.end))
			tab.Keys(kb.Enter)
		}
		tab.Until("the menu's button has the focus again", back)
	}

	tab.Run("late answers", `hold = "query Profile"`)
	shows(tab, "/u/maya_okafor")
	tab.Until("it is asked", `held.length === 1`)
	tab.Run("to the search", `document.querySelector("[role=combobox]").focus()`)
	tab.Keys("to")
	tab.Run("let it go", `hold = ""; held.pop()()`)
	tab.Until("the profile", `document.querySelector("h1")?.textContent === "Maya Okafor"`)
	tab.Run("a moment later", `await new Promise(requestAnimationFrame); await new Promise(requestAnimationFrame)`)
	tab.Keys("m")
	tab.Until("the search keeps the focus", `document.querySelector("[role=combobox]").value === "tom"`)

	mine, _ := s.handle(t, 8)
	own := `document.querySelector(".me .who").ariaCurrent`
	shows(tab, "/u/"+mine+"/friends")
	tab.Until("one's own profile is the page", own+` === "page"`)
	shows(tab, "/u/"+mine+"_x")
	tab.Until("that of a longer handle is not", own+` === null && document.querySelector("h1")?.textContent.startsWith("@")`)
}

// shows leads to another path without loading the page again.
func shows(tab *webtest.Tab, path string) {
	tab.Helper()
	tab.Run("show "+path, fmt.Sprintf(`history.pushState(null, "", "/app%s"); dispatchEvent(new PopStateEvent("popstate"))`, path))
}

// troubles cuts pages off from the gateway: they say so, and ask again when they are told to. What is being sent is not sent twice.
func troubles(t *testing.T, s site) {
	const cutOff = "The server can’t be reached."
	visitor := s.browser.Tab("/app/")
	visitor.Until("users of the demo graph", `document.querySelectorAll(".demo-users li").length === 12`)
	visitor.Run("meddle", meddle)
	visitor.Run("cut off", `cut = "query DemoUsers"; Math.random = () => 0.5`) // others, and not the same by chance
	visitor.Press("Show others")
	visitor.Sees(cutOff)
	visitor.Run("end of the trouble", `cut = ""`)
	visitor.Press("Try again")
	visitor.Until("they are there", `document.querySelectorAll(".demo-users li").length === 12`)

	tab := s.as(880, "/")
	tab.Until("the feed", `document.querySelector(".post, .empty")`)
	tab.Run("meddle", meddle)
	tab.Run("late answers", `hold = "mutation Publish"`)
	tab.Type("textarea", "Only once")
	tab.Press("Post")
	tab.Until("it is being sent", `held.length === 1 && document.querySelector(".composer .primary").disabled`)
	tab.Type("textarea", "This would be lost")
	tab.Until("nothing is typed meanwhile", `document.querySelector("textarea").value === "Only once"`)
	tab.Run("let it go", `hold = ""; held.pop()()`)
	tab.Sees("Posted.")
	tab.Until("the next one can be written", `document.querySelector("textarea").value === ""`)

	// What was posted though its answer was lost is not posted twice, but what is written anew is.
	tab.Run("lose answers", `
		const answered = window.fetch;
		window.lost = 0;
		window.fetch = async (...all) => {
			const answer = await answered(...all);
			if (window.lose && all[1]?.body?.includes("mutation Publish")) throw new TypeError("lost " + ++lost);
			return answer;
		}`)
	for i, text := range []string{"Once more", "A tpyo"} {
		tab.Run("lose the answer", `lose = true`)
		tab.Type("textarea", text)
		tab.Press("Post")
		tab.Until("it is lost", fmt.Sprintf(`lost === %d && !document.querySelector("textarea").readOnly`, i+1))
		tab.Run("find the next answer", `lose = false`)
		if i == 1 {
			tab.Type("textarea", ", mended")
		}
		tab.Press("Post")
		tab.Until("it is posted", `document.querySelector("textarea").value === ""`)
	}
	mine, _ := s.handle(t, 880)
	tab.Go(s.browser, "/app/u/"+mine)
	tab.Sees("A tpyo, mended")
	n := tab.Text(`String([...document.querySelectorAll(".post .text")].filter(e => e.textContent === "Once more").length)`)
	check.That(t, n == "1", "what was sent twice was posted %s times", n)
	tab.Go(s.browser, "/app/")
	tab.Until("the feed", `document.querySelector(".post, .empty")`)
	tab.Run("meddle", meddle)

	tab.Run("cut off", `cut = "query TwoPeople"`)
	shows(tab, "/common/maya_okafor/mateo_silva")
	tab.Sees(cutOff)
	tab.Run("end of the trouble", `cut = ""`)
	tab.Press("Try again")
	tab.Until("it is there", `document.querySelector("h1")?.textContent === "In common"`)

	early := s.as(881, "/")
	early.Forgives("WebSocket")
	early.Begins(`
		const [ask, Socket] = [window.fetch, window.WebSocket];
		window.isDown = true;
		window.fetch = (...all) => (isDown ? Promise.reject(new TypeError("down")) : ask(...all));
		window.WebSocket = class extends Socket { constructor(at, ...all) { super(isDown ? at + "/none" : at, ...all) } }`)
	early.Go(s.browser, "/app/u/maya_okafor")
	early.Sees(cutOff)
	early.Run("the gateway is back", `isDown = false`)
	early.Until("the page is there without being told", `document.querySelector("h1")?.textContent === "Maya Okafor"`)

	stranger := s.browser.Tab("/app/u/%FF") // no text
	stranger.Sees("There is no account with this handle.")

	stranger.Go(s.browser, "/app/u/mateo_silva")
	stranger.Press("Follow: Mateo Silva")
	stranger.Until("it is asked who this is", `document.querySelector("dialog[open]")`)
	shows(stranger, "/u/maya_okafor")
	stranger.Until("another page asks nothing", `document.querySelector("h1")?.textContent === "Maya Okafor" && !document.querySelector("dialog")`)

	tab.Go(s.browser, "/app/post/1") // the id of a user
	tab.Until("no post", isEmptyAs("This post was deleted, or you can’t see it."))
}
