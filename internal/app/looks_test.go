package app_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/internal/webtest"
)

type page struct {
	user       int // 0 if nobody is signed in
	path, done string
}

// pages are the pages of the app, with what shows that each is complete.
var pages = []page{
	{0, "/", `document.querySelectorAll(".demo-users img").length > 5`},
	{0, "/u/mateo_silva", `document.querySelector(".post")`},
	{0, "/u/mateo_silva/followers", `document.querySelectorAll(".row[data-user]").length > 5`},
	{1, "/", `document.querySelector(".post") && document.querySelectorAll(".beside .row").length > 3`},
	{1, "/start", `document.querySelectorAll(".choices li").length > 5`},
	{1, "/suggestions", `document.querySelectorAll(".row[data-user]").length > 5`},
	{1, "/u/mateo_silva", `document.querySelector(".post") && document.querySelector(".known")`},
	{1, "/u/mateo_silva/followers", `document.querySelectorAll(".row[data-user]").length > 5`},
	{1, "/u/mateo_silva/favorites", `document.querySelector(".post, .empty")`},
	{1, "/common/maya_okafor/mateo_silva", `document.querySelectorAll(".row[data-user]").length > 2`},
	{1, "/activity", `document.querySelectorAll(".group").length > 2`},
	{1, "/requests", `document.querySelector(".empty")`},
	{1, "/marked", `document.querySelector(".empty")`},
	{1, "/blocked", `document.querySelector(".empty")`},
	{1, "/muted", `document.querySelector(".empty")`},
	{1, "/dismissed", `document.querySelector(".empty")`},
	{1, "/u/mateo_silva/similar", `document.querySelectorAll(".row[data-user]").length > 2`},
	{1, "/lists", `document.querySelector(".empty")`},
	{1, "/u/mateo_silva/lists", `document.querySelector(".empty")`},
	{1, "/settings", `document.querySelector("select")`},
	{1, "/picture", laid + ` && document.querySelectorAll(".chosen li").length > 20 && document.querySelectorAll(".legend button").length > 2`},
	{1, "/nothing", `document.querySelector(".empty")`},
}

// allPages are the pages, and those of a post, whose address a visitor finds.
func (s site) allPages(visitor *webtest.Tab) []page {
	s.browser.Helper()
	const link = `document.querySelector(".post header a[href*='/post/']")`
	visitor.Go(s.browser, "/app/u/mateo_silva")
	visitor.Until("a post", link)
	post := strings.TrimPrefix(visitor.Text(link+`.pathname`), "/app")
	return append(pages, page{0, post, `document.querySelector(".post .comments > .button")`}, page{1, post, `document.querySelector(".post .composer")`})
}

// TestAppIsAccessible runs axe-core on every page, in light and dark, at 390 and 1440 pixels. No page may be wider than
// its window. The gateway answers trusted documents only.
func TestAppIsAccessible(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	axe := axeCore(t)
	s := open(t, "--only-trusted", "on")
	signedIn, visitor := s.as(1, "/"), s.browser.Tab("/app/")
	for _, p := range s.allPages(visitor) {
		tab := signedIn
		if p.user == 0 {
			tab = visitor
		}
		s.accessible(t, tab, axe, p.path, p.done)
	}
	s.accessible(t, s.newcomer(), axe, "/", `document.querySelector(".empty a")`)
}

func (s site) accessible(t *testing.T, tab *webtest.Tab, axe, path, done string) {
	t.Helper()
	tab.Go(s.browser, "/app"+path)
	for _, width := range []int64{390, 1440} {
		for _, scheme := range []string{"light", "dark"} {
			tab.Looks(width, 900, scheme)
			tab.Until("the page is complete", done)
			where := fmt.Sprintf("%s, %d pixels, %s", path, width, scheme)
			for _, violation := range tab.Axe(axe) {
				t.Errorf("%s: %s", where, violation)
			}
			wide := tab.Text(`String(document.documentElement.scrollWidth - innerWidth)`)
			check.That(t, wide[0] == '-' || wide == "0", "%s: %s pixels too wide", where, wide)
		}
	}
}

// mostMoved is the cumulative layout shift below which a page counts as still. Web Vitals calls 0.1 good.
const mostMoved = 0.05

