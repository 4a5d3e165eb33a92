package webtest

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
)

// Picture runs a query in GraphiQL at baseURL and writes to file, as a PNG, the query beside
// its answer. The answer has to show the text. The test fails as [Drive]'s does.
func Picture(t testing.TB, baseURL, query, text, file string) {
	t.Helper()
	v, _, end := open(t, baseURL, "?query="+url.QueryEscape(query))
	defer end()
	v.do("set the size", chromedp.EmulateViewport(1200, 720))
	v.until("the editor shows the query", `document.querySelector(".graphiql-query-editor .view-lines")?.innerText.length > 20`)
	v.do("press run", chromedp.Click(chromedp.CSS(`.graphiql-execute-button`)))
	v.until("the answer shows", fmt.Sprintf(`document.querySelector(".result-window .view-lines")?.innerText.includes(%q)`, text))
	v.until("nothing is loading", `!document.querySelector(".graphiql-spinner")`)
	v.writes(file, chromedp.CaptureScreenshot())
}
