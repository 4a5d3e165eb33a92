// Package hostile has requests that are meant to stop a gateway, as data, and tests that a gateway
// withstands them: each alone, and all at once beside a client that behaves well.
package hostile

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// A Document is one hostile request to /graphql.
type Document struct {
	Name   string
	Method string // "" is POST
	Query  string // behind `?`, of a GET
	Header map[string]string
	Body   string

	// Answered means that the request is answered and not refused, because it is within all limits.
	Answered bool
}

// post is a document with a query and its variables.
func post(name, query string, variables any) Document {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		panic(err) // texts, lists and maps
	}
	return Document{Name: name, Body: string(body)}
}

// raw is a document whose body is a text.
func raw(name, body string) Document { return Document{Name: name, Body: body} }

func answered(d Document) Document {
	d.Answered = true
	return d
}

func with(d Document, header, value string) Document {
	d.Header = map[string]string{header: value}
	return d
}

// many joins n parts.
func many(n int, part func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(part(i))
	}
	return b.String()
}

func repeat(text string, n int) string { return strings.Repeat(text, n) }

// ids are n ids, from 1 on.
func ids(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i + 1)
	}
	return list
}

// nested is a value within n lists.
func nested(n int) any {
	var v any = "1"
	for range n {
		v = []any{v}
	}
	return v
}

// leaves is a filter of n leaves.
func leaves(n int) map[string]any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{"followersOf": "1"}
	}
	return map[string]any{"or": list}
}

// Documents are all hostile documents. Few are larger than a body may be: these show that no more
// than that is read.
func Documents() []Document {
	var all []Document
	for _, group := range [][]Document{depth(), aliases(), fragments(), directives(), arguments(), variables(), extensions(), bodies(), costly(), headers()} {
		all = append(all, group...)
	}
	return all
}

func depth() []Document {
	return []Document{
		post("fields 60 deep", "{ viewer "+repeat("{ viewerRelationship { to ", 30)+"{ id }"+repeat(" } }", 30)+" }", nil),
		post("fields 10,000 deep", repeat("{ a ", 10_000)+repeat("}", 10_000), nil),
		post("unclosed", repeat("{ a ", 15_000), nil),
		answered(post("inline fragments 900 deep", "{"+repeat("... {", 900)+"__typename"+repeat("}", 900)+"}", nil)),
		post("introspection 40 deep", "{ __schema { types "+repeat("{ fields { type ", 20)+"{ name }"+repeat("} }", 20)+" } }", nil),
		post("an argument 900 deep", "{ people(where: "+repeat("{not: ", 900)+"{followersOf: 1}"+repeat("}", 900)+") { totalCount } }", nil),
		post("a list 1,900 deep", "{ users(by: {ids: "+repeat("[", 1900)+"1"+repeat("]", 1900)+"}) { id } }", nil),
	}
}

func aliases() []Document {
	return []Document{
		post("3,000 aliases", "{"+many(3000, func(i int) string { return fmt.Sprintf("a%d:__typename ", i) })+"}", nil),
		post("one field 20,000 times", "{ viewer { user {"+repeat(" id", 20_000)+" } } }", nil),
		post("one field 1,900 times", "{ viewer { user {"+repeat(" id", 1900)+" } } }", nil),
		post("one alias for two fields, 900 times", "{ viewer { user {"+repeat(" a: id a: name", 450)+" } } }", nil),
		post("aliases of 60 kB", "query($ids: [ID!]!) { users(by: {ids: $ids}) { "+repeat("a", 60_000)+": id } }", map[string]any{"ids": ids(500)}),
		post("198 aliases of bio on 500 users", "query($ids: [ID!]!) { users(by: {ids: $ids}) {"+many(198, func(i int) string { return fmt.Sprintf(" a%d: bio", i) })+" } }", map[string]any{"ids": ids(500)}),
		answered(post("190 aliases of name on 500 users", "query($ids: [ID!]!) { users(by: {ids: $ids}) {"+many(190, func(i int) string { return fmt.Sprintf(" a%d: name", i) })+" } }", map[string]any{"ids": ids(500)})),
		post("150 aliases with a cursor of 200 kB", "query($c: String, $ids: [ID!]!) {"+many(150, func(i int) string {
			return fmt.Sprintf(" a%d: users(by: {ids: $ids}) { followings(after: $c) { totalCount } }", i)
		})+"}", map[string]any{"c": repeat("A", 200_000), "ids": ids(100)}),
		post("40 logins", "mutation {"+many(40, func(i int) string {
			return fmt.Sprintf(` a%d: login(handle: "maya", password: "12345678") { token }`, i)
		})+"}", nil),
	}
}

