package limits_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/internal/check"
)

// hostile are query texts that are made to keep a server busy. Whether they are refused or not,
// that must be quick.
var hostile = map[string]string{
	"fragments doubling on 60 levels": "{ user(by: {id: 1}) { ...F0 } }" + repeat(60, func(i int) string {
		return fmt.Sprintf(" fragment F%d on User { ...F%d ...F%d }", i, i+1, i+1)
	}) + " fragment F60 on User { id }",

	"fragments doubling on 60 levels of fields": "{ user(by: {id: 1}) { ...F0 } }" + repeat(60, func(i int) string {
		return fmt.Sprintf(" fragment F%d on User { a: relationship(to: 1) { to { ...F%d } } b: relationship(to: 2) { to { ...F%d } } }", i, i+1, i+1)
	}) + " fragment F60 on User { id }",

	"fragments fanning out that are not used": "{ viewer { user { id } } }" + repeat(7, func(i int) string {
		return fmt.Sprintf(" fragment F%d on User {", i) + repeat(20, func(j int) string {
			return fmt.Sprintf(" a%d: relationship(to: 1) { to { ...F%d } }", j, i+1)
		}) + "}"
	}) + " fragment F7 on User { id }",

	"a second fragment of the name": "{ viewer { user { ...F } } } fragment F on User { id } fragment F on User {" + strings.Repeat(" id", 3_000) + "}",

	"20,000 equal fields":      "{" + strings.Repeat(" __typename", 20_000) + "}",
	"2,000 equal fields":       "{" + strings.Repeat(" __typename", 2_000) + "}",
	"3,900 equal fields below": "{ user(by: {id: 1}) {" + strings.Repeat(" id", 3_900) + "} }",

	"equal fields with equal fields": "{" + strings.Repeat(" viewer { user {"+strings.Repeat(" id", 55)+"} }", 60) + "}",

	"equal fields in many sets": "{" + repeat(35, func(i int) string {
		return fmt.Sprintf(" a%d: viewer { user {", i) + strings.Repeat(" id", 100) + "} }"
	}) + "}",

	"equal fields in nested inline fragments": "{ viewer { user {" + strings.Repeat("... {", 400) + strings.Repeat(" id", 300) + strings.Repeat("}", 400) + "} } }",

	"equal fields through fragments": "{ viewer { user {" + repeat(100, func(i int) string { return " ...F" + strconv.Itoa(i) }) + "} } }" +
		repeat(100, func(i int) string {
			return fmt.Sprintf(" fragment F%d on User {", i) + strings.Repeat(" id", 30) + "}"
		}),

	"one fragment spread 1,900 times": "{ viewer { user {" + strings.Repeat(" ...F", 1_900) + "} } } fragment F on User { id }",

	// The next two queries are just within the limit.
	"440 unknown fragments": "{ viewer { user {" + repeat(440, func(i int) string { return " ...x" + strconv.Itoa(i) }) + "} } }",
	"440 equal fields":      "{ viewer { user {" + strings.Repeat(" id", 440) + "} } }",

	"nested inline fragments inside the limit": "{ viewer { user {" + strings.Repeat("... {", 300) + strings.Repeat(" id", 50) + strings.Repeat("}", 300) + "} } }",

	"a chain of 400 fragments": "{ viewer { user { ...F0 } } }" + repeat(400, func(i int) string {
		return fmt.Sprintf(" fragment F%d on User { ...F%d }", i, i+1)
	}) + " fragment F400 on User { id }",

	"300 operations over the same fragments": repeat(300, func(i int) string { return fmt.Sprintf(" query q%d { viewer { user { ...F0 } } }", i) }) +
		repeat(50, func(i int) string { return fmt.Sprintf(" fragment F%d on User { id name ...F%d }", i, i+1) }) + " fragment F50 on User { id }",

	"a fragment that spreads itself":        "{ viewer { user { ...F } } } fragment F on User { ...F }",
	"a fragment that nests itself":          "{ viewer { user { ...F } } } fragment F on User { relationship(to: 1) { to { ...F } } }",
	"two fragments that spread each other":  "{ viewer { user { ...A } } } fragment A on User { ...B } fragment B on User { ...A }",
	"a cycle that is not used":              "{ viewer { user { id } } } fragment A on User { ...B } fragment B on User { ...A }",
	"a cycle beside 2,000 equal fields":     "{" + strings.Repeat(" __typename", 2_000) + " ...F } fragment F on Query { ...F }",
	"a deep text":                           strings.Repeat("{ viewer ", 900) + strings.Repeat("}", 900),
	"a deep list":                           "{ users(by: {ids: " + strings.Repeat("[", 900) + strings.Repeat("]", 900) + "}) { id } }",
	"1,300 unknown directives":              "{ viewer { user { id" + strings.Repeat(" @no", 1_300) + "} } }",
	"1,900 unknown fields":                  "{ viewer { user {" + repeat(1_900, func(i int) string { return " x" + strconv.Itoa(i) }) + "} } }",
	"1,900 unknown fragments":               "{ viewer { user {" + repeat(1_900, func(i int) string { return " ...x" + strconv.Itoa(i) }) + "} } }",
	"600 unknown arguments":                 "{ viewer(" + repeat(1_300, func(i int) string { return fmt.Sprintf(" x%d: 1", i) }) + ") { id } }",
	"a type with a long name":               "{ ... on " + strings.Repeat("x", 65_000) + " { id } }",
	"an argument with a long name":          "{ user(" + strings.Repeat("x", 65_000) + ": 1) { id } }",
	"650 unknown types":                     "query (" + repeat(650, func(i int) string { return fmt.Sprintf(" $v%d: %s%d", i, strings.Repeat("X", 80), i) }) + ") { viewer { user { id } } }",
	"650 unused variables":                  "query (" + repeat(650, func(i int) string { return fmt.Sprintf(" $v%d: ID", i) }) + ") { viewer { user { id } } }",
	"650 undefined variables":               "{" + repeat(400, func(i int) string { return fmt.Sprintf(" a%d: user(by: {id: $v%d}) { id }", i, i) }) + "}",
	"400 aliases of a field with arguments": "{" + repeat(350, func(i int) string { return fmt.Sprintf(" a%d: user(by: {id: %d}) { id }", i, i+1) }) + "}",
	"comments":                              "{" + strings.Repeat("#\n", 30_000) + " viewer { user { id } } }",
	"a text of 10 MB":                       "{ viewer { user { id } } }" + strings.Repeat(" ", 10_000_000),
	"a million braces":                      strings.Repeat("{", 60_000),
}