// TestPagesDoNotMove adds up the layout shifts of every page while it loads.
func TestPagesDoNotMove(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t)
	signedIn, visitor := s.as(1, "/"), s.browser.Tab("/app/")
	for _, p := range s.allPages(visitor) {
		tab := signedIn
		if p.user == 0 {
			tab = visitor
		}
		s.still(t, tab, p.path, p.done)
	}
}

func (s site) still(t *testing.T, tab *webtest.Tab, path, done string) {
	t.Helper()
	for _, width := range []int64{390, 1440} {
		tab.Looks(width, 900, "light")
		tab.Go(s.browser, "/app"+path)
		tab.Until("the page is complete", done)
		tab.Run("add up", `
			window.moved = 0;
			window.movers = new Set();
			const add = shifts => shifts.filter(one => !one.hadRecentInput).forEach(one => {
				moved += one.value;
				one.sources.forEach(({node, previousRect: a, currentRect: b}) => movers.add(`+"`${node?.className || node?.nodeName} from ${a.y} to ${b.y}`"+`));
			});
			const watch = new PerformanceObserver(list => add(list.getEntries()));
			watch.observe({type: "layout-shift", buffered: true});
			for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
			add(watch.takeRecords())`)
		moved, err := strconv.ParseFloat(tab.Text(`String(moved)`), 64)
		must.OK(t, err)
		t.Logf("%s, %d pixels: %.4f", path, width, moved)
		if moved >= mostMoved {
			t.Errorf("%s, %d pixels: moved by %.4f, want less than %g: %s", path, width, moved, mostMoved, tab.Text(`[...movers].join(", ")`))
		}
	}
}

// TestDialogsAreAccessible opens everything that covers a page, and GraphiQL with the users of the demo graph.
func TestDialogsAreAccessible(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	axe := axeCore(t)
	s := open(t)
	tab := s.as(1, "/u/mateo_silva")
	for _, button := range []string{"Mark", "Add to list…", "Mute", "Report", "Block", "Friends: Mateo Silva"} {
		if !strings.Contains(button, ":") {
			tab.Press("More: Mateo Silva")
			accessibleAsItIs(t, tab, axe, "menu")
		}
		tab.Press(button)
		tab.Until("the dialog", `document.querySelector("dialog[open]")`)
		accessibleAsItIs(t, tab, axe, button)
		tab.Press("Close")
		tab.Until("it is closed", `!document.querySelector("dialog")`)
	}
	tab.Type("[role=combobox]", "maya")
	tab.Until("people are found", `document.querySelectorAll("[role=option]").length > 1`)
	accessibleAsItIs(t, tab, axe, "search")
	tab.Go(s.browser, "/app/u/mateo_silva")
	tab.Until("the posts", `document.querySelector(".post .talk")`)
	tab.Run("open comments", `document.querySelector(".post .talk").click()`)
	tab.Type(".comments textarea", "How true")
	tab.Press("Comment")
	tab.Until("there is one", `document.querySelector(".comment")`)
	accessibleAsItIs(t, tab, axe, "comments")
	visitor := s.browser.Tab("/app/u/mateo_silva")
	for button, title := range map[string]string{"Follow: Mateo Silva": "Sign in to follow Mateo Silva", "Register": "Register"} {
		visitor.Press(button)
		visitor.Until("the dialog", fmt.Sprintf(`document.querySelector("dialog[open]")?.ariaLabel === %q`, title))
		accessibleAsItIs(t, visitor, axe, title)
		visitor.Press("Close")
	}
	// The rest is GraphiQL's own: tabs with buttons in them, and the colours of its editor.
	own := func(violation string) bool {
		return strings.HasPrefix(violation, "nested-interactive") || strings.HasPrefix(violation, "color-contrast") && !strings.Contains(violation, "kith-") && !strings.Contains(violation, "<select")
	}
	graphiql := s.browser.Tab("/")
	graphiql.Until("the users", `document.querySelectorAll(".kith-user option").length > 5`)
	for _, violation := range looks(graphiql, axe) {
		_, what, _ := strings.Cut(violation, ": ")
		check.That(t, own(what), "GraphiQL, %s", violation)
	}
	graphiql.Looks(390, 844, "light")
	graphiql.Until("the query, its answer and the user are in a phone's window", `[".graphiql-query-editor", ".graphiql-response", ".kith-user select", ".graphiql-execute-button", ".graphiql-tab-active"].every(one => {
		const {left, right, top, bottom, width} = document.querySelector(one).getBoundingClientRect();
		return left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight && width > (/button|tab|select/.test(one) ? 30 : 300);
	})`)
}

