package suite_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"kith/bench"
	"kith/bench/report"
	"kith/bench/suite"
	"kith/internal/must"
)

// What the web app asks is measured of the real program, in all operations, after the answers have been compared.
func TestRunApp(t *testing.T) {
	c := tiny(t)
	c.Engines = []string{report.SQLite}
	all, err := suite.RunApp(t.Context(), c, []string{bench.AppName, "AppFollowings"})
	must.OK(t, err)
	var asked []string
	for _, one := range all {
		asked = append(asked, one.State+" "+one.Operation)
		for _, f := range []report.Figures{one.Baseline, one.Kith} {
			if f.Errors > 0 || f.PerSecond <= 0 || f.GatewayCPU == nil || one.Ratio <= 0 {
				t.Errorf("%s %s: %+v", one.State, one.Operation, f)
			}
			if kinds := len(f.Kinds); kinds != 1 && (one.Operation != bench.AppName || kinds < 2) {
				t.Errorf("%s %s: %d operations", one.State, one.Operation, kinds)
			}
		}
		if one.Kith.Statements == nil || one.Baseline.Statements != nil {
			t.Errorf("%s %s: the statements are of %+v", one.State, one.Operation, one)
		}
	}
	must.Equal(t, "what is asked", asked, []string{"cold app", "cold AppFollowings", "warm app", "warm AppFollowings"})
	if cold, warm := *all[1].Kith.Statements, *all[3].Kith.Statements; cold < 1 || warm >= cold {
		t.Errorf("followings take %v statements without caches, and %v with them", cold, warm)
	}
	if _, err := suite.RunApp(t.Context(), c, []string{"AppNone"}); err == nil || !strings.Contains(err.Error(), "AppNone") {
		t.Errorf("an operation that is not there: %v", err)
	}
}

// If the baseline answers one operation in another way, or not at all, nothing is measured, and the error has what one needs to ask again.
func TestWrongBaselineIsFound(t *testing.T) {
	app, err := bench.NewApp(bench.NewGraph(300, 42), bench.AppName, []byte("a secret for tests of 32 bytes or more"))
	must.OK(t, err)
	const same = `{"data":{"viewer":{"user":{"id":"1","bio":null,"list":[1,2]}}}}`
	// answering serves the same answer to all operations, except to those given.
	answering := func(answers map[string]string) (url string, asked map[string]int) {
		asked = map[string]int{}
		var mu sync.Mutex
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			var request struct{ Query string }
			if err := json.NewDecoder(r.Body).Decode(&request); err != nil || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
				http.Error(w, "bad request", http.StatusBadRequest)
				return
			}
			name, _, _ := strings.Cut(strings.Fields(request.Query)[1], "(")
			asked[name]++
			answer, is := answers[name]
			if !is {
				answer = same
			}
			fmt.Fprint(w, answer)
		}))
		t.Cleanup(server.Close)
		return server.URL, asked
	}
	kith, asked := answering(nil)
	right, _ := answering(map[string]string{"AppViewer": `{"data": {"viewer": {"user": {"list": [1,2], "id": "1", "bio": null}}}}`})
	must.OK(t, suite.SameAnswers(t.Context(), app, 1, right, kith))
	total := 0
	for _, name := range bench.AppOperations() {
		if total += asked[name]; asked[name] < 15 {
			t.Errorf("%s was asked %d times", name, asked[name])
		}
	}
	if total != 300 || asked["AppProfile"] < asked["AppPosts"] || asked["AppFeed"] < asked["AppViewer"] {
		t.Errorf("asked %v", asked)
	}
	for _, c := range []struct{ operation, answer, want string }{
		{"AppPosts", strings.Replace(same, "[1,2]", "[2,1]", 1), "[2,1]"},
		{"AppViewer", strings.Replace(same, `"bio":null,`, "", 1), same},
		{"AppFeed", strings.Replace(same, `}}}`, `}},"errors":[{"message":"no"}]}`, 1), `"errors":[{"message":"no"}]`},
		{"AppProfile", "no such handle", "no such handle"},
	} {
		wrong, _ := answering(map[string]string{c.operation: c.answer})
		err := suite.SameAnswers(t.Context(), app, 1, wrong, kith)
		if err == nil || !strings.HasPrefix(err.Error(), c.operation+", handle ") || !strings.Contains(err.Error(), "the baseline: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, answered %s: %v", c.operation, c.answer, err)
		}
		err = suite.SameAnswers(t.Context(), app, 1, kith, wrong)
		if err == nil || !strings.HasPrefix(err.Error(), c.operation) {
			t.Errorf("%s, answered %s by Kith: %v", c.operation, c.answer, err)
		}
	}
	gone, _ := answering(map[string]string{"AppProfile": `{"data":{"user":null}}`})
	if err := suite.SameAnswers(t.Context(), app, 1, gone, gone); err == nil || !strings.Contains(err.Error(), "AppProfile, handle \"u") {
		t.Errorf("nobody has the user: %v", err)
	}
}
