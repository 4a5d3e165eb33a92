package resolvers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/generated"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/storage"
	"kith/storage/sqlstore"
)

// notIDs are texts that are not the id of a user.
var notIDs = []string{
	"", " ", "0", "-1", "+1", "042", "01", "1 ", " 1", "1abc", "abc", "10abc", "1.0", "1e3", "0x1", "1_000", "rel_1_2x",
	"9223372036854775808", "18446744073709551617", "99999999999999999999999999999999", "\x00", "1\x00", "\x001", "१", "１", "1\n",
	"' OR 1=1 --", "\ufffd", strings.Repeat("1", 10_000), strings.Repeat("9", 10_000), strings.Repeat("é", 5_000),
}

func TestIDsAreCanonicalDecimalText(t *testing.T) {
	api, _ := withUsers(t, 3, apitest.Options{})
	fields := []string{
		`user(by: {id: $id}) { name }`, `users(by: {ids: [1, $id]}) { name }`,
		`relationship(from: $id, to: 1) { id }`, `relationship(from: 1, to: $id) { id }`,
		`relationships(from: [$id], to: [1]) { id }`, `relationships(from: [1], to: [$id, 2]) { id }`,
		`u: user(by: {id: 1}) { relationship(to: $id) { id } }`,
		`u: user(by: {id: 1}) { commonFollowings(with: $id) { totalCount } }`, `u: user(by: {id: 1}) { commonFollowers(with: $id) { nodes { id } } }`,
	}
	for _, field := range fields {
		for _, id := range notIDs {
			answer := api.Ask(`query($id: ID!) { `+field+` }`, apitest.Vars{"id": id})
			message := answer.Refused("BAD_USER_INPUT")
			check.That(t, len(message) <= 250 && !strings.ContainsRune(message, 0), "%s, id %.20q: the message is %d bytes: %.300q", field, id, len(message), message)
		}
	}
}

// An error about one id of a list is reported at its path. The other ids are answered, in as many
// statements as without the wrong one.
func TestAMalformedIDIsAnErrorAtItsPath(t *testing.T) {
	api, recorder := countedAPI(t, 1, apitest.Options{})
	asks := []struct {
		query, alone string
		paths        []string
		data         string
	}{
		{`{ list: users(by: {ids: ["1", "007", "9999", "2", ""]}) { handle } }`, `{ list: users(by: {ids: ["1", "9999", "2"]}) { handle } }`, []string{"list.1", "list.4"},
			`{"list": [{"handle": "u1"}, null, null, {"handle": "u2"}, null]}`},
		{`{ list: nodes(ids: ["01", "rel_1_2", "x", "2", "rel_1_02", "req_0_1"]) { id ... on Relationship { status } ... on User { name } } }`, `{ list: nodes(ids: ["rel_1_2", "2"]) { id ... on Relationship { status } ... on User { name } } }`,
			[]string{}, `{"list": [null, {"id": "rel_1_2", "status": "FOLLOWING"}, null, {"id": "2", "name": "User 2"}, null, null]}`},
		{`{ list: relationships(from: ["+1", "1"], to: ["2", "1e3", "42"]) { id status to { handle } } }`, `{ list: relationships(from: ["1"], to: ["2", "42"]) { id status to { handle } } }`, []string{"list.0", "list.1", "list.1", "list.2", "list.4"},
			`{"list": [null, null, null, {"id": "rel_1_2", "status": "FOLLOWING", "to": {"handle": "u2"}}, null, {"id": "rel_1_42", "status": "NONE", "to": {"handle": "u42"}}]}`},
		{`{ a: users(by: {ids: ["0"]}) { handle } b: nodes(ids: ["-"]) { id } c: relationships(from: ["x"], to: ["y"]) { id } user(by: {id: 1}) { handle } }`, `{ user(by: {id: 1}) { handle } }`,
			[]string{"a.0", "c.0", "c.0"}, `{"a": [null], "b": [null], "c": [null], "user": {"handle": "u1"}}`},
	}
	for _, c := range asks {
		api.Ask(c.alone, nil).Whole()
		alone := recorder.Take()
		answer := api.Ask(c.query, nil)
		answer.FailsAt("BAD_USER_INPUT", c.paths...)
		answer.DataIs(c.data)
		check.Equal(t, c.query, recorder.Take().ByLookup(), alone.ByLookup())
	}
	one := api.Ask(`query($a: [ID!]!) { users(by: {ids: $a}) { id } }`, apitest.Vars{"a": []string{"1", strings.Repeat("7", 60)}})
	check.Most(t, "the length of the message", len(one.Refused("BAD_USER_INPUT")), 250)
	one.DataIs(`{"users": [{"id": "1"}, null]}`)

	many := api.As(7).Ask(`mutation { followMany(userIds: ["1", "01", "300", "9999", "a"]) { outcomes { userId changed user { handle } relationship { status } error { code message } } } }`, nil)
	unknown := `"changed": false, "user": null, "relationship": {"status": "NONE"}, "error": {"code": "NOT_FOUND", "message": "there is no such user"}`
	wrong := func(id string) string {
		return fmt.Sprintf(`{"userId": %[1]q, "changed": false, "user": null, "relationship": null, "error": {"code": "BAD_USER_INPUT", "message": "\"%[1]s\" is not a user's id: it is a decimal number from 1 to 4611686018427387903"}}`, id)
	}
	many.Is(`{"followMany": {"outcomes": [{"userId": "1", "changed": true, "user": {"handle": "u1"}, "relationship": {"status": "MUTUAL"}, "error": null}, ` + wrong("01") + `,
		{"userId": "300", "changed": true, "user": {"handle": "u300"}, "relationship": {"status": "FOLLOWING"}, "error": null}, {"userId": "9999", ` + unknown + `}, ` + wrong("a") + `]}}`)
}

