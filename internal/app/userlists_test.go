package app_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/testenv"
)

// TestLists has one person make lists, and another follow the people on a public one.
func TestLists(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	axe := axeCore(t)
	s := open(t)
	const owner, one, two, blocks, locked, known, other, followed = 870, 871, 872, 873, 874, 875, 876, 877
	oneHandle, oneName := s.handle(t, one)
	twoHandle, twoName := s.handle(t, two)
	blocksHandle, blocksName := s.handle(t, blocks)
	ownerHandle, _ := s.handle(t, owner)

	var swimmers struct {
		CreateList struct{ List struct{ ID string } }
	}
	s.mutate(t, other, `mutation($ids: [ID!]!) { createList(name: "Swimmers", userIds: $ids) { list { id } } }`, map[string]any{"ids": []int{one}}, &swimmers)
	b := s.as(other, "/list/"+swimmers.CreateList.List.ID)
	b.Sees("No posts yet from the people on this list.")
	s.subscribed(t, 3)
	s.publish(t, one, "From the wall")
	b.Run("meddle", meddle)
	b.Run("cut off", `cut = "query Feed"`)
	b.Press("One new post")
	b.Sees("The server can’t be reached.")
	b.Run("end of the trouble", `cut = ""`)
	b.Press("One new post")
	b.Until("it is there", `document.querySelector(".post .text")?.textContent === "From the wall"`)

	s.does(t, owner, "follow", followed)
	s.publish(t, followed, "On no list")
	s.publish(t, two, "Down the river")
	card := func(name, facts string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".lines")].some(e => e.innerText.includes(%q) && e.innerText.includes(%q))`, name, facts)
	}
	box := func(name string) string {
		return fmt.Sprintf(`[...document.querySelectorAll("dialog .item label")].find(e => e.innerText.includes(%q))?.querySelector("input:enabled")`, name)
	}

	a := s.as(owner, "/lists")
	a.Sees("You don’t have any lists yet.")
	a.Type("main input[name=name]", "Climbers")
	a.Run("meddle", meddle)
	a.Run("late answers", `hold = "mutation CreateList"`)
	a.Press("Create list")
	a.Until("it cannot be sent twice", `held.length === 1 && document.querySelector("main form .primary").disabled`)
	a.Run("let it go", `hold = ""; held.pop()()`)
	a.Sees("Created “Climbers”.")
	a.Until("it is there", card("Climbers", "Private · 0 people"))
	a.Until("the form is empty", `document.querySelector("main input[name=name]").value === ""`)

	a.Go(s.browser, "/app/u/"+oneHandle)
	picks(a, oneName, "Add to list…")
	a.Until("not on it", box("Climbers")+`?.checked === false`)
	a.Run("add", box("Climbers")+`.click()`)
	a.Until("added", `document.querySelector("dialog").innerText.includes("1 person")`)
	a.Type("dialog input[name=name]", "Runners")
	a.Press("Create list")
	a.Until("on the new one, too", box("Runners")+`?.checked && `+box("Climbers")+`?.checked`)
	a.Run("take off", box("Runners")+`.click()`)
	a.Until("taken off", `[...document.querySelectorAll("dialog .item")].some(e => e.innerText.includes("Runners") && e.innerText.includes("0 people"))`)

	a.Go(s.browser, "/app/u/"+blocksHandle)
	picks(a, blocksName, "Add to list…")
	a.Until("not on it", box("Climbers")+`?.checked === false`)
	s.does(t, blocks, "block", owner)
	a.Run("add", box("Climbers")+`.click()`)
	a.Until("it is said that this is not possible", `document.querySelector(".note.bad")`)
	a.Until("still not on it", box("Climbers")+`?.checked === false`)

	a.Go(s.browser, "/app/u/"+twoHandle)
	picks(a, twoName, "Add to list…")
	a.Until("not on it", box("Climbers")+`?.checked === false`)
	a.Run("add", box("Climbers")+`.click()`)
	a.Until("added", `document.querySelector("dialog").innerText.includes("2 people")`)
	a.Press("Close")

	a.Press("Lists")
	a.Press("Climbers")
	authors := `new Set([...document.querySelectorAll(".post")].map(e => e.ariaLabel.slice("Post by ".length)))`
	by := func(names ...string) string {
		return fmt.Sprintf(`JSON.stringify([...%s]) === JSON.stringify(%q.split(","))`, authors, strings.Join(names, ","))
	}
	a.Until("posts of its people, and of nobody else", by(twoName, oneName))
	path := strings.TrimPrefix(a.Text("location.pathname"), "/app")

	// Another tab has taken somebody off since the dialog was open.
	shows(a, "/u/"+oneHandle)
	picks(a, oneName, "Add to list…")
	a.Until("on it", box("Climbers")+`?.checked`)
	a.Press("Close")
	s.mutate(t, owner, `mutation($list: ID!, $ids: [ID!]!) { removeFromList(listId: $list, userIds: $ids) { changed } }`,
		map[string]any{"list": strings.TrimPrefix(path, "/list/"), "ids": []int{one}}, nil)
	picks(a, oneName, "Add to list…")
	a.Until("not on it any more", box("Climbers")+`?.checked === false`)
	a.Run("add", box("Climbers")+`.click()`)
	a.Until("added", `document.querySelector("dialog").innerText.includes("2 people") && `+box("Climbers")+`?.checked`)
	a.Press("Close")
	shows(a, path)

	a.Press("Members")
	a.Press("Remove: " + twoName)
	a.Until("gone", fmt.Sprintf(`!document.querySelector(".row[data-user=%s]") && document.querySelector(".row[data-user=%s]") && document.querySelector("main").innerText.includes("1 person")`, twoHandle, oneHandle))
	a.Press("Posts")
	a.Until("posts of one only", by(oneName))

	s.mutate(t, locked, `mutation { updateProfile(locked: true) { viewer { id } } }`, nil, nil)
	s.mutate(t, owner, `mutation($list: ID!, $ids: [ID!]!) { addToList(listId: $list, userIds: $ids) { changed } }`,
		map[string]any{"list": strings.TrimPrefix(path, "/list/"), "ids": []int{locked, known, other}}, nil)
	s.does(t, other, "follow", known)
	b.Go(s.browser, "/app"+path)
	b.Until("a private list is its owner's", isEmptyAs("This list was deleted, or you can’t see it."))
	a.Press("Edit list")
	a.Until("the dialog", `document.querySelector("dialog[open]")`)
	a.Run("public, and empty the name", `document.querySelector("dialog input[name=name]").select(); document.querySelector("dialog input[name=public]").click()`)
	a.Type("dialog input[name=name]", "Climbers of Oslo")
	a.Press("Save")
	a.Sees("Saved.")
	a.Until("so says the page", `document.querySelector("h1").textContent === "Climbers of Oslo" && document.querySelector("main").innerText.includes("Public · ")`)

	b.Go(s.browser, "/app/u/"+ownerHandle+"/lists")
	b.Until("the public list only", card("Climbers of Oslo", "Public · 4 people")+` && document.querySelectorAll(".item .lines").length === 1`)
	b.Press("Climbers of Oslo")
	b.Run("meddle", meddle)
	b.Run("cut off", `cut = "mutation FollowList"`)
	b.Press("Follow everyone on this list")
	b.Sees("The server can’t be reached.")
	b.Run("end of the trouble", `cut = ""`)
	b.Press("Follow everyone on this list")
	b.Sees("You now follow 1 more person. 1 you followed before, 1 has to approve you.")
	check.Lacks(t, "the notes on a failure", b.Text(`document.querySelector(".notes").innerText`), "follow 0 more")
	b.Press("Members")
	b.Until("followed", fmt.Sprintf(`document.querySelector(".row[data-user=%s] .follow")?.dataset.following === "true"`, oneHandle))
	visitor := s.browser.Tab("/app" + path)
	visitor.Sees(oneName)

	posts := `document.querySelector(".post")`
	s.accessible(t, b, axe, path, posts)
	s.still(t, b, path, posts)
	s.accessible(t, a, axe, "/lists", card("Climbers of Oslo", "Public"))
	s.still(t, a, "/lists", card("Climbers of Oslo", "Public"))
	a.Press("Climbers of Oslo")
	a.Press("Edit list")
	a.Press("Delete list")
	a.Sees("Deleted “Climbers of Oslo”.")
	a.Until("the other is left", card("Runners", "Private")+` && !`+card("Climbers", ""))
	b.Go(s.browser, "/app"+path)
	b.Until("deleted for others", isEmptyAs("This list was deleted, or you can’t see it."))
}
