package faults_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestImportsSurviveKills: a user brings a file, and gateways are killed: the one that took it as soon as it has answered, and the
// one that goes on with it in the middle. All lines are done, each refused one is told once, and nobody is left out.
func TestImportsSurviveKills(t *testing.T) {
	t.Parallel()
	const people = 400
	d := deploy(t, "sync", people+1)
	c := d.client(t)
	file := "Account address\nnobody@example.org\n"
	for id := 2; id <= people+1; id++ {
		file += fmt.Sprintf("u%d@example.org\n", id)
	}
	ask := func(node int, text string, vars map[string]any) json.RawMessage {
		t.Helper()
		for _, data := range d.gateways[node].asks(t, c, 1, text, vars).Data {
			return data
		}
		return nil
	}
	ask(0, `mutation($file: String!) { importAccounts(kind: FOLLOWS, file: $file) { changed } }`, map[string]any{"file": file})
	followed := func() int64 { return d.total(t, "SELECT COUNT(*) FROM following WHERE from_user_id = 1 AND type = 1") }
	d.gateways[0].kill(t)
	until(t, "the other gateway goes on", func() bool { return followed() > 50 })
	d.gateways[1].kill(t)
	t.Logf("%d of %d when both are gone", followed(), people)
	d.start(t)
	var last string
	until(t, "the import is done", func() bool {
		last = string(ask(1, `{ viewer { accountsImports { lineCount doneCount refusedCount continuesAt refused { line handle error { code } } } } }`, nil))
		return strings.Contains(last, `"continuesAt":null`)
	})
	const want = `{"accountsImports":[{"lineCount":401,"doneCount":401,"refusedCount":1,"continuesAt":null,"refused":[{"line":2,"handle":"nobody","error":{"code":"NOT_FOUND"}}]}]}`
	if n := followed(); last != want || n != people {
		t.Errorf("%d of %d are followed: %s", n, people, last)
	}
	d.allWell(t)
}