// TestNodesOfAnotherFormAreNull: behind a router, another subgraph may have them.
func TestNodesOfAnotherFormAreNull(t *testing.T) {
	api, _ := withUsers(t, 3, apitest.Options{})
	for _, id := range []string{
		"rel_", "rel_1", "rel_1_", "rel__1", "rel_1_2_3", "rel_01_2", "rel_1_02", "rel_+1_2", "rel_0_1", "rel_1_0", "rel_1_-2", "REL_1_2", "rel-1-2",
		"rel_1_2 ", "rel_1_9223372036854775808", "rel_req_1_2", "req_1", "req_1_x", "req_01_2", "req__", "post_1", "_", "rel_1_2\x00", "rel_" + strings.Repeat("1", 10_000) + "_1",
	} {
		answer := api.Ask(`query($id: ID!) { node(id: $id) { id } nodes(ids: [1, $id]) { id } }`, apitest.Vars{"id": id})
		if len(id) > 1000 {
			check.That(t, len(answer.Errors) == 2 && answer.Errors[0].Code() == "BAD_USER_INPUT" && answer.Errors[1].Code() == "BAD_USER_INPUT", "a long id: %s", answer.Text)
			continue
		}
		answer.Is(`{"node": null, "nodes": [{"id": "1"}, null]}`)
	}
}

func TestIDsAreAcceptedAsIntLiteralsToo(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		const largest = storage.MaxUserID
		apitest.CreateUsers(t, store, storage.User{ID: 1, Handle: "one"}, storage.User{ID: largest, Handle: "largest"})
		apitest.Follow(t, store, 1, largest)
		api := apitest.New(t, store, apitest.Options{})
		for _, spelling := range []string{`4611686018427387903`, `"4611686018427387903"`} {
			api.Ask(fmt.Sprintf(`{ user(by: {id: %[1]s}) { id handle followers { nodes { handle } } } users(by: {ids: [1, %[1]s]}) { handle } node(id: %[1]s) { id }
				relationship(from: 1, to: %[1]s) { id status } u: user(by: {id: 1}) { relationship(to: %[1]s) { status } followings { nodes { id } } } }`, spelling), nil).Is(`{
				"user": {"id": "4611686018427387903", "handle": "largest", "followers": {"nodes": [{"handle": "one"}]}},
				"users": [{"handle": "one"}, {"handle": "largest"}],
				"node": {"id": "4611686018427387903"},
				"relationship": {"id": "rel_1_4611686018427387903", "status": "FOLLOWING"},
				"u": {"relationship": {"status": "FOLLOWING"}, "followings": {"nodes": [{"id": "4611686018427387903"}]}}
			}`)
		}
		api.Ask(`query($id: ID!) { user(by: {id: $id}) { handle } }`, apitest.Vars{"id": 1}).Is(`{"user": {"handle": "one"}}`)
		api.Ask(`query($id: ID!) { user(by: {id: $id}) { handle } }`, apitest.Vars{"id": storage.Foreign(5).String()}).Refused("BAD_USER_INPUT")
	})
}

