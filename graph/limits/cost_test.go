package limits_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/internal/check"
	"kith/internal/must"
)

// costOf finds out the cost of a query: a limit of 0 refuses it, and the error names the cost.
func costOf(t *testing.T, query string, vars map[string]any) uint64 {
	t.Helper()
	errs := newPrepareCostless(t)(query, vars)
	must.That(t, len(errs) > 0, "%s: let through a limit of nothing", query)
	err, ok := apierr.Of(errs[0])
	must.That(t, ok && err.Code == apierr.CodeTooCostly, "%s: %v", query, errs)
	return err.Details["cost"].(uint64)
}

var costless prepare

func newPrepareCostless(t *testing.T) prepare {
	if costless == nil {
		costless = newPrepare(t, limits.Limits{Cost: -1})
	}
	return costless
}

func TestCost(t *testing.T) {
	number := func(n string) map[string]any { return map[string]any{"n": json.Number(n)} }
	tests := map[string]struct {
		query string
		vars  map[string]any
		want  uint64
	}{
		"a value":              {"{ viewer { user { id } } }", nil, 2 + 1},
		"typename":             {"{ __typename }", nil, 1},
		"an alias each":        {"{ a: viewer { user { id } } b: viewer { user { id } } }", nil, 6},
		"page of 20":           {"{ viewer { user { followings { nodes { id name } } } } }", nil, 2 + 25 + 20*3},
		"first":                {"{ viewer { user { followings(first: 5) { nodes { id name } } } } }", nil, 2 + 25 + 5*3},
		"last":                 {"{ viewer { user { followings(last: 7) { nodes { id name } } } } }", nil, 2 + 25 + 7*3},
		"null":                 {"{ viewer { user { followings(first: null) { nodes { id } } } } }", nil, 2 + 25 + 20*2},
		"none":                 {"{ viewer { user { followings(first: 0) { totalCount nodes { id } } } } }", nil, 2 + 25 + 1},
		"first by variable":    {"query ($n: Int) { viewer { user { followings(first: $n) { nodes { id } } } } }", number("50"), 2 + 25 + 50*2},
		"variable not given":   {"query ($n: Int) { viewer { user { followings(first: $n) { nodes { id } } } } }", nil, 2 + 25 + 20*2},
		"variable's default":   {"query ($n: Int = 3) { viewer { user { followings(first: $n) { nodes { id } } } } }", nil, 2 + 25 + 3*2},
		"negative":             {"{ viewer { user { followings(first: -1) { nodes { id } } } } }", nil, 2 + 25 + 100*2},
		"too many":             {"{ viewer { user { followings(first: 5000) { nodes { id } } } } }", nil, 2 + 25 + 100*2},
		"too many by variable": {"query ($n: Int) { viewer { user { followings(first: $n) { nodes { id } } } } }", number("2147483647"), 2 + 25 + 100*2},
		"edges and nodes":      {"{ viewer { user { followings(first: 10) { edges { cursor node { id } } nodes { id } pageInfo { hasNextPage } totalCount } } } }", nil, 2 + 25 + 10*(1+1+1+1) + 10*(1+1) + 10 + 2 + 1},
		"pages of pages":       {"{ viewer { user { followings(first: 10) { nodes { followers(first: 10) { nodes { id } } } } } } }", nil, 2 + 25 + 10*(1+25+10*2)},
		"set algebra":          {"{ viewer { user { friends(first: 1) { nodes { id } } } } }", nil, 2 + 550 + 2},
		"suggestions, via 3":   {"{ viewer { user { followSuggestions(first: 2) { edges { via { id } } } } } }", nil, 2 + 51_000 + 2*(1+1+3*2)},
		"via 9":                {"{ viewer { user { followSuggestions(first: 2) { edges { via(first: 9) { id } } } } } }", nil, 2 + 51_000 + 2*(1+1+9*2)},
		"users in the text":    {`{ users(by: {ids: ["1", "2", "3"]}) { id } }`, nil, 1 + 1 + 3*2},
		"a single id":          {`{ users(by: {ids: "1"}) { id } }`, nil, 1 + 1 + 1*2},
		"users by variable":    {"query ($ids: [ID!]!) { users(by: {ids: $ids}) { id } }", map[string]any{"ids": texts(500)}, 1 + 1 + 500*2},
		"nodes":                {"query ($ids: [ID!]!) { nodes(ids: $ids) { id ... on User { name } } }", map[string]any{"ids": texts(10)}, 1 + 10*3},
		"users by handle":      {`{ users(by: {handles: ["a", "b", "c"]}) { id } }`, nil, 1 + 1 + 3*2},
		"entities":             {`{ _entities(representations: [{__typename: "User", id: 1}, {__typename: "User", handle: "a"}]) { ... on User { id friends(first: 0) { totalCount } } } }`, nil, 1 + 2*3 + 2*(1+1+551)},
		"entities by variable": {`query ($r: [_Any!]!) { _entities(representations: $r) { ... on User { id } } }`, map[string]any{"r": []any{map[string]any{"__typename": "User", "id": "1"}}}, 1 + 3 + 2},
		"the schema":           {`{ _service { sdl } }`, nil, 300 + 1},
		"relationships":        {"query ($ids: [ID!]!) { relationships(from: $ids, to: [1, 2, 3]) { status } }", map[string]any{"ids": texts(20)}, 1 + 60*2},
		"skip":                 {"{ viewer { user { id friends @skip(if: true) { totalCount } } } }", nil, 3},
		"include, by variable": {"query ($on: Boolean!) { viewer { user { id friends @include(if: $on) { totalCount } ... @include(if: $on) { id } ...F @skip(if: $on) } } } fragment F on User { name }", map[string]any{"on": false}, 4},
		"included":             {"query ($on: Boolean!) { viewer { user { id friends @include(if: $on) { totalCount } ... @include(if: $on) { id } ...F @skip(if: $on) } } } fragment F on User { name }", map[string]any{"on": true}, 2 + 1 + 551 + 1},
		"fragment on a page":   {"{ viewer { user { a: followings(first: 2) { ...F } b: followings(first: 3) { ...F } } } } fragment F on FollowConnection { totalCount nodes { id } }", nil, 2 + (25 + 1 + 2*2) + (25 + 1 + 3*2)},
		"bio and avatar":       {"{ viewer { user { bio avatarUrl } } }", nil, 2 + 10 + 5},
		"bytes of arguments":   {"query ($c: String) { viewer { user { a: followings(after: $c) { totalCount } b: followings(after: $c) { totalCount } } } }", map[string]any{"c": strings.Repeat("c", 128)}, 2 + 2*(25+128/64+1)},
		"bytes of aliases":     {"{ viewer { user { " + strings.Repeat("a", 640) + ": id } } }", nil, 2 + 1 + 10},
		"bytes of a typename":  {"{ viewer { user { followings { nodes { " + strings.Repeat("a", 640) + ": __typename } } } } }", nil, 2 + 25 + 20*(1+1+10)},
		"ids of a plain field": {"subscription ($ids: [ID!]!) { relationshipChanged(userIds: $ids) { relationship { status } } }", map[string]any{"ids": texts(500)}, 1 + 500 + 2 + 95/16},
		"activity, live":       {"subscription { activityAdded { viewer { id } } }", nil, 200 + 2 + 48/16},
		"a feed, live":         {"subscription { postAdded { viewer { id } } }", nil, 40 + 2 + 43/16},
		"of a list, live":      {"subscription ($l: ID!) { postAdded(only: {list: $l}) { viewer { id } } }", map[string]any{"l": "list_1_1"}, 40 + 500 + 1 + 2 + 71/16},
		"users of a list":      {"{ viewer { user { followings(first: 5, filter: {match: \"a\"}) { nodes { id } } } } }", nil, 2 + 25 + 25_000 + 1 + 5*2},
		"a feed":               {"{ viewer { feed(first: 5) { nodes { id } } } }", nil, 1 + 40 + 5*2},
		"a feed of a list":     {"query ($l: ID!) { viewer { feed(first: 5, only: {list: $l}) { nodes { id } } } }", map[string]any{"l": "list_1_1"}, 2 + 40 + 5000 + 5*2},
		"a feed of no list":    {"query ($o: FeedOnly) { viewer { feed(first: 5, only: $o) { nodes { id } } } }", nil, 1 + 40 + 5*2},
		"a feed by variable":   {"query ($o: FeedOnly) { viewer { feed(first: 5, only: $o) { nodes { id } } } }", map[string]any{"o": map[string]any{"list": "list_1_1"}}, 2 + 40 + 5000 + 5*2},
		"a feed of special":    {"{ viewer { feed(first: 5, only: {special: true}) { nodes { id } } } }", nil, 2 + 40 + 5*2},
		"an order":             {"{ viewer { user { followings(first: 5, orderBy: CLOSEST) { nodes { id } } } } }", nil, 2 + 25 + 25_000 + 5*2},
		"the usual order":      {"query ($o: ListOrder! = RECENT) { viewer { user { followings(first: 5, orderBy: $o) { nodes { id } } } } }", nil, 2 + 25 + 5*2},
		"written out":          {"{ viewer { user { followings(first: 5, orderBy: RECENT, filter: {}) { nodes { id } } } } }", nil, 2 + 25 + 5*2},
		"a filter by nothing":  {"query ($m: String) { viewer { user { friends(first: 5, filter: {match: $m}) { nodes { id } } } } }", map[string]any{"m": nil}, 2 + 550 + 1 + 5*2},
		"an order by variable": {"query ($o: ListOrder!) { viewer { user { followings(first: 5, orderBy: $o) { nodes { id } } } } }", map[string]any{"o": "CLOSEST"}, 2 + 25 + 25_000 + 5*2},
		"no filter":            {"query ($f: ListFilter) { viewer { user { followings(first: 5, filter: $f) { nodes { id } } } } }", nil, 2 + 25 + 5*2},
		"a filter":             {"{ people(first: 1, where: {and: [{followersOf: 1}, {friendsOf: 2}]}) { totalCount } }", nil, 200 + 1 + 2 + 2 + 1},
		"lists in a filter":    {`query ($id: ID!, $f: PeopleFilter!) { people(first: 0, where: {or: [{list: "list_1_2"}, {list: $id}, {followersOf: 1}, $f]}) { totalCount } }`, map[string]any{"id": "list_1_2", "f": map[string]any{"relatedTo": map[string]any{"kind": "MUTE", "userId": "1"}}}, 200 + 1 + 4 + 4 + 3*5_000 + 2 + 1},
		"a filter by variable": {"query ($f: PeopleFilter!) { a: people(where: $f) { totalCount } b: people(where: $f) { totalCount } }", map[string]any{"f": map[string]any{"or": []any{map[string]any{"followersOf": "1"}}}}, 2 * (200 + 1 + 1 + 1 + 1)},
		"members of a list":    {`mutation { followList(listId: "list_1_2") { outcomes { userId changed } pageInfo { hasNextPage } } }`, nil, 550 + 500*(1+2) + 500 + 2},
		"one fragment twice":   {"{ viewer { user { ...F relationship(to: 1) { to { ...F } } } } } fragment F on User { id name }", nil, 2 + 2 + 10 + 1 + 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { check.Equal(t, tt.query, costOf(t, tt.query, tt.vars), tt.want) })
	}
}