func TestHostileTextsAreAnsweredQuickly(t *testing.T) {
	for name, query := range hostile {
		t.Run(name, func(t *testing.T) {
			prepare := newPrepareCached(t)
			within(t, 100*time.Millisecond, func() {
				query += " " // a different text, so that it is not known
				errs := prepare(query, nil)
				t.Logf("%d bytes: %d errors", len(query), len(errs))
			})
		})
	}
}

func TestShapeLimits(t *testing.T) {
	tests := map[string]struct {
		query string
		code  apierr.Code
	}{
		"ordinary":        {"{ user(by: {id: 1}) { id followings(first: 3) { nodes { handle } } } }", ""},
		"15 levels":       {nested(15), ""},
		"16 levels":       {nested(16), apierr.CodeTooCostly},
		"16 in fragments": {"{ viewer { user { ...A } } } fragment A on User { relationship(to: 1) { to { ...B } } } fragment B on User { ...C } fragment C on User " + strings.TrimSuffix(strings.TrimPrefix(nested(14), "{ viewer { user "), " } }"), apierr.CodeTooCostly},
		"60 equal fields": {"{ viewer { user {" + strings.Repeat(" id", 60) + "} } }", ""},
		"doubling":        {hostile["fragments doubling on 60 levels"], apierr.CodeTooCostly},
		"20,000 fields":   {hostile["20,000 equal fields"], apierr.CodeTooCostly},
		"2,000 fields":    {hostile["2,000 equal fields"], apierr.CodeTooCostly},
		"pairs":           {hostile["equal fields with equal fields"], apierr.CodeTooCostly},
		"spreads":         {hostile["one fragment spread 1,900 times"], apierr.CodeTooCostly},
		"directives":      {hostile["1,300 unknown directives"], apierr.CodeTooCostly},
		"long text":       {hostile["a text of 10 MB"], apierr.CodeTooCostly},
		"cycle":           {hostile["a fragment that spreads itself"], apierr.CodeBadInput},
		"500 ids in text": {"{ users(by: {ids: [" + repeat(500, func(i int) string { return fmt.Sprintf(" %q", strconv.Itoa(i+1)) }) + "]}) { id handle } }", ""},
		"200 fragments": {"{ viewer { user {" + repeat(200, func(i int) string { return " ...F" + strconv.Itoa(i) }) + "} } }" +
			repeat(200, func(i int) string { return fmt.Sprintf(" fragment F%d on User { id name }", i) }), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			errs := newPrepare(t, limits.Limits{})(tt.query, nil)
			err := wantCode(t, errs, tt.code)
			if tt.code == apierr.CodeTooCostly && err != nil {
				cost, limit := err.Details["cost"].(uint64), err.Details["limit"].(uint64)
				check.That(t, cost > limit && !err.Retryable, "cost %d, limit %d, retryable %v", cost, limit, err.Retryable)
			}
		})
	}
}

// TestLimitsAreSettings: if a limit is set low, it refuses a query that is otherwise accepted.
func TestLimitsAreSettings(t *testing.T) {
	query := "{ viewer { user { id @skip(if: false) ...A } } } fragment A on User { id relationship(to: 1) { to { id id } } }"
	wantCode(t, newPrepare(t, limits.Limits{})(query, nil), "")
	for name, l := range map[string]limits.Limits{
		"text":       {TextBytes: 10},
		"tokens":     {Tokens: 10},
		"depth":      {Depth: 3},
		"fields":     {Fields: 5},
		"visits":     {Visits: 5},
		"overlaps":   {Overlaps: 1},
		"directives": {Directives: -1},
		"cost":       {Cost: 3},
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, newPrepare(t, l)(query, nil), apierr.CodeTooCostly) })
	}
}

func TestSyntaxErrorsKeepTheirPlace(t *testing.T) {
	errs := newPrepare(t, limits.Limits{})("{ viewer {\n user { id ) } } }", nil)
	check.That(t, len(errs) == 1 && len(errs[0].Locations) == 1 && errs[0].Locations[0].Line == 2, "got %v", errs)
}

// nested is a query with a number of levels.
func nested(levels int) string {
	query := "id"
	for level := levels - 1; level > 2; level-- {
		if level%2 == 1 {
			query = "relationship(to: 1) { " + query + " }"
		} else {
			query = "to { " + query + " }"
		}
	}
	return "{ viewer { user { " + query + " } } }"
}