func TestUsersComeInTheOrderAskedFor(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 5)
		api := apitest.New(t, store, apitest.Options{})
		api.Ask(`{ users(by: {ids: [3, 99, 1, "3", 5, 99]}) { handle } }`, nil).
			Is(`{"users": [{"handle": "u3"}, null, {"handle": "u1"}, {"handle": "u3"}, {"handle": "u5"}, null]}`)
		api.Ask(`{ users(by: {ids: []}) { handle } nodes(ids: []) { id } }`, nil).Is(`{"users": [], "nodes": []}`)
		api.Ask(`{ users(by: {ids: 2}) { handle } }`, nil).Is(`{"users": [{"handle": "u2"}]}`)
		api.Ask(`{ nodes(ids: ["rel_1_2", 99, 4, "rel_98_99", 4]) { __typename id } }`, nil).Is(`{"nodes": [
			{"__typename": "Relationship", "id": "rel_1_2"}, null, {"__typename": "User", "id": "4"},
			{"__typename": "Relationship", "id": "rel_98_99"}, {"__typename": "User", "id": "4"}
		]}`)
		api.Ask(`{ user(by: {id: 99}) { id } node(id: 99) { id } byHandle: user(by: {handle: "nobody"}) { id } }`, nil).
			Is(`{"user": null, "node": null, "byHandle": null}`)
	})
}

func TestAtMostFiveHundredIDs(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.Users(t, store, 3)
		api := apitest.New(t, store, apitest.Options{})
		for field, sel := range map[string]string{"users(by: {ids: $ids})": "handle", "nodes(ids: $ids)": "id"} {
			query := `query($ids: [ID!]!) { list: ` + field + ` { ` + sel + ` } }`
			list := api.Ask(query, apitest.Vars{"ids": idsUpTo(1, 500)}).Whole().Data["list"].([]any)
			check.That(t, len(list) == 500 && list[2] != nil && list[3] == nil, "%s: %d, %v", field, len(list), list[:4])
			check.Has(t, field, api.Ask(query, apitest.Vars{"ids": idsUpTo(1, 501)}).Refused("BAD_USER_INPUT"), "500")
		}
	})
}

func TestUsersByTheirHandles(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Store) {
		apitest.CreateUsers(t, store, storage.User{ID: 1, Handle: "ada_l"}, storage.User{ID: 2, Handle: "kit"})
		api := apitest.New(t, store, apitest.Options{})
		ask := func(handle, want string) {
			t.Helper()
			api.Ask(`query($h: String!) { user(by: {handle: $h}) { id } }`, apitest.Vars{"h": handle}).Is(`{"user": ` + want + `}`)
		}
		for _, handle := range []string{"ada_l", "ADA_L", "Ada_L"} {
			ask(handle, `{"id": "1"}`)
		}
		for _, handle := range []string{
			"", "ada", "ada_l ", " ada_l", "ada%l", "adaxl", "ada_l\x00", "àda_l",
			"\u212ait", // KELVIN SIGN: in lower case it is k
			strings.Repeat("a", 31), strings.Repeat("a", 60), "' OR ''='", "\ufffd", "名前",
		} {
			ask(handle, "null")
		}
	})
}

