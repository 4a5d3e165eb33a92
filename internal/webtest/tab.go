package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A Browser is a headless Chromium whose tabs may ask one gateway only.
type Browser struct {
	testing.TB
	ctx    context.Context
	rec    *recorder
	script string // that pages begin with
}

// Begins runs JavaScript in each page of tabs that are opened from now on, before the page's own.
func (b *Browser) Begins(script string) { b.script = script }

// Allows lets pages ask another origin, too. It is called before the first tab is opened.
func (b *Browser) Allows(origin string) { b.rec.others = append(b.rec.others, origin) }

// A Tab is a page that a new visitor has opened: tabs do not share what they store. Errors in its console and
// requests to other origins fail the test at its end.
type Tab struct{ visit }

// Tab opens a path.
func (b *Browser) Tab(path string) *Tab {
	b.Helper()
	v, end := b.visit(path)
	b.Cleanup(end)
	return &Tab{v}
}

// Begins runs JavaScript in each page that the tab opens from now on, before the page's own.
func (v *Tab) Begins(script string) {
	v.Helper()
	v.begins(script)
}

// Forgives makes the test ignore lines of the console with a text.
func (v *Tab) Forgives(text string) { *v.forgiven = append(*v.forgiven, text) }

// Beside opens a path in another tab of the same person: both share what pages store.
func (v *Tab) Beside(b *Browser, path string) *Tab {
	v.Helper()
	other, end := b.visitIn(v.ctx, path)
	b.Cleanup(end)
	return &Tab{other}
}

// Go opens another path in the tab.
func (v *Tab) Go(b *Browser, path string) {
	v.Helper()
	v.do("go to "+path, chromedp.Navigate(b.rec.origin+path))
}

// Until waits for a JavaScript condition to hold.
func (v *Tab) Until(what, condition string) {
	v.Helper()
	v.until(what, condition)
}

// Sees waits until the page shows a text.
func (v *Tab) Sees(text string) {
	v.Helper()
	v.Until("the page shows "+text, fmt.Sprintf(`document.body?.innerText.includes(%q)`, text))
}

// Text returns the value of a JavaScript expression that is a string.
func (v *Tab) Text(expression string) string {
	v.Helper()
	return v.text(expression)
}

// Press clicks the button, link or label of a name: what a screen reader says. It finds and clicks in one step, because lists
// may move while something arrives live.
func (v *Tab) Press(name string) {
	v.Helper()
	v.Until("there is "+name, fmt.Sprintf(`(() => {
		const all = [...document.querySelectorAll("button, a, label")].filter(e => e.checkVisibility());
		const found = all.find(e => (e.getAttribute("aria-label") ?? e.textContent).trim() === %q);
		if (!found || found.disabled) return false;
		found.click();
		return true;
	})()`, name))
}

// DoubleClick clicks twice on the place where a selector finds something first.
func (v *Tab) DoubleClick(selector string) {
	v.Helper()
	var at struct{ X, Y float64 }
	place := v.text(fmt.Sprintf(`(({x, y, width, height}) => JSON.stringify({x: x + width / 2, y: y + height / 2}))(document.querySelector(%q).getBoundingClientRect())`, selector))
	if err := json.Unmarshal([]byte(place), &at); err != nil {
		v.Fatalf("where %s is: %v", selector, err)
	}
	v.do("double-click "+selector, chromedp.MouseClickXY(at.X, at.Y), chromedp.MouseClickXY(at.X, at.Y, chromedp.ClickCount(2)))
}

// Type writes into the field that a selector finds.
func (v *Tab) Type(selector, text string) {
	v.Helper()
	v.do("type into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Keys presses keys, wherever the focus is.
func (v *Tab) Keys(keys string) {
	v.Helper()
	v.do("press keys", chromedp.KeyEvent(keys))
}

// Looks sets the size of the page and the colour scheme, "light" or "dark", without motion.
func (v *Tab) Looks(width, height int64, scheme string) {
	v.Helper()
	media := func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return chromedp.Void{}, err
	}
	v.do("set size and scheme", chromedp.EmulateViewport(width, height), media)
}

// Axe runs axe-core, whose source is given, and returns what it finds wrong with the page.
func (v *Tab) Axe(source string) (violations []string) {
	v.Helper()
	const run = `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v =>
		v.id + ": " + v.help + ": " + v.nodes.map(n => n.html.slice(0, 200) + " " + n.failureSummary).join("; "))))`
	await := func(p *runtime.EvaluateParams) { yes := true; p.AwaitPromise = &yes }
	gives(v.visit, "load axe", chromedp.Evaluate[any](source+";0"))
	if err := json.Unmarshal([]byte(gives(v.visit, "run axe", chromedp.Evaluate[string](run, await))), &violations); err != nil {
		v.Fatalf("run axe: %v", err)
	}
	return violations
}

// Picture writes the page as it is to a file, as WebP.
func (v *Tab) Picture(file string) {
	v.Helper()
	v.writes(file, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		quality := int64(85)
		shot, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
		if err != nil {
			return nil, err
		}
		return shot.Data, nil
	})
}

// Run runs JavaScript in the page and waits until its promise, if it is one, has settled.
func (v *Tab) Run(what, script string) {
	v.Helper()
	await := func(p *runtime.EvaluateParams) { yes := true; p.AwaitPromise = &yes }
	gives(v.visit, what, chromedp.Evaluate[string]("(async () => { "+script+"; return '' })()", await))
}

// begins runs JavaScript in each page that the tab opens from now on, before the page's own.
func (v visit) begins(script string) {
	v.Helper()
	v.do("begin with a script", func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	})
}

// For is the same browser in a subtest of the test that has opened it: its tabs report to the
// subtest.
func (b *Browser) For(t testing.TB) *Browser {
	return &Browser{TB: t, ctx: b.ctx, rec: b.rec, script: b.script}
}