// TestCostSaturates: a cost that grows beyond every number is still just too high.
func TestCostSaturates(t *testing.T) {
	query := "id"
	for range 6 {
		query = "followings(first: 100) { nodes { " + query + " } }"
	}
	query = "query ($ids: [ID!]!) { users(by: {ids: $ids}) { " + query + " } }"
	check.Equal(t, "costs", costOf(t, query, map[string]any{"ids": texts(4900)}), 1<<53-1)
}

func TestDefaultCostLimit(t *testing.T) {
	list := "query ($ids: [ID!]!, $n: Int) { users(by: {ids: $ids}) { followings(first: $n) { nodes { handle viewerRelationship { status } } } } }"
	prepare := newPrepare(t, limits.Limits{})
	wantCode(t, prepare(list, map[string]any{"ids": texts(500), "n": json.Number("20")}), "")
	wantCode(t, prepare(list, map[string]any{"ids": texts(500), "n": json.Number("100")}), apierr.CodeTooCostly)

	aliases := "{ viewer { user { followings(first: 100) { nodes {" + repeat(600, func(i int) string { return fmt.Sprintf(" a%d: handle", i) }) + "} } } } }"
	wantCode(t, prepare(aliases, nil), "")
	aliases = "{ viewer { user { followings(first: 100) { nodes { followers(first: 50) { nodes {" + repeat(600, func(i int) string { return fmt.Sprintf(" a%d: handle", i) }) + "} } } } } } }"
	wantCode(t, prepare(aliases, nil), apierr.CodeTooCostly)
}

