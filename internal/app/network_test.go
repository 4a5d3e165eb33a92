package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/webtest"
)

// laid says that everybody in the drawing has a place.
const laid = `document.querySelector(".canvas")?.dataset.laid === "true" && document.querySelector(".node-face")`

// toldOf is what the page says of the network: how many people, and so on.
func toldOf(tab *webtest.Tab) string {
	return tab.Text(`document.querySelector(".picture-tools [role=status]").innerText`)
}

// tells waits until the page says something of the network.
func tells(tab *webtest.Tab, what string) {
	tab.Helper()
	tab.Until("the page tells "+what, fmt.Sprintf(`(" " + document.querySelector(".picture-tools [role=status]")?.innerText).includes(%q)`, " "+what))
}

// names are the people whose faces the drawing shows.
func names(t *testing.T, tab *webtest.Tab) (list []string) {
	t.Helper()
	text := tab.Text(`JSON.stringify([...document.querySelectorAll(".node-face span")].map(e => e.textContent))`)
	must.OK(t, json.Unmarshal([]byte(text), &list))
	return list
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	s := open(t)
	type person struct{ Name string }
	var answer struct {
		User struct {
			Name                                       string
			FollowingCount, FollowerCount, FriendCount int
			Friends                                    struct{ Nodes []person }
		}
		Known struct {
			FollowerCount, FriendCount int
		}
	}
	s.Query(t, `{
		user(by: {id: 1}) { name followingCount followerCount friendCount friends(first: 100) { nodes { name } } }
		known: user(by: {id: 1283}) { followerCount friendCount }
	}`, nil, &answer)
	maya := answer.User
	all := 1 + maya.FollowingCount + maya.FollowerCount - maya.FriendCount
	tab := s.as(1, "/picture")
	tab.Until("everybody is there", fmt.Sprintf(`document.querySelector(".canvas")?.dataset.nodes === "%d"`, all))
	tells(tab, fmt.Sprintf("%d people", all))
	tells(tab, fmt.Sprintf("%d followers", maya.FollowerCount))
	tab.Until("it is drawn", laid+` && document.querySelectorAll(".canvas canvas").length >= 5`)
	tab.Until("there are communities", `document.querySelectorAll(".legend button").length > 2`)

	tab.Until("those after whom communities are named have their names in the drawing", `[...document.querySelectorAll(".legend-name")].every(name =>
		[...document.querySelectorAll(".node-face.named span")].some(e => e.textContent === name.textContent))`)

	// The pointer is moved over somebody who has a face and no name, and away again.
	const move = `document.querySelector(".sigma-mouse").dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + at.x, clientY: box.top + at.y, bubbles: true}))`
	tab.Run("find somebody without a name", `
		window.box = document.querySelector(".canvas").getBoundingClientRect();
		const place = e => new DOMMatrix(getComputedStyle(e).transform);
		const amid = ({e: x, f: y}) => x > 90 && x < box.width - 90 && y > 40 && y < box.height - 40;
		window.hovered = [...document.querySelectorAll(".node-face:not(.named)")].find(e => amid(place(e)));
		window.at = {x: place(hovered).e, y: place(hovered).f}`)
	tab.Until("the name shows, as one points there", `(`+move+`, hovered.isConnected && hovered.classList.contains("named"))`)
	tab.Until("the name is gone, as one points elsewhere", `(at = {x: 2, y: 2}, `+move+`, !hovered.classList.contains("named"))`)

	tab.Press("Only friends")
	tells(tab, fmt.Sprintf("%d people", 1+maya.FriendCount))
	tab.Until("all others are gone from the drawing", `document.querySelectorAll(".node-face").length > 5`)
	for _, name := range names(t, tab) {
		check.That(t, name == maya.Name || slices.Contains(maya.Friends.Nodes, person{name}), "%s is in the drawing of mutual follows, and no friend", name)
	}
	tab.Press("Only friends")
	tab.Press("Followers")
	tells(tab, fmt.Sprintf("%d people", 1+maya.FollowingCount))
	tab.Press("Followers")
	tells(tab, fmt.Sprintf("%d people", all))

	tab.Run("choose a community", `document.querySelector(".legend button").click()`)
	tab.Until("its members are listed", `document.querySelector(".chosen h2").textContent === "In this community" && document.querySelectorAll(".chosen li").length > 2`)
	tab.Press("Mateo Silva")
	tab.Until("Mateo is chosen", `document.querySelector(".chosen .who b")?.textContent === "Mateo Silva"`)
	tab.Run("meddle", meddle)
	tab.Run("cut off", `cut = "query EdgesAmong"`)
	tab.Press("Add who they follow")
	tab.Sees("The server can’t be reached.")
	tab.Run("end of the trouble", `cut = ""`)
	tab.Press("Try again")
	tab.Until("there are more people", fmt.Sprintf(`document.querySelector(".canvas").dataset.nodes > %d`, all+10))
	tab.Run("late answers", `hold = "query Audience"`)
	tab.Press("Open network")
	tab.Until("nobody's network yet", `held.length === 1 && document.querySelector("h1").textContent === "Network"`)
	tab.Run("let it go", `hold = ""; held.pop()()`)
	tab.Sees("Mateo Silva’s network")
	tab.Press("Back to your network")
	tab.Sees("Your network")

	// Of many followers there are some, and it is told of how many.
	tab.Go(s.browser, "/app/picture/1283")
	tells(tab, fmt.Sprintf("of %d followers", answer.Known.FollowerCount))
	var people, follows, followers, of int
	if _, err := fmt.Sscanf(toldOf(tab), "%d people · %d,%d follows · %d of %d followers", &people, &follows, new(int), &followers, &of); err != nil {
		t.Fatalf("%q: %v", toldOf(tab), err)
	}
	if followers < 200 || followers > 200+answer.Known.FriendCount || of <= followers {
		t.Errorf("%q: want 200 followers, and friends beside them", toldOf(tab))
	}
}

