// Package webtest drives the pages in headless Chromium: the one at /, as a visitor sees it for the
// first time, and those of the app.
package webtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"kith/internal/must"
	"kith/internal/testenv"
)

// Result is the outcome of a visit.
type Result struct {
	Page     string          // "graphiql" or "plain"
	Answer   json.RawMessage // the GraphQL response that the page shows for its example
	Requests []string        // every URL the browser asked for, in order
}

// patience is the time for one step, or for one condition to hold. It is reached only if something is wrong. A whole test has no
// limit of its own: on a busy machine that would end one that goes on.
const patience = 2 * time.Minute

// Drive opens the page at baseURL in a fresh browser, runs the example it shows and
// returns the answer. The test fails if the page does not load, if the answer has errors or no
// data, if anything is reported on the browser's console (as a violation of the
// Content-Security-Policy is), or if a request goes to an origin other than baseURL's.
//
// With KITH_TEST_SCREENSHOT=FILE.png it leaves a picture of the page as it was at the end.
func Drive(t testing.TB, baseURL string) Result {
	t.Helper()
	v, rec, end := open(t, baseURL, "")
	defer end()
	res := Result{Page: v.text(`document.body.dataset.page ?? ""`)}
	switch res.Page {
	case "graphiql":
		res.Answer = json.RawMessage(v.graphiql(rec))
	case "plain":
		res.Answer = json.RawMessage(v.plain())
	default:
		t.Fatalf("%s is no page of ours", baseURL)
	}
	if err := check(res.Answer); err != nil {
		t.Errorf("answer of the example: %v\n%s", err, res.Answer)
	}
	res.Requests = rec.requests()
	return res
}

// open opens the page in a fresh browser. Whatever ends the visit, end reports the console's
// complaints, which say why, and the requests that left the gateway's origin.
func open(t testing.TB, baseURL, query string) (v visit, rec *recorder, end func()) {
	t.Helper()
	b := Open(t, baseURL)
	v, report := b.visit("/" + query)
	return v, b.rec, func() {
		report()
		if t.Failed() {
			t.Logf("requests:\n%s", strings.Join(b.rec.requests(), "\n"))
		}
	}
}

// Open starts a browser with an empty profile in front of the gateway at baseURL. It ends with the test, and draws WebGL
// without a graphics card. The browser's own requests (updates, the time, its maker's accounts) belong to its default
// context: they are not recorded, and find no host.
func Open(t testing.TB, baseURL string) *Browser {
	t.Helper()
	base, err := url.Parse(baseURL)
	must.OK(t, err)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(testenv.Chromium(t)),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, // root in a container has no user namespace for it
		chromedp.DisableGPU,
		chromedp.Flag("enable-unsafe-swiftshader", true), // draws WebGL without a graphics card
		chromedp.WindowSize(1440, 900),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
		// Autofill asks its server about any page with a form, in the page's context.
		chromedp.Flag("disable-features", "AutofillServerCommunication,Translate"),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop) // waits for the browser to be gone, so that its profile can be removed
	ctx, cancel := chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return &Browser{TB: t, ctx: ctx, rec: record(t, base.Scheme+"://"+base.Host)}
}

// visit opens a tab whose every request goes through the recorder, those of its workers included. It
// has a browser context of its own, with the proxy and with the empty storage of a new visitor.
func (b *Browser) visit(path string) (v visit, end func()) {
	return b.visitIn(b.ctx, path, chromedp.WithNewBrowserContext(func(p *target.CreateBrowserContextParams) {
		p.ProxyServer = b.rec.proxy.URL
		p.ProxyBypassList = "<-loopback>" // loopback goes through it as well
	}))
}

// visitIn opens a tab of a browser, or beside another tab, whose storage it shares.
func (b *Browser) visitIn(ctx context.Context, path string, options ...chromedp.ContextOption) (v visit, end func()) {
	t := b.TB
	t.Helper()
	ctx, cancel := chromedp.NewContext(ctx, options...)
	t.Cleanup(cancel)
	complaints := listen(t, ctx)
	v = visit{TB: t, ctx: ctx, forgiven: new([]string)}
	if b.script != "" {
		v.begins(b.script)
	}
	v.do("open "+path, chromedp.Navigate(b.rec.origin+path))
	return v, func() {
		v.screenshot()
		for _, c := range complaints() {
			if !slices.ContainsFunc(*v.forgiven, func(part string) bool { return strings.Contains(c, part) }) {
				t.Errorf("console: %s", c)
			}
		}
		for _, u := range b.rec.foreign() {
			t.Errorf("request left the gateway's origin: %s", u)
		}
	}
}

// listen collects what the page reports as wrong: uncaught exceptions, and errors and
// warnings on the console.
func listen(t testing.TB, ctx context.Context) (complaints func() []string) {
	var mu sync.Mutex
	var list []string
	add := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, fmt.Sprintf(format, args...))
	}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			add("uncaught: %s", describe(e.ExceptionDetails))
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
				var text strings.Builder
				for _, a := range e.Args {
					fmt.Fprintf(&text, " %s%s", a.Value, a.Description)
				}
				add("%s:%s", e.Type, text.String())
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				add("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
			}
		}
	})
	if err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// describe gives an exception's message and stack, if it has them.
func describe(e *runtime.ExceptionDetails) string {
	if e.Exception != nil && e.Exception.Description != "" {
		return e.Exception.Description
	}
	return e.Text
}

// check reports what is wrong with a GraphQL response that should have data and no errors.
func check(answer json.RawMessage) error {
	var response struct {
		Data   map[string]json.RawMessage `json:"data"`
		Errors []json.RawMessage          `json:"errors"`
	}
	if err := json.Unmarshal(answer, &response); err != nil {
		return err
	}
	if len(response.Errors) > 0 {
		return fmt.Errorf("%d errors", len(response.Errors))
	}
	if len(response.Data) == 0 {
		return fmt.Errorf("no data")
	}
	for field, value := range response.Data {
		if string(value) == "null" {
			return fmt.Errorf("%s is null", field)
		}
	}
	return nil
}

// visit is the browser's tab, and the test that looks at it.
type visit struct {
	testing.TB
	ctx      context.Context
	forgiven *[]string // complaints that contain one of these are ignored
}

// do takes the steps; what names them in the failure.
func (v visit) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	v.Helper()
	for _, step := range steps {
		gives(v, what, step)
	}
}

// gives takes a step, and returns what it gives.
func gives[T any](v visit, what string, step chromedp.Action[T]) T {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	given, err := chromedp.Run(ctx, step)
	if err != nil {
		v.Fatalf("%s: %v; the page shows:\n%s", what, err, v.shows())
	}
	return given
}

// shows is the text of the page, at most 2,000 characters.
func (v visit) shows() string {
	ctx, cancel := context.WithTimeout(v.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body?.innerText.slice(0, 2000) ?? ""`))
	if err != nil {
		return err.Error()
	}
	return text
}

// writes leaves what a step gives in a file.
func (v visit) writes(file string, step chromedp.Action[[]byte]) {
	v.Helper()
	if err := os.WriteFile(file, gives(v, "take the picture", step), 0o644); err != nil {
		v.Errorf("keep the picture: %v", err)
	}
}

// screenshot writes the picture that KITH_TEST_SCREENSHOT asks for.
func (v visit) screenshot() {
	if file := os.Getenv("KITH_TEST_SCREENSHOT"); file != "" {
		v.writes(file, chromedp.CaptureScreenshot())
	}
}
