package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/webtest"
)

const secret = "the secret of the tests of the app"

// TestRelationsInTheApp has what people do with one another besides following, and what each page says about it.
func TestRelationsInTheApp(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t, "--jwt-secret", secret)
	t.Run("locked", func(t *testing.T) { locked(t, s.in(t)) })
	t.Run("blocked", func(t *testing.T) { blocked(t, s.in(t)) })
	s.each(t, map[string]func(*testing.T, site){
		"mutes":           mutes,
		"dismissals":      dismissals,
		"posts":           posts,
		"texts counted":   counted,
		"texts found":     found,
		"similar, since":  similar,
		"suspended":       suspended,
		"nobody, nothing": empties,
	})
}

// publish writes a post of a demo user.
func (s site) publish(t *testing.T, user int, text string) {
	t.Helper()
	s.mutate(t, user, `mutation($text: String!) { publishPost(text: $text, clientKey: "first") { changed } }`, map[string]any{"text": text}, nil)
}

// isEmptyAs is whether the page shows this in place of a list.
func isEmptyAs(of string) string {
	return fmt.Sprintf(`document.querySelector(".empty-title")?.textContent === %q`, of)
}

// locked has a user approve one follower and decline another.
func locked(t *testing.T, s site) {
	mine, name := s.handle(t, 810)
	_, fan := s.handle(t, 811)
	_, other := s.handle(t, 812)
	s.publish(t, 810, "For my followers")
	a := s.as(810, "/settings")
	a.Until("the form", `document.querySelector("input[name=locked]")`)
	a.Run("approve followers", `document.querySelector("input[name=locked]").click()`)
	a.Press("Save privacy")
	a.Sees("Saved.")
	b := s.as(811, "/u/"+mine)
	b.Until("it is said why there are no posts", isEmptyAs("Only people "+name+" has approved can see this."))
	s.subscribed(t, 2+3)
	b.Press("Request to follow: " + name)
	b.Sees("Request sent to " + name + ".")
	button := `document.querySelector(".head-actions .follow")?.textContent`
	b.Until("the button waits", button+` === "Requested"`)
	a.Sees(fan + " asked to follow you.")
	a.Until("one is counted", waiting+` === "1"`)
	s.does(t, 812, "follow", 810)
	a.Go(s.browser, "/app/requests")
	a.Until("the page begins where two wait", `document.querySelector(".tabs [aria-pressed=true]").textContent === "Follow requests" && document.querySelector(".tabs [data-waiting='2']")`)
	a.Press("Do not let " + other + " follow you")
	a.Sees("Request declined.")
	a.Press("Let " + fan + " follow you")
	a.Sees("Request accepted.")
	a.Until("nobody waits", isEmptyAs("No follow requests.")+` && !`+waiting)
	b.Until("the button follows, and the posts are there", button+` === "Following" && document.querySelector(".post")`)
	b.Press("Following: " + name)
	b.Sees("To follow " + name + " again, you’ll need their approval.")
	b.Press("Unfollow")
	b.Until("it is over", button+` === "Request to follow"`)
	b.Press("Request to follow: " + name)
	b.Until("it waits again", button+` === "Requested"`)
	b.Press("Requests")
	b.Press("Follow requests sent")
	b.Press("Withdraw the request to " + name)
	b.Until("the request is withdrawn", isEmptyAs("You haven’t sent any follow requests."))

	c := s.as(813, "/start")
	last := `document.querySelector(".choices li:last-child `
	c.Until("people to choose from", `document.querySelectorAll(".choices li").length > 5`)
	var third int
	_, err := fmt.Sscanf(c.Text(`new URL(`+last+`img").src).pathname`), "/faces/%d.svg", &third)
	must.OK(t, err)
	s.mutate(t, third, `mutation { updateProfile(locked: true) { viewer { id } } }`, nil, nil)
	c.Run("choose two", last+`input").click(); document.querySelector(".choices input").click()`)
	c.Press("Follow 2 people")
	c.Sees("You now follow 1 more person. 1 has to approve you.")
}