// TestNetworkGrows adds two people at once to a network, before anybody in it has a place. Nobody is lost, and all get places.
func TestNetworkGrows(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t)
	const samir, first, second = 76, 867, 689
	var strangers []int // whom nothing but this follow draws to a place
	for id := 1500; id < 1540; id++ {
		strangers = append(strangers, id)
	}
	s.mutate(t, samir, `mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { changed } } }`, map[string]any{"ids": strangers}, nil)
	type list struct{ Nodes []struct{ ID string } }
	var answer struct {
		Samir         struct{ Followings, Followers list }
		First, Second struct{ Followings list }
	}
	s.Query(t, `query($samir: ID!, $first: ID!, $second: ID!) {
		samir: user(by: {id: $samir}) { followings(first: 100) { nodes { id } } followers(first: 100) { nodes { id } } }
		first: user(by: {id: $first}) { followings(first: 100) { nodes { id } } }
		second: user(by: {id: $second}) { followings(first: 100) { nodes { id } } }
	}`, map[string]any{"samir": samir, "first": first, "second": second}, &answer)
	all := map[string]bool{strconv.Itoa(samir): true}
	add := func(list list) (stranger string) {
		for _, one := range list.Nodes {
			if !all[one.ID] {
				stranger = one.ID
			}
			all[one.ID] = true
		}
		return stranger
	}
	add(answer.Samir.Followings)
	add(answer.Samir.Followers)
	circle := len(all)
	stranger := add(answer.First.Followings)
	add(answer.Second.Followings)

	tab := s.as(samir, "/settings")
	tab.Run("keep the tasks of workers", `
		window.Real = Worker;
		window.tasks = [];
		window.Worker = class extends Real {
			constructor(...all) {
				super(...all);
				this.addEventListener("message", ({data: {positions}}) => window.places = positions);
			}
			postMessage(...task) { tasks.push(() => super.postMessage(...task)) }
		}`)
	tab.Run("meddle", meddle)
	tab.Run("late answers", `hold = "query Audience"`)
	shows(tab, "/picture/2")
	tab.Until("who it is", `document.querySelector(".chosen .who b")?.textContent === "Mateo Silva"`)
	check.Lacks(t, "a network that is not there yet", tab.Text(`document.querySelector(".chosen .bar").innerText`), "Add who they follow")
	tab.Run("let it go", `hold = ""; held.pop()()`)
	tab.Until("it is there", `document.querySelector(".canvas").dataset.nodes > 100`)

	shows(tab, "/picture")
	people := func(n int) string { return fmt.Sprintf(`document.querySelector(".canvas")?.dataset.nodes === "%d"`, n) }
	tab.Until("the circle", people(circle))
	tab.Run("late answers", `hold = "query Circle"`)
	for i, user := range []int{first, second} {
		handle, name := s.handle(t, user)
		if i > 0 {
			tab.Press("Show everyone")
		}
		tab.Run("choose "+name, fmt.Sprintf(`document.querySelector("[data-node=%s]").click()`, handle))
		tab.Until("is chosen", fmt.Sprintf(`document.querySelector(".chosen .who b")?.textContent === %q`, name))
		tab.Press("Add who they follow")
	}
	tab.Until("it is asked", `held.length > 0`)
	tab.Run("let all go", `hold = ""; for (const go of held) go()`)
	tab.Until("those whom either follows are there", people(len(all)))
	tab.Run("let the last worker work", `tasks.at(-1)()`)
	tab.Until("it is laid out", laid)
	apart := tab.Text(`String(new Set(Array.from(places.subarray(0, places.length / 2), (_, i) => [places[2 * i], places[2 * i + 1]].join())).size)`)
	check.That(t, apart == strconv.Itoa(len(all)), "%d people have %s places", len(all), apart)

	// Whoever is followed meanwhile is there when one comes back.
	id, err := strconv.Atoi(stranger)
	must.OK(t, err)
	handle, name := s.handle(t, id)
	shows(tab, "/u/"+handle)
	tab.Press("Follow: " + name)
	tab.Until("the follow is made", fmt.Sprintf(`document.querySelector(".head-actions .follow")?.ariaLabel === %q`, "Following: "+name))
	s.Until(t, "the follow is written", func() bool {
		var now struct{ User struct{ FollowingCount int } }
		s.Query(t, `query($id: ID!) { user(by: {id: $id}) { followingCount } }`, map[string]any{"id": samir}, &now)
		return now.User.FollowingCount == len(answer.Samir.Followings.Nodes)+1
	})
	shows(tab, "/picture")
	tab.Until("one more", people(circle+1))

	shows(tab, "/settings")
	tab.Forgives("404 (Not Found)")
	tab.Run("the worker is of a version that is gone", `window.Worker = class extends Real { constructor() { super("/app/files/gone.js") } }`)
	shows(tab, "/picture")
	tab.Sees("The network couldn’t be drawn. Load this page again.")
}