// TestSubscriptionCost: a subscription may cost far less than a query, because it is answered
// repeatedly. The ids that it watches and its text count, because both are kept in memory.
func TestSubscriptionCost(t *testing.T) {
	prepare := newPrepare(t, limits.Limits{})
	short := "subscription ($ids: [ID!]!) { relationshipChanged(userIds: $ids) { relationship { id } } }"
	watch := "subscription ($ids: [ID!]!) { relationshipChanged(userIds: $ids) { relationship { id status to { handle } } } }"
	wantCode(t, prepare(watch, map[string]any{"ids": texts(500)}), "")
	n := 1000 - 3 - len(short)/16
	wantCode(t, prepare(short, map[string]any{"ids": texts(n)}), "")
	err := wantCode(t, prepare(short, map[string]any{"ids": texts(n + 1)}), apierr.CodeTooCostly)
	check.That(t, err == nil || strings.Contains(err.Message, "costs 1001 and one subscription may cost at most 1000"), "%v", err)
	wantCode(t, prepare("subscription { followerAdded { edge { cursor followedAt node { id handle name avatarUrl viewerRelationship { status } followings(first: 20) { nodes { id name } } } } } }", nil), "")
	wantCode(t, prepare("subscription { requestChanged { request { id state message from { handle name } to { handle name } } } }", nil), "")
	long := "subscription { followerAdded { edge { cursor } } } #" + strings.Repeat("x", 16_000)
	wantCode(t, prepare(long, nil), apierr.CodeTooCostly)
	small := newPrepare(t, limits.Limits{Cost: 10})
	wantCode(t, small(watch, map[string]any{"ids": texts(10)}), apierr.CodeTooCostly)
}