// wrongValues are values that each argument refuses whoever asks, each with the reason behind it, by its name, or by that of the field and its name;
// "": it takes what its type does, or it is part of another one.
var wrongValues = map[string]string{
	"after": `"x" CURSOR_MALFORMED`, "before": `"x" CURSOR_MALFORMED`, "newerThan": `"x" CURSOR_MALFORMED`, "upTo": `"x" CURSOR_MALFORMED`, "first": "101 OUT_OF_RANGE", "last": "101 OUT_OF_RANGE",
	"id": `"x" ID_MALFORMED`, "userId": `"x" ID_MALFORMED`, "postId": `"x" ID_MALFORMED`, "commentId": `"x" ID_MALFORMED`, "listId": `"x" ID_MALFORMED`, "importId": `"x" ID_MALFORMED`,
	"with": `"x" ID_MALFORMED`, "from": `"x" ID_MALFORMED`, "to": `"x" ID_MALFORMED`, "relationships.from": `["x"] ID_MALFORMED`, "relationships.to": `["x"] ID_MALFORMED`,
	"ids": "[" + strings.Repeat("1 ", 2001) + "] TOO_LONG", "userIds": "[" + strings.Repeat("1 ", 501) + "] TOO_LONG",
	"text": `"\u202e` + strings.Repeat("x", 500) + `" TEXT_INVISIBLE`, "searchUsers.text": `"` + strings.Repeat("x", 401) + `" TOO_LONG`,
	"remark": `"\u202e" TEXT_INVISIBLE`, "message": `"\u202e" TEXT_INVISIBLE`, "bio": `"\u202e" TEXT_INVISIBLE`, "attributes": `{since: "\u202e"} TEXT_INVISIBLE`,
	"reason": `"" TEXT_LENGTH`, "file": `"" TEXT_LENGTH`, "name": `"" TEXT_LENGTH`, "clientKey": `"" INVALID_VALUE`, "handle": `"" HANDLE_MALFORMED`,
	"avatarUrl": `"x" URL_MALFORMED`, "website": `"x" URL_MALFORMED`, "media": `[{url: "x", kind: IMAGE}] URL_MALFORMED`, "issuer": `"" IDENTITY_MALFORMED`, "subject": `"" IDENTITY_MALFORMED`,
	"until": `"2001-01-01T00:00:00Z" OUT_OF_RANGE`, "relate.until": `"2101-01-01T00:00:00Z" INVALID_VALUE`, // which edges of the first kind do not have
	"where": `{followedBy: "x"} ID_MALFORMED`, "changes.kinds": "[] INVALID_VALUE", "requests.state": "DECLINED INVALID_VALUE",
	"login.handle": "", "login.password": "", // of no argument of these it is told which one is wrong
	"unlinkIdentity.issuer": "", "unlinkIdentity.subject": "", "filter": "", // a text of any length there is measured with the query
	"register.handle": "", "register.name": "", "register.password": "", "changePassword.current": "", "changePassword.new": "", // see the tests of accounts: nobody signs in here with a password
	"kind": "", "kinds": "", "direction": "", "scope": "", "orderBy": "", "only": "", "public": "", "special": "", "locked": "", "discoverable": "", "listVisibility": "",
	"representations": "", "by": "", "afterLine": "", "node.id": "",
}