// TestNetworkFits measures where the legend, the faces and the names of a network are, on a phone and on a desk.
func TestNetworkFits(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t)
	tab := s.as(1, "/")
	for _, size := range [][2]int64{{390, 844}, {1200, 760}} {
		for _, user := range []int{1, 1283} {
			tab.Looks(size[0], size[1], "light")
			tab.Go(s.browser, fmt.Sprintf("/app/picture/%d", user))
			tab.Until("it is laid out", laid)
			problems := tab.Text(`(() => {
				const shown = selector => [...document.querySelectorAll(selector)].filter(e => e.checkVisibility()).map(e => ({text: e.textContent || e.parentElement.textContent, of: e.closest(".node-face"), ...e.getBoundingClientRect().toJSON()}));
				const [names, faces, legend] = [shown(".node-face span"), shown(".node-face img"), shown(".legend button, .picture-tools label, .picture-tools [role=status]")];
				const canvas = document.querySelector(".canvas").getBoundingClientRect();
				const problems = [];
				const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
				const within = (a, box) => a.left >= box.left - 1 && a.right <= box.right + 1 && a.top >= box.top - 1 && a.bottom <= box.bottom + 1;
				const window = {left: 0, top: 0, right: innerWidth, bottom: innerHeight};
				if (names.length < 8 || faces.length < 12 || legend.length < 6) problems.push([names.length, "names", faces.length, "faces", legend.length, "entries"].join(" "));
				for (const one of legend) if (!within(one, window) || overlap(one, canvas)) problems.push(one.text + " is not in the window, or on the drawing");
				for (const one of [...names, ...faces]) if (!within(one, canvas)) problems.push(one.text + " is not in the drawing");
				const all = [...names, ...faces, ...legend];
				all.forEach((a, i) => all.slice(i + 1).forEach(b => overlap(a, b) && problems.push(a.text + " is on " + b.text)));
				for (const e of document.querySelectorAll(".legend-name")) if (e.scrollWidth > e.clientWidth + 1) problems.push(e.textContent + " is cut in the legend");
				const list = document.querySelector(".chosen ul"), row = list.querySelector("li").offsetHeight;
				if (list.scrollHeight > list.clientHeight && Math.abs(list.clientHeight / row - Math.round(list.clientHeight / row)) > 0.05) problems.push("a row of the list is cut");
				return problems.slice(0, 10).join("; ");
			})()`)
			check.That(t, problems == "", "user %d at %d × %d: %s", user, size[0], size[1], problems)
		}
	}

	tab.Go(s.browser, "/app/picture")
	tab.Until("it is laid out", laid)
	before := names(t, tab)
	tab.Run("look closer", `
		const {left, top, width, height} = document.querySelector(".canvas").getBoundingClientRect();
		document.querySelector(".sigma-mouse").dispatchEvent(new WheelEvent("wheel", {deltaY: -300, clientX: left + width / 2, clientY: top + height / 2, bubbles: true, cancelable: true}))`)
	tab.Until("there are others", fmt.Sprintf(`[...document.querySelectorAll(".node-face span")].some(e => !%s.includes(e.textContent))`, quoted(before)))
}