func mutes(t *testing.T, s site) {
	handle, name := s.handle(t, 820)
	a := s.as(821, "/u/"+handle)
	picks(a, name, "Mute")
	a.Until("the dialog", `document.querySelector("dialog[open]")`)
	a.Run("posts, for a week", `document.querySelector("dialog [name=scope]").value = "POSTS"; document.querySelector("dialog [name=days]").value = "7"`)
	a.Run("mute", `document.querySelector("dialog .primary").click()`)
	a.Sees("You muted " + name + ".")
	a.Sees("You muted their posts until ")
	a.Press("Settings")
	a.Press("Muted people")
	a.Until("none of everything", isEmptyAs("You haven’t muted anyone."))
	a.Press("Posts only")
	a.Until("it is listed with its end", `/until [A-Z][a-z]+ \d+, \d{4}/.test(document.querySelector(".row[data-user=`+handle+`]")?.innerText)`)
	a.Press("Unmute: " + name)
	a.Until("it is gone", isEmptyAs("You haven’t muted anyone."))
}

// blocked watches the profile of somebody who blocks and unblocks the viewer.
func blocked(t *testing.T, s site) {
	handle, name := s.handle(t, 830)
	s.publish(t, 830, "Good morning")
	s.does(t, 831, "follow", 830)
	a := s.as(831, "/u/"+handle)
	a.Until("all posts, as one scrolls", `(scrollTo(0, 1e9), document.querySelectorAll(".post").length === `+count("posts")+`)`)
	before := a.Text(`String(` + count("followers") + `)`)
	s.subscribed(t, 3)
	s.does(t, 830, "block", 831)
	a.Until("the page says so, and nothing else", isEmptyAs(name+" blocked you.")+` && document.querySelectorAll(".empty").length === 1`)
	a.Until("a follower less", count("followers")+" === "+before+" - 1")
	shows(a, "/u/"+handle+"/following")
	a.Until("so does a list", isEmptyAs(name+" blocked you."))
	a.Press("More: " + name)
	a.Until("nothing is offered that would be refused", `!document.querySelector(".head-actions .follow, .tabs a") && [...document.querySelectorAll(":popover-open > *")].map(e => e.textContent.split(" ")[0]).join() === "Mute,Block,Be"`)
	b := s.as(831, "/picture/830")
	b.Until("the network is closed", isEmptyAs("You can’t see who "+name+" follows."))
	b.Until("nothing else is offered", `!document.querySelector("main .follow, main canvas, main svg.drawing, .failure, .stage")`)
	s.does(t, 830, "unblock", 831)
	a.Until("the list is back", `document.querySelector(".row[data-user]")`)
}

func dismissals(_ *testing.T, s site) {
	tab := s.as(2, "/suggestions")
	tab.Until("people", `document.querySelectorAll(".row[data-user]").length > 5`)
	name := tab.Text(`document.querySelector(".row .name").textContent`)
	first := fmt.Sprintf(`[...document.querySelectorAll(".row .name")].some(e => e.textContent === %q)`, name)
	tab.Press("Do not suggest " + name)
	tab.Sees(name + " won’t be suggested to you for now.")
	tab.Until("it is gone", "!"+first)
	tab.Press("Undo")
	tab.Until("it is back", first)
	tab.Press("Do not suggest " + name)
	tab.Sees(name + " won’t be suggested to you for now.")
	tab.Press("Settings")
	tab.Press("Dismissed suggestions")
	tab.Press("Suggest again: " + name)
	tab.Until("nobody is left out", isEmptyAs("You haven’t dismissed anyone."))
}

// endsLeft is whether the text that a selector finds, and that ends with an exclamation mark, has it on its left.
func endsLeft(selector string) string {
	return fmt.Sprintf(`(text => {
		const at = i => { const one = new Range(); one.setStart(text, i); one.setEnd(text, i + 1); return one.getBoundingClientRect().left; };
		return text && at(text.length - 1) < at(0);
	})([...document.querySelectorAll(%q)].find(e => e.textContent.endsWith("!"))?.firstChild)`, selector)
}

const updateProfile = `mutation($name: String, $bio: String!) { updateProfile(name: $name, bio: $bio) { changed } }`