// looks runs axe-core on a page as it is, at 390 and 1440 pixels, in light and dark.
func looks(tab *webtest.Tab, axe string) (violations []string) {
	for _, width := range []int64{390, 1440} {
		for _, scheme := range []string{"light", "dark"} {
			tab.Looks(width, 900, scheme)
			for _, violation := range tab.Axe(axe) {
				violations = append(violations, fmt.Sprintf("%d pixels, %s: %s", width, scheme, violation))
			}
		}
	}
	return violations
}

func accessibleAsItIs(t *testing.T, tab *webtest.Tab, axe, what string) {
	t.Helper()
	for _, violation := range looks(tab, axe) {
		t.Errorf("%s, %s", what, violation)
	}
}

// TestPhone measures on a phone what has little room there.
func TestPhone(t *testing.T) {
	testenv.Clients(t)
	t.Parallel()
	s := open(t)
	tab := s.as(1, "/")
	tab.Looks(390, 844, "light")
	tab.Go(s.browser, "/app/suggestions")
	tab.Until("reasons have the width of a row", `document.querySelectorAll(".reason").length > 5 && [...document.querySelectorAll(".reason")].every(e => e.clientWidth > 240)`)
	tab.Go(s.browser, "/app/u/mateo_silva")
	tab.Until("the first post is in sight", `document.querySelector(".known") && document.querySelector(".post footer")?.getBoundingClientRect().bottom < document.querySelector(".side > ul").getBoundingClientRect().top`)
	tab.Run("open comments", `document.querySelector(".post .talk").click()`)
	tab.Type(".comments textarea", strings.Repeat("Long", 60))
	tab.Press("Comment")
	tab.Until("a long word wraps", `document.querySelector(".comment .text")?.clientHeight > 60 && document.documentElement.scrollWidth <= innerWidth`)
}

// axeCore is the source of axe-core.
func axeCore(t *testing.T) string {
	t.Helper()
	testenv.NPM(t, "axe")
	return string(must.File(t, "axe/node_modules/axe-core/axe.min.js"))
}

// TestPicturesForTheDocuments takes the pictures in docs/images again: make picture.
func TestPicturesForTheDocuments(t *testing.T) {
	if os.Getenv("KITH_TEST_PICTURE") != "1" {
		t.Skip("make picture takes them")
	}
	t.Parallel()
	s := open(t)
	tab := s.as(1, "/")
	take := func(tab *webtest.Tab, name, path, done string, width, height int64, scheme string) {
		tab.Looks(width, height, scheme)
		tab.Go(s.browser, "/app"+path)
		tab.Until("the page is complete", done)
		tab.Until("all faces are there", `[...document.images].every(i => i.complete || i.getBoundingClientRect().top > innerHeight)`)
		tab.Picture("../../docs/images/" + name)
	}
	take(tab, "app-picture.webp", "/picture", laid, 1200, 760, "light")
	take(tab, "app-picture-phone.webp", "/picture", laid, 390, 760, "dark")
	take(tab, "app-home.webp", "/", `document.querySelector(".post") && document.querySelectorAll(".beside .row").length > 3`, 1200, 760, "light")
	take(tab, "app-profile.webp", "/u/mateo_silva/followers", `document.querySelectorAll(".row[data-user]").length > 5`, 1200, 760, "dark")
	take(tab, "app-phone.webp", "/u/mateo_silva", `document.querySelector(".post") && document.querySelector(".known")`, 390, 760, "light")
	take(tab, "app-phone-dark.webp", "/suggestions", `document.querySelectorAll(".row[data-user]").length > 5`, 390, 760, "dark")
	take(s.browser.Tab("/app/"), "app-welcome.webp", "/", `document.querySelectorAll(".demo-users img").length > 5`, 1200, 760, "light")
}
