package webtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/chromedp"
)

// graphiql runs the example in GraphiQL, and checks meanwhile that the schema has been read and
// that the editor's workers run.
func (v visit) graphiql(rec *recorder) string {
	v.Helper()
	v.until("the editor shows an example", `document.querySelector(".graphiql-query-editor .view-lines")?.innerText.includes("query")`)
	v.do("open the documentation", chromedp.Click(chromedp.CSS(`button[aria-label="Show Documentation Explorer"]`)))
	v.until("the documentation shows the schema", `document.querySelector(".graphiql-doc-explorer-content")?.innerText.includes("Query")`)
	v.do("press run", chromedp.Click(chromedp.CSS(`.graphiql-execute-button`)))
	v.until("the answer shows", `document.querySelector(".result-window .view-lines")?.innerText.includes('"data"')`)
	v.workers(rec, "editor.worker.js", "graphql.worker.js", "json.worker.js")

	return v.text(editor("response.json"))
}

// plain runs the example in the page of our own.
func (v visit) plain() string {
	v.Helper()
	v.until("the page shows an example", `document.querySelector("#query").value.includes("query")`)
	v.do("press run", chromedp.Click(chromedp.CSS(`#run`)))
	v.until("the answer shows", `document.querySelector("#result").innerText.includes('"data"')`)
	return v.text(`document.querySelector("#result").textContent`)
}

// until waits for the JavaScript condition to hold. It checks from outside: chromedp.Poll makes a
// function from text inside the page, which the page's policy rightly refuses. A condition that cannot be
// evaluated does not hold yet: what it reads may not be drawn, or the page leads elsewhere.
func (v visit) until(what, condition string) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, patience)
	defer cancel()
	var failed error
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		switch {
		case ok:
			return
		case err != nil && strings.Contains(err.Error(), "SyntaxError"):
			v.Fatalf("wait until %s: %v", what, err)
		case ctx.Err() == nil:
			failed = err
		}
		select {
		case <-ctx.Done():
			v.Fatalf("wait until %s: %v", what, v.late(failed))
		case <-time.After(40 * time.Millisecond):
		}
	}
}

// late says that something has not come in time, and what the page shows instead.
func (v visit) late(failed error) string {
	return fmt.Sprintf("not within %s (last error: %v); the page shows:\n%s", patience, failed, v.shows())
}

// pause lets a moment pass between two looks at a condition; the limit of what it waits for ends it.
func (v visit) pause(what string) {
	v.Helper()
	select {
	case <-v.ctx.Done():
		v.Fatalf("%s: %v", what, v.ctx.Err())
	case <-time.After(40 * time.Millisecond):
	}
}

// text returns the value of a JavaScript expression that is a string.
func (v visit) text(expression string) string {
	v.Helper()
	return gives(v, "evaluate "+expression, chromedp.Evaluate[string](expression))
}

// workers waits until the browser has fetched each of the files. A worker that the policy
// refuses is never fetched: the editor then falls back to the page's own thread, slowly.
func (v visit) workers(rec *recorder, names ...string) {
	v.Helper()
	missing := func(name string) bool {
		return !slices.ContainsFunc(rec.requests(), func(url string) bool { return strings.HasSuffix(url, "/"+name) })
	}
	for _, name := range names {
		for missing(name) {
			v.pause("wait for " + name)
		}
	}
}