// counted has texts as long as Kith takes them, which counts characters.
func counted(t *testing.T, s site) {
	handle, _ := s.handle(t, 888)
	s.mutate(t, 888, updateProfile, map[string]any{"bio": strings.Repeat("👍", 400)}, nil)
	tab := s.as(888, "/settings")
	tab.Until("the form", `document.querySelector("textarea[name=bio]")`)
	tab.Type("textarea[name=bio]", strings.Repeat("x", 102))
	tab.Until("what is too long is said", `document.querySelector("textarea[name=bio]").validationMessage === "2 characters too many."`)
	tab.Run("shorten it", `document.querySelector("textarea[name=bio]").setSelectionRange(0, 4); document.execCommand("delete")`)
	tab.Press("Save profile")
	tab.Sees("Saved.")
	shows(tab, "/u/"+handle)
	tab.Until("the profile has it", `document.querySelector(".head-text").innerText.includes("xxx")`)
	shows(tab, "/")
	tab.Until("the composer", `document.querySelector(".composer textarea")`)
	paste := func(n int) string {
		return fmt.Sprintf(`document.querySelector(".composer textarea").focus(); document.execCommand("insertText", false, "👍".repeat(%d))`, n)
	}
	tab.Run("write much", paste(1500))
	tab.Until("characters are counted", `document.querySelector(".composer small").textContent === "500 left"`)
	tab.Run("write too much", paste(501))
	tab.Until("that is not sent", `document.querySelector(".composer small").textContent === "-1 left" && document.querySelector(".composer .primary").disabled`)
}

// found has a list search names as Kith does, and bios written from the side where their text begins.
func found(t *testing.T, s site) {
	handle, _ := s.handle(t, 889)
	s.mutate(t, 889, updateProfile, map[string]any{"name": "Łukasz Øster", "bio": "مرحبا!"}, nil)
	s.does(t, 890, "block", 889)
	tab := s.as(890, "/blocked")
	tab.Until("the person", fmt.Sprintf(`document.querySelector(".row")?.dataset.user === %q`, handle))
	check.That(t, strings.Contains(tab.Text(`String(`+endsLeft(".row .note-line")+`)`), "true"), "Arabic in a row does not end on the left")
	visitor := s.browser.Tab("/app/u/" + handle)
	visitor.Sees("Łukasz Øster")
	check.That(t, strings.Contains(visitor.Text(`String(`+endsLeft(".head-text p")+`)`), "true"), "Arabic on a profile does not end on the left")
	tab.Type(`input[type="search"]`, "lukasz oster")
	tab.Until("the person is found", fmt.Sprintf(`document.querySelector("input[type=search]").value.endsWith("r") && document.querySelector(".row")?.dataset.user === %q`, handle))
}

func posts(t *testing.T, s site) {
	handle, name := s.handle(t, 840)
	s.mutate(t, 840, `mutation { publishPost(text: "مرحبا!", clientKey: "leftwards") { changed } }`, nil, nil)
	s.publish(t, 840, "A post with an address")
	tab := s.as(840, "/u/"+handle)
	tab.Until("the posts", `document.querySelector(".post")`)
	tab.Until("Arabic ends on the left", endsLeft(".post .text"))
	tab.Run("open the first", `document.querySelector(".post header a[href*='/post/']").click()`)
	tab.Until("it is alone, with its comments", `document.querySelectorAll(".post").length === 1 && document.querySelector(".comments") && document.title.startsWith("Post by ")`)
	path := tab.Text(`location.pathname`)
	visitor := s.browser.Tab(path)
	visitor.Sees("A post with an address")
	visitor.Run("a clock that is slow", `const now = Date.now; Date.now = () => now() - 600_000`)
	shows(visitor, "/u/"+handle)
	visitor.Until("its post is of now", `document.querySelector(".post time")?.textContent === "just now"`)
	shows(visitor, strings.TrimPrefix(path, "/app"))
	visitor.Sees(name)
	reader := s.as(841, "/u/"+handle)
	picks(reader, "the post by "+name, "Mute posts of "+name)
	reader.Sees("You muted the posts of " + name + ".")
	reader.Until("the head says so", `document.querySelector(".head").innerText.includes("You muted their posts.")`)
	reader.Press("Undo")
	reader.Until("and no more", `!document.querySelector(".head").innerText.includes("You muted")`)
	for _, of := range []string{"the post by " + name, name} {
		picks(reader, of, "Report")
		reader.Type("dialog textarea", "It sells something")
		reader.Press("Send report")
		reader.Sees("Reported. The operators will read it.")
		reader.Until("the dialog is closed", `!document.querySelector("dialog")`)
	}
	picks(reader, "the post by "+name, "Copy link")
	reader.Until("the link is copied, or shown", `/Link copied|app\/post\//.test(document.querySelector(".notes").innerText)`)
	picks(tab, "the post by "+name, "Delete this post")
	tab.Until("home again", `location.pathname === "/app/"`)
	visitor.Go(s.browser, path)
	visitor.Until("it is gone", isEmptyAs("This post was deleted, or you can’t see it."))
}