func quoted(list []string) string {
	text, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestNetworkLooksTheSame lays a network out twice.
func TestNetworkLooksTheSame(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t)
	var looks [2]string
	for i := range looks {
		tab := s.as(1, "/picture")
		tab.Until("it is laid out", laid)
		looks[i] = tab.Text(`[document.querySelector(".legend").innerText, ...[...document.querySelectorAll(".node-face")].map(e => e.textContent + " " + e.style.cssText).sort()].join("\n")`)
	}
	check.That(t, looks[0] == looks[1], "a network looks like\n%s\nand then like\n%s", looks[0], looks[1])
}

// mostUntilLaid is the time within which 1,200 people have their places. On two idle processors it is a second; the rest
// is for a machine five times slower that runs other tests.
const mostUntilLaid = 30 * time.Second

// TestNetworkOfMany draws a user who follows 1,200 others, and then one who follows everybody. It logs when everybody has a place, and how
// many frames per second the page shows, which depends on the machine. No other test of the app draws meanwhile.
func TestNetworkOfMany(t *testing.T) {
	testenv.Clients(t)
	s := open(t, "--write-limit", "0")
	tab := s.as(9, "/")
	follow := func(from, to int) {
		tab.Run("follow many", fmt.Sprintf(`
			const {token} = JSON.parse(localStorage.getItem("kith-session"));
			for (let from = %d; from <= %d; from += 400) {
				const ids = Array.from({length: 400}, (_, i) => from + i);
				await fetch("/graphql", {method: "POST", headers: {"Content-Type": "application/json", Authorization: "Bearer " + token},
					body: JSON.stringify({query: "mutation($ids: [ID!]!) { followMany(userIds: $ids) { outcomes { userId } } }", variables: {ids}})});
			}`, from, to))
	}
	follow(1, 1200)
	tab.Go(s.browser, "/app/picture")
	tab.Run("wait until everybody has a place", `
		const drawn = () => document.querySelector(".canvas")?.dataset.nodes > 1200 && document.querySelectorAll(".node-face").length > 5;
		while (!drawn() && performance.now() < 60_000) await new Promise(requestAnimationFrame);
		window.drawn = performance.now()`)
	milliseconds, err := strconv.ParseFloat(tab.Text(`String(drawn)`), 64)
	must.OK(t, err)
	t.Logf("%s: drawn %.0f ms after the page was asked for", toldOf(tab), milliseconds)
	check.That(t, milliseconds <= float64(mostUntilLaid.Milliseconds()), "1,200 people have their places after %.0f ms, want at most %s", milliseconds, mostUntilLaid)

	follow(1201, 2000)
	tab.Go(s.browser, "/app/picture")
	tab.Until("2,000 people", `document.querySelector(".canvas")?.dataset.nodes === "2000"`)
	frames := func(what, each string) {
		tab.Run("count frames", `
			const begin = performance.now();
			const drawing = document.querySelector(".sigma-mouse");
			window.gaps = [];
			for (let last = begin; performance.now() - begin < 4000;) {
				`+each+`
				const now = await new Promise(requestAnimationFrame);
				gaps.push(now - last);
				last = now;
			}
			gaps.sort((a, b) => a - b)`)
		t.Logf("4 s of %s: %s frames, median %s ms apart, the 99th percentile %s ms", what, tab.Text(`String(gaps.length)`),
			tab.Text(`gaps[gaps.length >> 1].toFixed(1)`), tab.Text(`gaps[Math.floor(gaps.length * 0.99)].toFixed(1)`))
	}
	frames("layout", "")
	tab.Until("it is laid out", laid)
	frames("zooming", `drawing.dispatchEvent(new WheelEvent("wheel", {deltaY: gaps.length % 40 < 20 ? -40 : 40, clientX: 600, clientY: 450, bubbles: true, cancelable: true}));`)

	// There is no room for anybody else, and the page says so.
	known := tab.Text(`document.querySelector("[data-node]").dataset.node`)
	var made struct {
		Register struct {
			Viewer struct{ User struct{ ID string } }
		}
	}
	s.Query(t, `mutation { register(name: "New", handle: "somebody_new", password: "somebody new") { viewer { user { id } } } }`, nil, &made)
	var who struct{ User struct{ ID string } }
	s.Query(t, `query($handle: String!) { user(by: {handle: $handle}) { id } }`, map[string]any{"handle": known}, &who)
	id, err := strconv.Atoi(who.User.ID)
	must.OK(t, err)
	s.mutate(t, id, `mutation($id: ID!) { follow(userId: $id) { changed } }`, map[string]any{"id": made.Register.Viewer.User.ID}, nil)
	tab.Run("choose somebody", `document.querySelector("[data-node]").click()`)
	tab.Press("Add who they follow")
	tab.Sees("There is room for 2,000 people. Some of those whom this person follows are left out.")
}
