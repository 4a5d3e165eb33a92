package webtest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/chromedp/chromedp"

	"kith/internal/must"
)

// Runs chooses one of GraphiQL's tabs by its title, and runs the operation that is in it.
func (v *Tab) Runs(title string) {
	v.Helper()
	v.Until("the editor shows something", editor("operation.graphql")+` !== ""`) // before that, GraphiQL would show the first tab in every tab
	v.Press(title)
	v.Until("the editor shows "+title, fmt.Sprintf(`%s.includes(%q)`, editor("operation.graphql"), " "+title))
	v.do("press run", chromedp.Click(chromedp.CSS(`.graphiql-execute-button`)))
}

// Becomes chooses a demo user in the menu of GraphiQL.
func (v *Tab) Becomes(user int) {
	v.Helper()
	v.Until("the menu has the user", fmt.Sprintf(`document.querySelector(".kith-user option[value='%d']")`, user))
	v.Run("choose the user", fmt.Sprintf(`
		const menu = document.querySelector(".kith-user select");
		menu.value = "%d";
		menu.dispatchEvent(new Event("change", {bubbles: true}));`, user))
	v.Until("the user is chosen", fmt.Sprintf(`sessionStorage.getItem("kith-demo-user") === "%d"`, user))
}

// Answers waits until GraphiQL shows an answer with these data, and no errors.
func (v *Tab) Answers(data json.RawMessage) {
	v.Helper()
	var want any
	must.OK(v, json.Unmarshal(data, &want))
	shown := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); v.pause("the answer shows") {
		shown = v.text(editor("response.json"))
		var got struct{ Data, Errors any }
		if json.Unmarshal([]byte(shown), &got) == nil && got.Errors == nil && reflect.DeepEqual(got.Data, want) {
			return
		}
	}
	v.Fatalf("GraphiQL shows\n%s\nand not the data\n%s", shown, data)
}

// editor is a JavaScript expression, the whole text of one of GraphiQL's editors: the page has the lines in view only, but
// GraphiQL leaves the models of its editors here.
func editor(name string) string {
	return fmt.Sprintf(`(globalThis.__MONACO?.editor.getModels().find(m => m.uri.path.endsWith(%q))?.getValue() ?? "")`, name)
}
