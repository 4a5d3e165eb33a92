package app_test

import (
	"testing"

	"kith/internal/check"
	"kith/internal/testenv"
	"kith/internal/webtest"
)

// due makes it time to renew the token, in all tabs.
const due = `
	const kept = JSON.parse(localStorage.getItem("kith-session"));
	localStorage.setItem("kith-session", JSON.stringify({...kept, renewAt: 0}));
	dispatchEvent(new StorageEvent("storage", {key: "kith-session"}))`

// TestSessionsAreRenewed has two tabs of one person, who uses both. One of them renews the token. When the session is ended
// elsewhere, both show the sign-in page, which leads back to the page before it.
func TestSessionsAreRenewed(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t)
	a := s.newcomer()
	a.Go(s.browser, "/app/settings")
	a.Until("the page", `document.querySelector("form[aria-label=Privacy]")`)
	b := a.Beside(s.browser, "/app/u/mateo_silva")
	b.Until("the same person is signed in", `document.querySelector(".head-actions .follow")`)

	// The tab that asks first is held back, so that both tabs try to renew at the same time.
	const hold = `
		const send = window.fetch;
		window.asked = 0;
		window.fetch = async (...all) => {
			if (!all[1]?.body?.includes("renewToken")) return send(...all);
			window.asked++;
			await new Promise(go => window.go = go);
			return send(...all);
		}`
	const press = `dispatchEvent(new KeyboardEvent("keydown", {key: "Shift"}))`
	token := func() string { return a.Text(`JSON.parse(localStorage.getItem("kith-session"))?.token ?? ""`) }
	first := token()
	a.Run("hold it back", hold)
	b.Run("hold it back", hold)
	s.Until(t, "reach the next second, in which a token is another one", func() bool {
		return a.Text(`String(JSON.parse(atob(JSON.parse(localStorage.getItem("kith-session")).token.split(".")[1])).iat < Math.floor(Date.now() / 1000))`) == "true"
	})
	a.Run("time to renew", due)
	a.Run("a is used", press)
	a.Until("a asks", "window.go")
	b.Until("b knows that it is time", `JSON.parse(localStorage.getItem("kith-session")).renewAt === 0`)
	b.Run("b is used", press)
	b.Run("b is used again", press)
	a.Run("let it go", "window.go()")
	a.Until("it is renewed", `JSON.parse(localStorage.getItem("kith-session")).renewAt > 0`)
	b.Run("b had its turn", `await navigator.locks.request("kith-session", () => {})`)
	check.Equal(t, "how often they asked", a.Text("`${window.asked}`")+b.Text("` and ${window.asked}`"), "1 and 0")
	second := token()
	check.That(t, second != first && second != "", "the token was %q, and is %q", first, second)
	check.That(t, a.Text(`document.querySelector("form[aria-label=Privacy]") ? "" : "gone"`) == "", "the page has changed")

	for _, tab := range []*webtest.Tab{a, b} {
		tab.Forgives("401 (Unauthorized)")
	}

	// The session ends without a click, because the gateway closes the socket.
	a.Run("sign out everywhere, on another device", `
		const {token} = JSON.parse(localStorage.getItem("kith-session"));
		await fetch("/graphql", {method: "POST", headers: {"Content-Type": "application/json", Authorization: "Bearer " + token}, body: '{"query":"mutation { signOutEverywhere { changed } }"}'})`)
	a.Sees("Your session has ended. Sign in to return to this page.")
	b.Sees("Your session has ended.")
	a.Type(`input[name="handle"]`, "ines_novak_empty")
	a.Type(`input[name="password"]`, "correct horse battery")
	a.Press("Sign in to Kith")
	a.Until("back where one was", `location.pathname === "/app/settings" && document.querySelector("form[aria-label=Privacy]")`)
	b.Until("so is the other tab", `document.querySelector(".me b") && location.pathname === "/app/u/mateo_silva" && document.querySelector(".head-actions .follow")`)
}

// TestPageOfAnEarlierVersion has a page open while Kith is updated: the gateway answers the operations of the new page only.
func TestPageOfAnEarlierVersion(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t, "--only-trusted", "on")
	tab := s.as(1, "/u/mateo_silva")
	tab.Forgives("400 (Bad Request)")
	tab.Until("a post", `document.querySelector(".post .like")`)
	tab.Run("an earlier version has other documents", `
		const send = window.fetch;
		window.fetch = (to, init) => send(to, {...init, body: init?.body?.replace('"query":"', '"query":"# of before\\n')})`)
	const told = `[...document.querySelectorAll(".note")].filter(e => e.innerText.includes("There is a new version of this page.")).length`
	tab.Run("favor a post", `document.querySelector(".post .like").click()`)
	tab.Until("the page tells that it is old", told+` === 1`)
	shows(tab, "/activity")
	tab.Press("Requests")
	tab.Until("it tells it once", `document.querySelector("h1")?.textContent === "Requests" && `+told+` === 1`)
	tab.Press("Reload")
	tab.Until("it is new", `window.fetch.toString().includes("native") && document.querySelector(".me b") && `+told+` === 0`)
}

// TestNothingIsStored signs in where the browser stores nothing for pages: until the page is loaded again.
func TestNothingIsStored(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t)
	tab := s.browser.Tab("/faces/1.svg")
	tab.Forgives("/favicon.ico") // a browser asks for it where a page names no icon
	tab.Begins(`for (const name of ["localStorage", "sessionStorage"]) Object.defineProperty(window, name, { get() { throw new DOMException("denied", "SecurityError") } })`)
	tab.Go(s.browser, "/app/")
	tab.Until("the users of the demo graph", `document.querySelector("button[data-user=maya_okafor]")`)
	tab.Run("be Maya", `document.querySelector("button[data-user=maya_okafor]").click()`)
	tab.Until("she is signed in", `document.querySelector(".me b")`)
	tab.Press("Sign out")
	tab.Until("nobody is", `!document.querySelector(".me b") && document.querySelector("form[aria-label='Sign in']")`)
}