// similar has the profile say when the follow began, and when the first one did, which this test makes earlier, and the exact count
// of followers, which it makes greater.
func similar(_ *testing.T, s site) {
	tab := s.as(3, "/")
	tab.Until("the feed", `document.querySelector(".post, .empty")`)
	tab.Run("an earlier follow", `
		const send = window.fetch;
		window.fetch = async (...all) => {
			const answer = await send(...all);
			const text = (await answer.text()).replace(/"firstFollowedAt":"\d+/, '"firstFollowedAt":"2001').replace(/"followerCount":\d+/g, '"followerCount":12345');
			return new Response(text, answer);
		};
		history.pushState(null, "", "/app/u/maya_okafor"); dispatchEvent(new PopStateEvent("popstate"))`)
	tab.Until("the profile", `document.querySelector(".head-actions .follow")`)
	tab.Run("follow", `const b = document.querySelector(".head-actions .follow"); b.dataset.following === "true" || b.click()`)
	tab.Until("since when", `/Following since [A-Z][a-z]+ \d+, \d{4}, for the first time on [A-Z][a-z]+ \d+, 2001/.test(document.querySelector(".head").innerText)`)
	tab.Until("the exact count", `document.querySelector(".tabs a[href$='/followers'] [title='12,345']")?.textContent === "12.3K"`)
	tab.Press("Similar")
	tab.Until("people alike", `document.querySelectorAll(".row[data-user]").length > 2`)
}

// suspended has an operator suspend the viewer.
func suspended(t *testing.T, s site) {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"sub": "9", "scope": "admin", "exp": time.Now().Add(time.Hour).Unix()}).SignedString([]byte(secret))
	must.OK(t, err)
	handle, name := s.handle(t, 851)
	tab := s.as(850, "/u/"+handle)
	tab.Until("the profile", `document.querySelector(".head-actions .follow")`)
	question, err := json.Marshal(map[string]any{"query": `mutation { suspendUser(userId: 850, reason: "advertising: too much", until: "2030-01-02T03:04:05Z") { changed } }`})
	must.OK(t, err)
	var answer struct{ Data, Errors any }
	post(t, s.URL+"/graphql", token, question, &answer)
	must.That(t, answer.Errors == nil, "%v", answer.Errors)
	tab.Press("Follow: " + name)
	tab.Sees("Your account is suspended until January 2, 2030")
	tab.Sees("Reason: advertising: too much.")
	tab.Run("count answers", `
		const send = window.fetch;
		window.answers = 0;
		window.fetch = async (...all) => {
			const answer = await send(...all);
			if (all[1]?.body?.includes("mutation RenewToken")) window.answers++;
			return answer;
		}`)
	tab.Run("time to renew", due)
	tab.Run("the page is used", `dispatchEvent(new KeyboardEvent("keydown", {key: "Shift"}))`)
	tab.Until("the token is not renewed now", `answers === 1`)
	tab.Run("it had its turn", `await navigator.locks.request("kith-session", () => {})`)
	check.Equal(t, "when the token is renewed", tab.Text(`String(JSON.parse(localStorage.getItem("kith-session")).renewAt)`), "0")
	tab.Go(s.browser, "/app/settings")
	tab.Sees("Other people can’t see your profile or posts.")
	check.Lacks(t, "the page of a suspended user", tab.Text(`document.querySelector("main").textContent`), "Show my account again")
}

// newcomer is somebody who has registered and follows nobody.
func (s site) newcomer() *webtest.Tab {
	tab := s.browser.Tab("/app/")
	tab.Press("Register")
	tab.Type(`input[name="name"]`, "Ines Novak")
	tab.Type(`input[name="handle"]`, "ines_novak_empty")
	tab.Type(`input[name="password"]`, "correct horse battery")
	tab.Press("Create an account")
	tab.Press("Not now")
	tab.Sees("You don’t follow anyone yet.")
	return tab
}

