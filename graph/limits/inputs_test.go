package limits_test

import (
	"strings"
	"testing"
	"time"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/internal/check"
)

// Every text has a bound. At the bound an argument is accepted, one byte above it is refused. That
// holds for arguments in the query and in variables, alone, in a list and in an input object.
func TestTextsAreBounded(t *testing.T) {
	prepare := newPrepareCached(t)
	for query, most := range map[string]int{
		`query ($x: ID!) { user(by: {id: $x}) { id } }`:                                                            64,
		`query ($x: [ID!]!) { users(by: {ids: $x}) { id } }`:                                                       64,
		`query ($x: [ID!]!) { node(id: 1) { id } nodes(ids: $x) { id } }`:                                          64,
		`query ($x: ID!) { people(where: {and: [{or: [{followersOf: $x}]}]}) { totalCount } }`:                     64,
		`query ($x: String) { viewer { user { followings(after: $x) { totalCount } } } }`:                          256,
		`query ($x: String) { viewer { user { followings(last: 1, before: $x) { totalCount } } } }`:                256,
		`query ($x: String) { viewer { user { ...F } } } fragment F on User { friends(after: $x) { totalCount } }`: 256,
		`query ($x: String!) { user(by: {handle: $x}) { id } }`:                                                    60,
		`query ($x: String!) { users(by: {handles: ["a", $x]}) { id } }`:                                           60,
		`query ($x: ID!) { _entities(representations: [{__typename: "User", id: $x}]) { __typename } }`:            64,
		`query ($x: String!) { _entities(representations: {__typename: "User", handle: $x}) { __typename } }`:      60,
		`query ($x: String!) { searchUsers(text: $x) { nodes { id } } }`:                                           8000, // its resolver takes less
		`query ($x: String!) { viewer { user { followings(filter: {match: $x}) { totalCount } } } }`:               400,
		`mutation ($x: String!) { login(handle: $x, password: "12345678") { token } }`:                             60,
		`mutation ($x: String!) { login(handle: "a", password: $x) { token } }`:                                    200,
		`mutation ($x: String!) { changePassword(current: $x, new: "x") { changed } }`:                             200,
		`mutation ($x: String) { updateProfile(name: $x) { viewer { user { id } } } }`:                             400,
		`mutation ($x: String) { updateProfile(bio: $x) { viewer { user { id } } } }`:                              2000,
		`mutation ($x: String) { updateProfile(avatarUrl: $x) { viewer { user { id } } } }`:                        2000,
		`mutation ($x: String) { setFollowMark(userId: 1, remark: $x) { changed } }`:                               400,
		`mutation ($x: String!) { publishPost(text: $x, clientKey: "k") { changed } }`:                             8000,
		`mutation ($x: String!) { publishPost(clientKey: $x) { changed } }`:                                        64,
		`mutation ($x: String) { requestFriend(userId: 1, message: $x) { changed } }`:                              1200,
		`subscription ($x: [ID!]!) { relationshipChanged(userIds: $x) { relationship { id } } }`:                   64,
	} {
		given := func(n int) map[string]any {
			text := strings.Repeat("7", n)
			if strings.Contains(query, "[ID!]!)") {
				return map[string]any{"x": []any{"1", text}}
			}
			return map[string]any{"x": text}
		}
		wantCode(t, prepare(query, given(most)), "")
		if err := wantCode(t, prepare(query, given(most+1)), apierr.CodeBadInput); err != nil && len(err.Message) > 200 {
			t.Errorf("%s: the message has %d bytes", query, len(err.Message))
		}
		wantCode(t, prepare(query, given(50_000)), apierr.CodeBadInput)
	}
	literal := `{ viewer { user { followings(after: "` + strings.Repeat("c", 257) + `") { totalCount } } } }`
	wantCode(t, prepare(literal, nil), apierr.CodeBadInput)
}