func fragments() []Document {
	doubling := func(n int) string {
		return "{ ...F0 }" + many(n, func(i int) string {
			return fmt.Sprintf(" fragment F%d on Query { ...F%d ...F%d }", i, i+1, i+1)
		}) + fmt.Sprintf(" fragment F%d on Query { __typename }", n)
	}
	return []Document{
		post("fragments that double 30 times", doubling(30), nil),
		post("fragments that double 200 times", doubling(200), nil),
		post("a cycle", "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }", nil),
		post("a fragment of itself", "{ ...A } fragment A on Query { viewer { user { id } } ...A }", nil),
		post("a chain of 400", "{ ...F0 }"+many(400, func(i int) string { return fmt.Sprintf(" fragment F%d on Query { ...F%d }", i, i+1) })+" fragment F400 on Query { __typename }", nil),
		post("400 that are not used", "{ __typename }"+many(400, func(i int) string { return fmt.Sprintf(" fragment F%d on Query { __typename }", i) }), nil),
		post("one spread 1,300 times", "{"+repeat(" ...F", 1300)+"} fragment F on Query { __typename }", nil),
		post("300 that overlap", "{ viewer { user {"+many(300, func(i int) string { return fmt.Sprintf(" ...F%d", i) })+" } } }"+many(300, func(i int) string { return fmt.Sprintf(" fragment F%d on User { id name handle }", i) }), nil),
		post("500 of one name", "{ ...F }"+repeat(" fragment F on Query { __typename }", 500), nil),
		post("on 600 unknown types", "{"+many(600, func(i int) string { return fmt.Sprintf(" ... on Usr%d { id }", i) })+"}", nil),
	}
}

func directives() []Document {
	return []Document{
		post("one directive 3,900 times", "{ __typename"+repeat(" @a", 1900)+" }", nil),
		post("skip 199 times", "{ __typename"+repeat(" @skip(if: false)", 199)+" }", nil),
		post("unknown ones on 190 fields", "{"+many(190, func(i int) string { return fmt.Sprintf(" a%d: __typename @b%d", i, i) })+" }", nil),
		post("on variables", "query("+many(300, func(i int) string { return fmt.Sprintf("$v%d: Int @a ", i) })+") { __typename }", nil),
	}
}

func arguments() []Document {
	return []Document{
		post("an id of 60 kB", `{ user(by: {id: "`+repeat("7", 60_000)+`"}) { id } }`, nil),
		post("an id of 200 kB by variable", `query($id: ID!) { user(by: {id: $id}) { id } }`, map[string]any{"id": repeat("7", 200_000)}),
		post("a handle of 200 kB", `query($h: String!) { user(by: {handle: $h}) { id } }`, map[string]any{"h": repeat("é", 100_000)}),
		answered(post("a handle that is not ASCII", `query($h: String!) { user(by: {handle: $h}) { id } }`, map[string]any{"h": "é€𝄞"})),
		post("a cursor that is none", `{ viewer { user { id } } user(by: {id: 1}) { followings(after: "`+repeat("-", 200)+`") { totalCount } } }`, nil),
		post("first of 99999999999", `{ user(by: {id: 1}) { followings(first: 99999999999) { totalCount } } }`, nil),
		post("first of −1", `{ user(by: {id: 1}) { followings(first: -1) { nodes { id } } } }`, nil),
		post("3,900 ids in the text", `{ users(by: {ids: [`+repeat("1 ", 3900)+`]}) { id } }`, nil),
		post("4 million pairs", `query($a: [ID!]!) { relationships(from: $a, to: $a) { status } }`, map[string]any{"a": ids(2000)}),
		post("900 unknown arguments", `{ viewer { user {`+many(900, func(i int) string { return fmt.Sprintf(" a%d: name(x%d: 1)", i, i) })+` } } }`, nil),
		post("a block text of 60 kB", `{ user(by: {id: """`+repeat("\n x", 20_000)+`"""}) { id } }`, nil),
		post("a filter of 16 lists on 100 aliases", `{`+many(100, func(i int) string {
			return fmt.Sprintf(" a%d: people(where: {and: [%s]}) { totalCount }", i, repeat("{followersOf: 1} ", 16))
		})+`}`, nil),
		answered(post("a search for nothing", `{ searchUsers(text: "%%%%") { nodes { id } } }`, nil)),
	}
}

