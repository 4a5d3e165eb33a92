package resolvers_test

import (
	"encoding/json"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
)

// TestCostOnRequest: the answer to a query says what it may cost by the limit, and to an admin what was read for it. The answer to a
// mutation says what was read and written. TestStatementsOfEachQueryOnFourShards compares the statements of every kind of query.
func TestCostOnRequest(t *testing.T) {
	api, recorder := countedAPI(t, 1, apitest.Options{})
	cost := func(a apitest.Answer) string {
		text, err := json.Marshal(a.Extensions["cost"])
		must.OK(t, err)
		return string(text)
	}
	const users = `{ users(by: {ids: [1, 2, 3]}) { name } }`
	asked := api.CountingReads().Ask(users, nil)
	got, want := cost(asked), `{"actual":{"rows":3,"statements":1},"estimated":8}`
	check.That(t, got == want && len(recorder.Take()) == 1, "three users cost %s, want %s", got, want)
	for _, other := range []apitest.Answer{api.Ask(users, nil), api.With("Kith-Cost", "0").Ask(users, nil)} {
		check.That(t, other.Extensions == nil, "nobody has asked for %v", other.Extensions)
	}
	recorder.Take()
	follow := api.As(1).CountingReads().Ask(`mutation { follow(userId: 200) { changed user { followerCount } } }`, nil).Whole()
	var said struct {
		Estimated int
		Actual    struct{ Statements, Rows int }
	}
	run := recorder.Take()
	if err := json.Unmarshal([]byte(cost(follow)), &said); err != nil || said.Estimated != 23 || said.Actual.Statements != len(run) || said.Actual.Rows == 0 {
		t.Errorf("a follow costs %+v, %v; there were %d statements: %s", said, err, len(run), run)
	}
	check.Equal(t, "without the scope admin", cost(api.As(1).With("Kith-Cost", "1").Ask(users, nil)), `{"estimated":8}`)
}

// statementsOf is the number of statements that an answer reports.
func statementsOf(a apitest.Answer) any {
	cost, _ := a.Extensions["cost"].(map[string]any)
	actual, _ := cost["actual"].(map[string]any)
	return actual["statements"]
}