// A large input is refused quickly and without being converted, whatever its size, and however many
// fields it is passed to.
func TestLargeVariablesAreRefusedSoon(t *testing.T) {
	prepare := newPrepareCached(t)
	leaves := make([]any, 60_000)
	for i := range leaves {
		leaves[i] = map[string]any{"followersOf": "1"}
	}
	var deep any = "1"
	for range 5000 {
		deep = []any{deep}
	}
	people := "query ($x: PeopleFilter!) {" + repeat(200, func(i int) string {
		return " a" + strings.Repeat("b", i) + ": people(where: $x) { totalCount }"
	}) + " }"
	lists := "query ($x: String) {" + repeat(150, func(i int) string {
		return " a" + strings.Repeat("b", i) + ": users(by: {ids: [1, 2]}) { followings(after: $x) { totalCount } }"
	}) + " }"
	many := make([]any, 4000)
	for i := range many {
		many[i] = map[string]any{"followersOf": "1"}
	}
	for name, attack := range map[string]struct {
		query string
		vars  map[string]any
		code  apierr.Code
	}{
		"leaves":         {people, map[string]any{"x": map[string]any{"or": leaves}}, apierr.CodeTooCostly},
		"fewer leaves":   {people, map[string]any{"x": map[string]any{"or": many[:400]}}, apierr.CodeTooCostly},
		"deep":           {people, map[string]any{"x": map[string]any{"or": deep}}, apierr.CodeTooCostly},
		"a long cursor":  {lists, map[string]any{"x": strings.Repeat("c", 250_000)}, apierr.CodeBadInput},
		"not used":       {"query { viewer { user { id } } }", map[string]any{"x": strings.Repeat("c", 250_000)}, apierr.CodeBadInput},
		"many, not used": {"query { viewer { user { id } } }", map[string]any{"x": leaves}, apierr.CodeTooCostly},
	} {
		t.Run(name, func(t *testing.T) {
			wantCode(t, prepare(attack.query, attack.vars), attack.code) // the text is then known
			within(t, 5*time.Millisecond, func() { prepare(attack.query, attack.vars) })
		})
	}
}

// Representations may name as many entities as allowed, and their keys are bounded.
func TestRepresentationsAreBounded(t *testing.T) {
	prepare := newPrepare(t, limits.Limits{})
	of := func(n int, id string) map[string]any {
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{"__typename": "User", "id": id, "handle": "a"}
		}
		return map[string]any{"x": list}
	}
	const query = "query ($x: [_Any!]!) { _entities(representations: $x) { ... on User { handle } } }"
	wantCode(t, prepare(query, of(500, "1")), "")
	wantCode(t, prepare(query, of(2, strings.Repeat("1", 64))), "")
	wantCode(t, prepare(query, of(2, strings.Repeat("1", 65))), apierr.CodeBadInput)
	wantCode(t, prepare(query, of(2000, "1")), "")
	wantCode(t, prepare(query, of(25_000, "1")), apierr.CodeTooCostly)
	deep := map[string]any{"x": []any{map[string]any{"__typename": "User", "id": map[string]any{"id": []any{"1"}}}}}
	wantCode(t, prepare(query, deep), "") // only its resolver refuses it
}

// Variables are accepted at the bound.
func TestVariablesAreBounded(t *testing.T) {
	objects := func(n int) map[string]any {
		list := make([]any, n)
		for i := range list {
			list[i] = map[string]any{"followersOf": "1"} // counts for eleven
		}
		return map[string]any{"x": map[string]any{"or": list}}
	}
	nested := func(depth int) map[string]any {
		var v any = "1"
		for range depth - 1 {
			v = map[string]any{"not": v}
		}
		return map[string]any{"x": v}
	}
	for name, test := range map[string]struct {
		vars map[string]any
		want bool
	}{
		"many":     {objects((limits.Values - 11) / 11), true}, // without the object and the list around them
		"too many": {objects((limits.Values-11)/11 + 1), false},
		"deep":     {nested(limits.ValueDepth), true},
		"too deep": {nested(limits.ValueDepth + 1), false},
	} {
		err := limits.CheckVariables(test.vars)
		check.That(t, (err == nil) == test.want, "%s: %v", name, err)
		known, ok := apierr.Of(err)
		check.That(t, err == nil || ok && known.Code == apierr.CodeTooCostly, "%s: %v", name, err)
	}
	wantCode(t, newPrepare(t, limits.Limits{})("query ($x: PeopleFilter!) { people(where: $x) { totalCount } }", nested(limits.ValueDepth+1)), apierr.CodeTooCostly)
}