func variables() []Document {
	const people = `query($f: PeopleFilter!) { people(where: $f) { totalCount } }`
	return []Document{
		post("a filter of 300,000 leaves", people, map[string]any{"f": leaves(300_000)}),
		post("a filter of 10,000 leaves", people, map[string]any{"f": leaves(10_000)}),
		post("a filter of 450 leaves on 200 aliases", `query($f: PeopleFilter!) {`+many(200, func(i int) string { return fmt.Sprintf(" a%d: people(where: $f) { totalCount }", i) })+`}`, map[string]any{"f": leaves(450)}),
		post("lists 20,000 deep", `query($ids: [ID!]!) { users(by: {ids: $ids}) { id } }`, map[string]any{"ids": nested(4000)}),
		raw("lists 100,000 deep", `{"query": "{ __typename }", "variables": {"a": `+repeat("[", 100_000)+repeat("]", 100_000)+`}}`),
		post("a text that says invalid", `"<Invalid>" { __typename }`, nil),
		raw("250 kB of numbers", `{"query": "{ __typename }", "variables": {"a": [`+repeat("1,", 125_000)+`1]}}`),
		raw("250 kB of objects", `{"query": "{ __typename }", "variables": {"a": [`+repeat(`{"a":1},`, 31_000)+`1]}}`),
		raw("objects 40,000 deep", `{"query": "{ __typename }", "variables": `+repeat(`{"a":`, 40_000)+"1"+repeat("}", 40_000)+`}`),
		post("60,000 unknown variables", `{ __typename }`, func() any {
			m := map[string]any{}
			for i := range 60_000 {
				m[fmt.Sprintf("v%d", i)] = 1
			}
			return m
		}()),
		post("900 variables defined", `query(`+many(900, func(i int) string { return fmt.Sprintf("$v%d: Int ", i) })+`) { __typename }`, nil),
		raw("a number of 200,000 digits", `{"query": "query($n: Int) { user(by: {id: 1}) { followings(first: $n) { totalCount } } }", "variables": {"n": 1`+repeat("0", 200_000)+`}}`),
		raw("a number of 400,000 zeros by exponent", `{"query": "query($n: Int) { user(by: {id: 1}) { followings(first: $n) { totalCount } } }", "variables": {"n": 1e400000}}`),
		answered(post("zero bytes", `query($h: String!) { user(by: {handle: $h}) { id } node(id: "1\u0000") { id } }`, map[string]any{"h": "a\x00b"})),
		post("5,000 ids", `query($ids: [ID!]!) { users(by: {ids: $ids}) { id } }`, map[string]any{"ids": ids(4900)}),
	}
}

func extensions() []Document {
	return []Document{
		answered(raw("200 kB of extensions", `{"query": "{ __typename }", "extensions": {"a": [`+repeat("1,", 100_000)+`1]}}`)),
		raw("extensions 40,000 deep", `{"query": "{ __typename }", "extensions": `+repeat(`{"a":`, 40_000)+"1"+repeat("}", 40_000)+`}`),
		raw("a forged consistency token", `{"query": "{ __typename }", "extensions": {"consistencyToken": "AQECAw"}}`),
		raw("4,000 forged consistency tokens", `{"query": "{ __typename }", "extensions": {"consistencyToken": "`+repeat("AQECAw,", 4000)+`"}}`),
		raw("200 kB of consistency token", `{"query": "{ __typename }", "extensions": {"consistencyToken": "`+repeat("A", 200_000)+`"}}`),
		raw("a persisted query of another hash", `{"query": "{ __typename }", "extensions": {"persistedQuery": {"version": 1, "sha256Hash": "`+repeat("0", 64)+`"}}}`),
		raw("a persisted query of 200 kB of hash", `{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "`+repeat("0", 200_000)+`"}}}`),
		raw("a persisted query that is a list", `{"extensions": {"persistedQuery": [[[[]]]]}}`),
	}
}