// Every field of the schema tells of all its wrong arguments at once, each with its reason, at the path of the field. Cursors may be none, or of another list.
func TestAFieldTellsOfAllItsWrongArguments(t *testing.T) {
	file := declare(t, someKinds+"  user: &all\n    since: {type: String}\n  post: *all\n  follow: *all\n")
	v := settle(t, opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 1)}), apitest.Options{Declared: file})
	post, list := publish(t, v.api, v.a, "x", "first"), v.createList(v.a, true)
	v.does(v.a, "follow", v.b)
	v.does(v.b, "follow", v.c)
	const mine = `{ viewer { discoverable user { name bio avatarUrl website locked postCount followingCount lists { nodes { name } } attributes { since } } } }`
	before := v.api.As(v.a).Ask(mine, nil).Whole()
	paths := map[string]string{
		"Query": "query { # }", "Mutation": "mutation { # }", "Subscription": "subscription { # }",
		"User": `{ user(by: {id: ` + v.b.String() + `}) { # } }`, "Viewer": "{ viewer { # } }", "SuggestionEdge": "{ viewer { user { followSuggestions { edges { # } } } } }",
		"Post": `{ node(id: "` + post + `") { ... on Post { # } } }`, "List": `{ node(id: "` + list + `") { ... on List { # } } }`,
	}
	asked, schema := 0, generated.SchemaOf(file)
	for _, of := range schema.Types {
		for _, f := range of.Fields {
			if of.Kind != ast.Object || of.BuiltIn || strings.HasPrefix(f.Name, "__") {
				continue
			}
			var given, want []string
			for _, a := range f.Arguments {
				wrong, known := wrongValues[f.Name+"."+a.Name]
				if !known {
					wrong, known = wrongValues[a.Name]
				}
				check.That(t, known, "%s.%s(%s): no wrong value of it is known", of.Name, f.Name, a.Name)
				if wrong == "" && !a.Type.NonNull || a.DefaultValue != nil && wrong == "" {
					continue
				}
				if end := strings.LastIndexByte(wrong, ' '); wrong != "" {
					want = append(want, strings.NewReplacer("attributes", "since").Replace(a.Name)+wrong[end:])
					wrong = wrong[:end]
				} else if wrong = right(schema, a); f.Name == "requests" {
					wrong = "FOLLOW"
				}
				given = append(given, a.Name+": "+wrong)
			}
			if len(want) == 0 {
				continue
			}
			asked++
			selection := " { __typename }"
			if schema.Types[f.Type.Name()].IsLeafType() {
				selection = ""
			}
			must.That(t, paths[of.Name] != "", "%s.%s: no way to it is known", of.Name, f.Name)
			query := strings.Replace(paths[of.Name], "#", f.Name+"("+strings.Join(given, ", ")+")"+selection, 1)
			v.tellsOf(t, f, query, want...)
			if f.Name == "changes" || f.Name == "accountsFile" {
				continue // whose cursors are not of a kind
			}
			for _, cursor := range []string{"after", "before", "newerThan", "upTo"} {
				if i := slices.Index(want, cursor+" CURSOR_MALFORMED"); i >= 0 {
					want[i] = cursor + " CURSOR_FOREIGN"
					query = strings.Replace(query, cursor+`: "x"`, cursor+`: "HAEB"`, 1)
				}
			}
			v.tellsOf(t, f, query, want...)
		}
	}
	check.Least(t, "fields that were asked", asked, 80)
	check.Equal(t, "what is stored after all that", v.api.As(v.a).Ask(mine, nil).Text, before.Text)
}

// tellsOf checks that a query is refused for its field, with these arguments and reasons.
func (v *village) tellsOf(t *testing.T, f *ast.FieldDefinition, query string, want ...string) {
	t.Helper()
	var got []string
	for _, e := range v.refusals(t, f, query) {
		if one := e.Argument() + " " + e.Reason(); one != "last INVALID_VALUE" { // `first` is there, too
			got = append(got, one)
		}
		check.Has(t, query, e.At(), f.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	check.Equal(t, query, slices.Compact(got), want)
}

// right is a value that an argument takes.
func right(schema *ast.Schema, a *ast.ArgumentDefinition) string {
	switch of := schema.Types[a.Type.Name()]; {
	case of.Kind == ast.Enum:
		return of.EnumValues[0].Name
	case of.Name == "Boolean":
		return "true"
	}
	return `"x"`
}

// refusals are the errors of a field: those that operators are told if it is theirs.
func (v *village) refusals(t *testing.T, f *ast.FieldDefinition, query string) []apitest.Error {
	by := v.api.As(v.a)
	if strings.HasPrefix(query, "subscription") || strings.Contains(f.Description, "`admin`") {
		by = v.api.Admin()
	}
	if !strings.HasPrefix(query, "subscription") {
		return by.Ask(query, nil).Errors
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var answer struct{ Errors []apitest.Error }
	for text := range by.Subscribe(ctx, apitest.Events, query, nil) {
		if err := json.Unmarshal([]byte(text), &answer); err == nil && len(answer.Errors) > 0 {
			break
		}
	}
	return answer.Errors
}