// TestKnownTextsAreStillCosted: a text from the cache is refused if other variables make it too costly.
func TestKnownTextsAreStillCosted(t *testing.T) {
	prepare := newPrepare(t, limits.Limits{Cost: 100})
	query := "query ($n: Int) { viewer { user { followings(first: $n) { nodes { id } } } } }"
	for range 2 {
		wantCode(t, prepare(query, map[string]any{"n": json.Number("10")}), "")
		wantCode(t, prepare(query, map[string]any{"n": json.Number("90")}), apierr.CodeTooCostly)
	}
}

// TestUnreadableNumbers: gqlgen would panic when it reads such arguments, and a client's mistake
// would look like a fault of the server.
func TestUnreadableNumbers(t *testing.T) {
	prepare := newPrepare(t, limits.Limits{})
	for _, query := range []string{
		"{ user(by: {id: 99999999999999999999}) { id } }",
		"{ users(by: {ids: [1, 99999999999999999999]}) { id } }",
		"{ viewer { user { followings(first: 99999999999999999999) { totalCount } } } }",
	} {
		check.That(t, len(prepare(query, nil)) > 0, "%s: let through", query)
	}
	wantCode(t, prepare("{ user(by: {id: 9223372036854775807}) { id } }", nil), "")
}

func texts(n int) []any {
	ids := make([]any, n)
	for i := range ids {
		ids[i] = strconv.Itoa(i + 1)
	}
	return ids
}

// TestPagesOfAppsFit: what an app asks for fits into one query together with everything else on the same page, with filters.
// The operations of the web app and of the examples are such parts.
func TestPagesOfAppsFit(t *testing.T) {
	schema := loadSchema(t)
	free, err := limits.New(schema, limits.Limits{Cost: -1, SubscriptionCost: -1}, nil)
	must.OK(t, err)
	costs := map[string]uint64{} // by folder and name
	for _, folder := range []string{"web/app/src", "examples", "examples/go"} {
		files, err := filepath.Glob("../../" + folder + "/*.graphql")
		must.OK(t, err)
		var all strings.Builder // the operations of one client share fragments
		for _, file := range files {
			all.Write(must.File(t, file))
		}
		doc, err := parser.ParseQuery(&ast.Source{Name: folder, Input: all.String()})
		must.OK(t, err)
		errs := validator.ValidateWithRules(schema, doc, nil)
		must.That(t, errs == nil, "%s: %v", folder, errs)
		for _, op := range doc.Operations {
			vars := map[string]any{}
			for _, v := range op.VariableDefinitions {
				switch name := v.Type.Name(); {
				case v.Type.Elem != nil:
					vars[v.Variable] = make([]any, 100)
				case name == "Int":
					vars[v.Variable] = int64(20)
				case strings.HasSuffix(name, "Filter"):
					vars[v.Variable] = map[string]any{"match": "ann"}
				case v.Type.NonNull:
					vars[v.Variable] = "1"
				}
			}
			_, err := free.Of(&graphql.OperationContext{Doc: doc, Operation: op, Variables: vars})
			refused, ok := apierr.Of(err)
			must.That(t, ok && refused.Code == apierr.CodeTooCostly, "%s: %v", op.Name, err)
			costs[folder+" "+op.Name] = refused.Details["cost"].(uint64)
		}
	}
	check.Least(t, "operations", len(costs), 80)
	// One page shows who is suggested and finds people, beside a profile, a feed and lists, or it finds people in two lists.
	for _, page := range [][]string{
		{"Suggestions", "Search", "Viewer", "Profile", "Feed", "FeedSeen", "Posts", "Known", "Lists", "Requests"},
		{"Search", "Search", "Viewer", "Profile", "Feed", "Similar", "Comments", "Favorites"},
		{"Followers", "Followings", "Friends", "Profile", "Viewer"},
	} {
		sum := uint64(0)
		for _, operation := range page {
			must.That(t, costs["web/app/src "+operation] != 0, "the app has no operation %s", operation)
			sum += costs["web/app/src "+operation]
		}
		check.That(t, sum <= 100_000, "the page %s costs %d", page, sum)
	}
	// What people look at most needs no turn among the expensive requests.
	for _, operation := range []string{"Viewer", "Profile", "Post", "FeedSeen"} {
		check.Most(t, operation, costs["web/app/src "+operation], 1000)
	}
}