func bodies() []Document {
	return []Document{
		raw("a batch of 5,000", "["+repeat(`{"query": "{ __typename }"},`, 5000)+`{"query": "{ __typename }"}]`),
		raw("250 kB of brackets", repeat("[", 250_000)),
		raw("a body of 1 MB", `{"query": "{ __typename }", "variables": {"a": "`+repeat("a", 1<<20)+`"}}`),
		answered(raw("8,000 times the same key", "{"+repeat(`"query": "{ __typename }",`, 8000)+`"query": "{ __typename }"}`)),
		raw("no JSON", repeat("%", 200_000)),
		raw("no UTF-8", `{"query": "{ `+repeat("\xff\xfe", 50_000)+` }"}`),
		raw("escapes", `{"query": "`+repeat(`\u0041`, 40_000)+`"}`),
		with(raw("compressed", repeat("\x1f\x8b", 50_000)), "Content-Encoding", "gzip"),
		with(raw("a form", "query="+repeat("a", 200_000)), "Content-Type", "application/x-www-form-urlencoded"),
		{Name: "a GET of 50 kB", Method: "GET", Query: "query=" + url.QueryEscape("{"+repeat(" a", 15_000)+" }")},
		{Name: "a GET with lists 15,000 deep", Method: "GET", Query: "query={__typename}&variables=" + url.QueryEscape(`{"a":`+repeat("[", 8000)+repeat("]", 8000)+"}")},
	}
}

// costly are requests just within the limits, and some beyond.
func costly() []Document {
	users := func(n int) map[string]any { return map[string]any{"ids": ids(n)} }
	return []Document{
		post("suggestions of nobody, for 500", `query($ids: [ID!]!) { users(by: {ids: $ids}) { followSuggestions(first: 0) { complete } } }`, users(500)),
		post("suggestions for 2", `query($ids: [ID!]!) { users(by: {ids: $ids}) { followSuggestions(first: 0) { complete } } }`, users(2)),
		answered(post("the best suggestions", `query($ids: [ID!]!) { users(by: {ids: $ids}) { followSuggestions(first: 100, orderBy: BEST) { edges { sharedCount node { name } } } } }`, users(1))),
		answered(post("friends of 150", `query($ids: [ID!]!) { users(by: {ids: $ids}) { friends(first: 40) { totalCount nodes { id } } } }`, users(150))),
		answered(post("480 lists of 60 with names", `query($ids: [ID!]!) { users(by: {ids: $ids}) { followings(first: 60) { nodes { id name } } } }`, users(480))),
		answered(post("2,000 relationships", `query($a: [ID!]!, $b: [ID!]!) { relationships(from: $a, to: $b) { status from { name } to { name } } }`, map[string]any{"a": ids(40), "b": ids(50)})),
		post("lists of lists of lists", `{ user(by: {id: 1}) { followings(first: 100) { nodes { followings(first: 100) { nodes { followers(first: 100) { nodes { id } } } } } } } }`, nil),
		answered(post("2 searches", `{`+many(2, func(i int) string {
			return fmt.Sprintf(` a%d: searchUsers(text: "%c", first: 40) { nodes { id } }`, i, 'a'+rune(i%26))
		})+`}`, nil)),
		answered(post("the whole schema", `{ __schema { types { name description fields { name description args { name description type { name } } type { name ofType { name } } } } } }`, nil)),
		post("25 passwords", "mutation {"+many(25, func(i int) string {
			return fmt.Sprintf(` a%d: register(handle: "h%d", name: "n", password: "12345678") { token }`, i, i)
		})+"}", nil),
	}
}

func headers() []Document {
	ordinary := raw("", `{"query": "{ __typename }"}`)
	named := func(name string, d Document) Document {
		d.Name = name
		return d
	}
	return []Document{
		named("a token of 15 kB", with(ordinary, "Authorization", "Bearer "+repeat("a", 5000)+"."+repeat("b", 5000)+"."+repeat("c", 5000))),
		named("a token that is none", with(ordinary, "Authorization", "Bearer x")),
		named("for another viewer", with(ordinary, "Kith-Viewer", repeat("9", 10_000))),
		named("a consistency header of 30 kB", with(ordinary, "Kith-Consistency", repeat("A", 30_000))),
		answered(named("an odd Accept", with(ordinary, "Accept", repeat("text/x;q=0.1,", 2000)))),
	}
}

// maxRefusal is how long a refusal may be.
const maxRefusal = 60_000

// Check reports whether an answer with errors of these codes is what the document may get.
func (d Document) Check(codes []string, length int) error {
	for _, code := range codes {
		if code == "INTERNAL_SERVER_ERROR" || code == "" {
			return fmt.Errorf("%s: a fault of the server", d.Name)
		}
	}
	switch {
	case d.Answered && len(codes) > 0:
		return fmt.Errorf("%s: it is refused with %v", d.Name, codes)
	case !d.Answered && len(codes) == 0:
		return fmt.Errorf("%s: it is not refused", d.Name)
	case !d.Answered && length > maxRefusal:
		return fmt.Errorf("%s: the refusal has %d bytes", d.Name, length)
	}
	return nil
}
