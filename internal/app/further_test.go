package app_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/internal/testenv"
)

// TestAppFurther runs the other tests of the app, which take a browser some 20 s on two processors.
func TestAppFurther(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t)
	t.Run("requests", func(t *testing.T) { requests(t, s.in(t)) })
	t.Run("activity", func(t *testing.T) { activity(t, s.in(t)) })
	s.each(t, map[string]func(*testing.T, site){
		"be a demo user":               isSomebody,
		"bring a network":              brings,
		"lists go on and are searched": lists,
		"pages stay whole":             wholePages,
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
