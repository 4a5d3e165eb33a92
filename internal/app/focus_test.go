package app_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"kith/internal/check"
	"kith/internal/testenv"
)

// TestFocusStays uses the keyboard where what has the focus goes, or is drawn again: the focus stays near, and does not begin at the
// top of the page.
func TestFocusStays(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t)
	tab := s.as(1, "/u/mateo_silva")
	has := func(what, selector string) {
		t.Helper()
		tab.Until(what+" has the focus", fmt.Sprintf(`document.activeElement.matches(%q)`, selector))
	}
	press := func(what, button string) {
		t.Helper()
		tab.Until("there is "+what, button)
		tab.Run("to "+what, button+`.focus()`)
		tab.Keys(kb.Enter)
	}
	press("a tab", `document.querySelector("[data-list=followers]")`)
	tab.Until("the followers", `location.pathname.endsWith("/followers") && document.querySelectorAll(".row[data-user]").length > 5`)
	has("the tab", "[data-list=followers]")

	shows(tab, "/suggestions")
	tab.Until("people", `document.querySelectorAll(".item .row").length > 5`)
	handles := [3]string{}
	for i := range handles {
		handles[i] = tab.Text(fmt.Sprintf(`document.querySelectorAll(".item .row")[%d].dataset.user`, i))
	}
	first, second, third := handles[0], handles[1], handles[2]
	row := func(handle string) string { return fmt.Sprintf(`.row[data-user=%s]`, handle) }
	in := func(handle string) string { return fmt.Sprintf(`.item:has(%[1]s), %[1]s`, row(handle)) }
	dismiss := func(handle string) {
		press("dismiss "+handle, fmt.Sprintf(`document.querySelector("%s [aria-label^='Do not']")`, row(handle)))
	}
	dismiss(first)
	has("the next row", in(second))
	dismiss(second)
	has("the next row", in(third))

	shows(tab, "/dismissed")
	tab.Until("both", `document.querySelectorAll(".item .row").length === 2`)
	rows := [2]string{}
	for i := range rows {
		rows[i] = tab.Text(fmt.Sprintf(`document.querySelectorAll(".item .row")[%d].dataset.user`, i))
	}
	press("the last row", `document.querySelector(".item:last-child .row-actions button")`)
	has("the row before", in(rows[0]))
	press("the only row", `document.querySelector(".item .row-actions button")`)
	tab.Sees("You haven’t dismissed anyone.")
	has("the list", ".list")

	// Beside the feed there are as many as before.
	shows(tab, "/")
	const beside = `document.querySelectorAll(".beside .row[data-user]")`
	tab.Until("people beside the feed", beside+`.length === 5`)
	for range 6 {
		next := tab.Text(beside + `[1].dataset.user`)
		press("dismiss the first", `document.querySelector(".beside [aria-label^='Do not']")`)
		tab.Until("the next is the first", fmt.Sprintf(beside+`[0].dataset.user === %q`, next))
		has("it", ".beside "+row(next))
		tab.Until("there are five again", beside+`.length === 5`)
	}

	shows(tab, "/picture")
	press("somebody", `document.querySelector(".chosen li button")`)
	tab.Until("that is who is shown", `document.querySelector(".chosen .who")`)
	has("the side", ".chosen")
	press("everyone", `document.querySelector(".chosen .bar .plain")`)
	tab.Until("nobody is chosen", `!document.querySelector(".chosen .who")`)
	has("the side", ".chosen")

	// On a profile what can be done changes with what has been done.
	s.does(t, 700, "requestFriend", 1)
	handle, name := s.handle(t, 700)
	shows(tab, "/u/"+handle)
	press("accept", fmt.Sprintf(`document.querySelector("[aria-label='Accept %s']")`, name))
	tab.Sees("You and " + name + " are now friends.")
	has("what is beside it", ".head-actions *")
	press("the menu", `document.querySelector(".head-actions .menu-button")`)
	press("block", `[...document.querySelectorAll(":popover-open > *")].find(e => e.textContent === "Block")`)
	press("block", `document.querySelector("dialog .danger")`)
	tab.Sees("You blocked " + name + ".")
	has("what is there now", ".head-actions, .head-actions *")

	// To go where one is adds nothing to the way back.
	tab.Run("remember", `window.steps = history.length`)
	tab.Run("click three times", `for (let i = 0; i < 3; i++) document.querySelector("nav [href$='/activity']").click()`)
	check.Equal(t, "steps of three clicks on one link", tab.Text(`String(history.length - steps)`), "1")
}