// empties reads the pages of somebody who follows many people who have posted nothing, and of somebody who follows nobody.
func empties(t *testing.T, s site) {
	tab := s.newcomer()
	tab.Press("Activity")
	tab.Sees("Nothing has happened yet.")
	handle, name := s.handle(t, 860)
	var answer struct {
		User struct {
			Posts struct{ Nodes []struct{ ID string } }
		}
	}
	s.Query(t, `{ user(by: {id: 860}) { posts(first: 100) { nodes { id } } } }`, nil, &answer)
	for _, p := range answer.User.Posts.Nodes {
		s.mutate(t, 860, `mutation($id: ID!) { deletePost(postId: $id) { changed } }`, map[string]any{"id": p.ID}, nil)
	}
	tab.Go(s.browser, "/app/u/"+handle)
	tab.Press("Follow: " + name)
	tab.Until("followed", `document.querySelector(".head-actions .follow").textContent === "Following"`)
	tab.Press("Kith, home")
	tab.Sees("No posts yet from the people you follow.")
}

func keepsOut(t *testing.T, s site) {
	mine, _ := s.handle(t, 600)
	yours, name := s.handle(t, 700)
	a := s.as(600, "/u/"+yours)
	a.Press("Follow: " + name)
	picks(a, name, "Mark")
	a.Run("special", `document.querySelector("dialog input[type=checkbox]").click()`)
	a.Type("dialog input[name=remark]", "knows the good trains")
	a.Press("Save")
	a.Sees("knows the good trains")
	a.Press("Lists")
	a.Press("Marked")
	a.Until("the mark is listed", fmt.Sprintf(`document.querySelector(".row[data-user=%s]")?.innerText.includes("knows the good trains")`, yours))

	a.Go(s.browser, "/app/u/"+yours)
	picks(a, name, "Block")
	a.Until("the dialog", `document.querySelector("dialog[open] .danger")`)
	a.Run("block", `document.querySelector("dialog[open] .danger").click()`)
	a.Until("it is made", told("You blocked "+name+"."))
	a.Until("the page says why it is empty", fmt.Sprintf(`document.querySelector(".empty-title")?.textContent === %q`, "You blocked "+name+"."))
	a.Go(s.browser, "/app/blocked")
	a.Press("Unblock: " + name)
	a.Sees("You haven’t blocked anyone.")

	a.Press("Settings")
	a.Until("the form", `document.querySelector("select[name=followers]")`)
	s.mutate(t, 600, `mutation { updateProfile(listVisibility: {followings: FOLLOWERS}, discoverable: false) { viewer { id } } }`, nil, nil) // in another tab
	a.Run("choose", `const s = document.querySelector("select[name=followers]"); s.value = "NOBODY"`)
	a.Press("Save privacy")
	a.Sees("Saved.")
	var saved struct {
		User struct {
			ListVisibility struct{ Followings, Followers string }
		}
	}
	s.Query(t, `{ user(by: {id: 600}) { listVisibility { followings followers } } }`, nil, &saved)
	if saved.User.ListVisibility.Followings != "FOLLOWERS" || saved.User.ListVisibility.Followers != "NOBODY" {
		t.Errorf("after two tabs have changed something each, it is %+v", saved)
	}
	a.Run("change one's mind", `document.querySelector("select[name=followers]").value = "EVERYONE"`)
	a.Press("Save privacy")
	s.Until(t, "take it back", func() bool {
		s.Query(t, `{ user(by: {id: 600}) { listVisibility { followers } } }`, nil, &saved)
		return saved.User.ListVisibility.Followers == "EVERYONE"
	})
	a.Run("choose again", `document.querySelector("select[name=followers]").value = "NOBODY"`)
	a.Press("Save privacy")
	s.Until(t, "take that back", func() bool {
		s.Query(t, `{ user(by: {id: 600}) { listVisibility { followers } } }`, nil, &saved)
		return saved.User.ListVisibility.Followers == "NOBODY"
	})
	b := s.as(700, "/u/"+mine+"/followers")
	b.Sees("keeps this list private")
	a.Go(s.browser, "/app/u/"+mine+"/followers")
	a.Until("a sees its own list", `document.querySelector(".row[data-user], .empty")?.innerText.includes("private") === false`)
}
