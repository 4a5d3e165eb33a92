package resolvers_test

import (
	"fmt"
	"strings"
	"testing"

	"kith/graph/declared"
	"kith/graph/generated"
	"kith/graph/sdl"
	"kith/graph/selections"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// declaredOf is a file with attributes of every type.
func declaredOf() *declared.File {
	text := declared.Attribute{Type: "String", MaxLength: 10}
	return &declared.File{Attributes: declared.Attributes{
		User: map[string]declared.Attribute{
			"pronouns": text, "verified": {Type: "Boolean", SetBy: declared.Operator}, "age": {Type: "Int"}, "score": {Type: "Float"}, "born": {Type: "DateTime"},
			"long": {Type: "String", MaxLength: storage.MaxAttributes},
		},
		Follow: map[string]declared.Attribute{"metAt": text, "long": {Type: "String", MaxLength: storage.MaxAttributes}},
		Post:   map[string]declared.Attribute{"price": {Type: "Float"}, "name": text, "long": {Type: "String", MaxLength: storage.MaxAttributes}},
	}}
}

// withAttributes is an API whose product declares attributes; users 1 to 3 follow one another. byGqlgen has gqlgen write all answers.
func withAttributes(t *testing.T, o apitest.Options) (*oracle.Store, *apitest.API) {
	t.Helper()
	store := storeOf(t, 3)
	apitest.Follow(t, store, 1, 2, 3)
	apitest.Follow(t, store, 2, 1)
	o.Declared = declaredOf()
	return store, apitest.New(t, store, o)
}

// The answer has what is selected, in any way, whoever writes it.
func TestAttributesAreSelected(t *testing.T) {
	for _, o := range []apitest.Options{{}, {Context: selections.ByGqlgen}} {
		_, api := withAttributes(t, o)
		viewer := api.As(1)
		viewer.Ask(`mutation { updateProfile(attributes: {pronouns: " she/her ", age: 7, score: 2, born: "2001-02-03T04:05:06+01:00"}) { changed } }`, nil).Is(`{"updateProfile":{"changed":true}}`)
		viewer.Ask(`mutation { publishPost(text: "x", attributes: {price: 1.5, name: "a\"<b"}, clientKey: "k") { post { attributes { price name long } } } }`, nil).Is(`{"publishPost":{"post":{"attributes":{"price":1.5,"name":"a\"<b","long":null}}}}`)
		viewer.Ask(`mutation { setFollowMark(userId: 2, attributes: {metAt: "school"}) { changed relationship { attributes { metAt } remark } } }`, nil).Is(`{"setFollowMark":{"changed":true,"relationship":{"attributes":{"metAt":"school"},"remark":null}}}`)
		api.Ask(`query($skip: Boolean!, $not: Boolean!) { user(by: {id: 1}) {
			attributes { __typename she: pronouns age @skip(if: $skip) score @include(if: $not) verified ...A }
			again: attributes { born } attributes { born }
			posts(first: 1) { nodes { attributes { price } } }
		} } fragment A on UserAttributes { age born ... on UserAttributes { pronouns } }`, apitest.Vars{"skip": true, "not": false}).Is(`{"user":{"attributes":{"__typename":"UserAttributes","she":"she/her","verified":null,"age":7,"born":"2001-02-03T03:05:06.000000Z","pronouns":"she/her"},` +
			`"again":{"born":"2001-02-03T03:05:06.000000Z"},"posts":{"nodes":[{"attributes":{"price":1.5}}]}}}`)
		viewer.Ask(`{ user(by: {id: 2}) { followers(first: 5) { nodes { attributes { age } viewerRelationship { attributes { metAt } } } } } }`, nil).Is(`{"user":{"followers":{"nodes":[{"attributes":{"age":7},"viewerRelationship":null}]}}}`)
		// A condition that is null, where null may not be, is an error of the attributes. A user has some in any case, and is null then.
		for query, want := range map[string]string{
			`{ user(by: {id: 1}) { id attributes { age @include(if: $b) } } id: __typename }`:                    `["user","attributes"] {"user":null,"id":"Query"}`,
			`{ users(by: {ids: [1]}) { followers(first: 0) { totalCount } attributes { ...A @skip(if: $b) } } }`: `["users",0,"attributes"] {"users":[null]}`,
			`{ relationship(from: 1, to: 2) { id attributes { ... @skip(if: $b) { metAt } } } }`:                 `["relationship","attributes"] {"relationship":{"id":"rel_1_2","attributes":null}}`,
		} {
			if strings.Contains(query, "...A") {
				query += ` fragment A on UserAttributes { age }`
			}
			path, data, _ := strings.Cut(want, " ")
			check.Has(t, query, viewer.Ask(`query($b: Boolean = true) `+query, apitest.Vars{"b": nil}).Text, `"path":`+path, `"data":`+data, "takes no null")
		}
		// A follow's are for whoever follows alone.
		const follow = `{ relationship(from: 1, to: 2) { attributes { metAt } } }`
		viewer.Ask(follow, nil).Is(`{"relationship":{"attributes":{"metAt":"school"}}}`)
		for _, other := range []*apitest.API{api, api.As(2), api.Admin().As(3)} {
			other.Ask(follow, nil).Is(`{"relationship":{"attributes":null}}`)
		}
	}
}

func TestAttributesAreMerged(t *testing.T) {
	_, api := withAttributes(t, apitest.Options{})
	viewer := api.As(1)
	for _, step := range []struct{ set, want string }{
		{`{pronouns: "they", age: 7}`, `true they 7`},
		{`{age: 8}`, `true they 8`},
		{`{age: 8}`, `false they 8`},
		{`{}`, `false they 8`},
		{`{pronouns: null}`, `true null 8`},
		{`{pronouns: $unset, age: $null}`, `true null null`},
	} {
		var changed, pronouns, age string
		fmt.Sscan(step.want, &changed, &pronouns, &age)
		if pronouns != "null" {
			pronouns = `"` + pronouns + `"`
		}
		viewer.Ask(`mutation($unset: String, $null: Int) { was: updateProfile(attributes: {age: $null}) @skip(if: true) { changed } updateProfile(bio: $unset, attributes: `+step.set+`) { changed viewer { user { attributes { pronouns age } } } } }`, apitest.Vars{"null": nil}).Is(fmt.Sprintf(`{"updateProfile":{"changed":%s,"viewer":{"user":{"attributes":{"pronouns":%s,"age":%s}}}}}`, changed, pronouns, age))
	}
	viewer.Ask(`mutation($set: UserAttributesInput) { updateProfile(attributes: $set) { viewer { user { attributes { score born } } } } }`,
		apitest.Vars{"set": map[string]any{"score": 1e-3, "born": "2001-02-03T04:05:06Z"}}).Is(`{"updateProfile":{"viewer":{"user":{"attributes":{"score":0.001,"born":"2001-02-03T04:05:06.000000Z"}}}}}`)
}

// A value has the type, the bound and the setter that its product declares: nothing is kept of one that has not.
func TestAttributesAreChecked(t *testing.T) {
	store, api := withAttributes(t, apitest.Options{})
	long := strings.Repeat("x", storage.MaxAttributes-len(`{"long":""}`))
	for _, c := range []struct{ set, reason string }{
		{`{pronoun: "she"}`, "INVALID_QUERY"},
		{`{pronouns: 1}`, "INVALID_QUERY"},
		{`{age: 1.5}`, "INVALID_QUERY"},
		{`{age: 2147483648}`, "OUT_OF_RANGE"},
		{`{age: 2147483647}`, ""},
		{`{age: 99999999999999999999}`, "INVALID_QUERY"},
		{`{score: "1"}`, "INVALID_QUERY"},
		{`{born: 1}`, "INVALID_VALUE"},
		{`{born: "yesterday"}`, "INVALID_VALUE"},
		{`{born: "2001-02-03T04:05:06.` + strings.Repeat("0", 40) + `Z"}`, "INVALID_VALUE"},
		{`{born: "9999-12-31T23:59:59-01:00"}`, "INVALID_VALUE"}, // in UTC, RFC 3339 cannot write it
		{`{born: "0000-01-01T00:00:00+01:00"}`, "INVALID_VALUE"},
		{`{born: "9999-12-31T23:59:59Z"}`, ""},
		{`{born: null}`, ""},
		{`{verified: true}`, "INVALID_QUERY"},
		{`{pronouns: "0123456789"}`, ""},
		{`{pronouns: "01234567890"}`, "TEXT_LENGTH"},
		{`{pronouns: "\u0007"}`, "TEXT_INVISIBLE"},
		{`{pronouns: null, age: null, long: "` + long + `"}`, ""},
		{`{long: "` + strings.Repeat("<", len(long)) + `"}`, ""}, // a byte, as JSON
		{`{age: 1}`, "TOO_LONG"},
		{`{long: "` + long + `x"}`, "TOO_LONG"},
		{`{long: "` + strings.Repeat("x", storage.MaxAttributes+1) + `"}`, "TOO_LONG"},
	} {
		before := storage.UserLookups.Read(t.Context(), store, 1)[0].Value.Attributes
		answer := api.As(1).Ask(`mutation { updateProfile(attributes: `+c.set+`) { changed } }`, nil)
		reason := ""
		if len(answer.Errors) > 0 {
			reason = answer.Errors[0].Reason()
		}
		now := storage.UserLookups.Read(t.Context(), store, 1)[0].Value.Attributes
		check.That(t, reason == c.reason && (now != before) == (reason == ""), "%.60s: %q, want %q; %d bytes, then %d", c.set, reason, c.reason, len(before), len(now))
	}
	for _, call := range []string{`publishPost(text: "x", clientKey: "k", attributes: {long: "%s", name: "n"})`, `setFollowMark(userId: 2, attributes: {long: "%s", metAt: "n"})`} {
		answer := api.As(1).Ask(`mutation { `+fmt.Sprintf(call, long)+` { changed } }`, nil)
		answer.RefusedFor("TOO_LONG", "attributes")
	}
}

func TestOperatorsSetTheirs(t *testing.T) {
	_, api := withAttributes(t, apitest.Options{})
	const set = `mutation { setUserAttributes(userId: 2, attributes: {verified: true, age: 3}) { changed user { attributes { verified age } } } }`
	api.Admin().Ask(set, nil).Is(`{"setUserAttributes":{"changed":true,"user":{"attributes":{"verified":true,"age":3}}}}`)
	api.Admin().Ask(set, nil).Is(`{"setUserAttributes":{"changed":false,"user":{"attributes":{"verified":true,"age":3}}}}`)
	for _, other := range []*apitest.API{api, api.As(2)} {
		other.Ask(set, nil).RefusedFor("INVALID_QUERY", "")
	}
	api.Admin().Ask(strings.Replace(set, "userId: 2", "userId: 77", 1), nil).RefusedFor("USER_NOT_FOUND", "userId")
}

// After a start with another file, what is no longer declared stays, unseen, and what has another type is null.
func TestAnotherFileShowsWhatItDeclares(t *testing.T) {
	store, api := withAttributes(t, apitest.Options{})
	api.As(1).Ask(`mutation { updateProfile(attributes: {pronouns: "she", age: 7, score: 2.5, born: "2001-02-03T04:05:06Z"}) { changed } }`, nil).Is(`{"updateProfile":{"changed":true}}`)
	text := declared.Attribute{Type: "String", MaxLength: 200}
	other := apitest.New(t, store, apitest.Options{Declared: &declared.File{Attributes: declared.Attributes{User: map[string]declared.Attribute{
		"age": text, "score": {Type: "Int"}, "pronouns": {Type: "DateTime"}, "born": text, "motto": text,
	}}}})
	other.As(1).Ask(`mutation { updateProfile(attributes: {motto: "x"}) { viewer { user { attributes { age score pronouns born motto } } } } }`, nil).Is(`{"updateProfile":{"viewer":{"user":{"attributes":{"age":null,"score":null,"pronouns":null,"born":"2001-02-03T04:05:06.000000Z","motto":"x"}}}}}`)
	api.Ask(`{ user(by: {id: 1}) { attributes { age pronouns } } }`, nil).Is(`{"user":{"attributes":{"age":7,"pronouns":"she"}}}`)
	none := apitest.New(t, store, apitest.Options{})
	for _, asked := range []string{`{ user(by: {id: 1}) { attributes { age } } }`, `{ user(by: {id: 1}) { attributes } }`} {
		check.Least(t, "errors of "+asked, len(none.Ask(asked, nil).Errors), 1)
	}
}

// The schema has types for what is declared, and no word of what is not.
func TestTheSchemaHasWhatIsDeclared(t *testing.T) {
	files := map[string]declared.Attributes{"": {}, "user": {}, "follow": {}, "post": {}}
	files["user"] = declared.Attributes{User: declaredOf().Attributes.User}
	files["follow"] = declared.Attributes{Follow: declaredOf().Attributes.Follow}
	files["post"] = declared.Attributes{Post: declaredOf().Attributes.Post}
	for of, attributes := range files {
		whole := generated.SchemaOf(&declared.File{Attributes: attributes})
		text, err := sdl.Of(sdl.Without(whole, sdl.Federation), "")
		must.OK(t, err)
		for name, in := range map[string]string{"UserAttributes": "user", "UserAttributesInput": "user", "OperatorUserAttributesInput": "user",
			"FollowAttributes": "follow", "FollowAttributesInput": "follow", "PostAttributes": "post", "PostAttributesInput": "post"} {
			is := strings.Contains(text, " "+name+" {")
			check.That(t, is == (in == of) && !strings.Contains(text, "scalar "+name), "with attributes of %q, %s is there: %v", of, name, is)
		}
		check.That(t, (of != "" || !strings.Contains(text, "ttributes")) && (of == "user") == strings.Contains(text, "setUserAttributes("), "with attributes of %q: %s", of, text)
	}
	whole := generated.SchemaOf(declaredOf())
	for _, f := range whole.Types["UserAttributesInput"].Fields {
		check.That(t, f.Name != "verified", "users set what operators set")
	}
	for _, d := range whole.PossibleTypes["Node"] {
		check.That(t, whole.Types[d.Name] == d, "%s is another one among the nodes", d.Name)
	}
	text, err := sdl.Of(sdl.Without(whole, sdl.Federation, sdl.Operators), "Kith")
	must.OK(t, err)
	check.Has(t, "the schema", text, "attributes: KithUserAttributes!", "pronouns: String\n")
	check.Lacks(t, "the schema", text, "OperatorUser")
	_, api := withAttributes(t, apitest.Options{TypePrefix: "Kith"})
	api.As(1).Ask(`mutation { kithUpdateProfile(attributes: {age: 3}) { viewer { user { attributes { __typename age } } } } }`, nil).Is(`{"kithUpdateProfile":{"viewer":{"user":{"attributes":{"__typename":"KithUserAttributes","age":3}}}}}`)
}

func TestTheFirstFollowIsShown(t *testing.T) {
	store, api := withAttributes(t, apitest.Options{})
	first := storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: 1, To: 2})[0].Value.UpdateTime
	const asked = `{ relationship(from: 1, to: 2) { firstFollowedAt } }`
	at := fmt.Sprintf("%q", first.Time().Format("2006-01-02T15:04:05.000000Z"))
	api.As(1).Ask(asked, nil).Is(`{"relationship":{"firstFollowedAt":` + at + `}}`)
	api.As(1).Ask(`mutation { unfollow(userId: 2) { relationship { firstFollowedAt } } }`, nil).Is(`{"unfollow":{"relationship":{"firstFollowedAt":null}}}`)
	api.As(1).Ask(`mutation { follow(userId: 2) { relationship { firstFollowedAt } } }`, nil).Is(`{"follow":{"relationship":{"firstFollowedAt":` + at + `}}}`)
	again := storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: 1, To: 2})[0].Value.UpdateTime
	check.Least(t, "the time of the second follow", again, first+1)
	for _, other := range []*apitest.API{api, api.As(2), api.Admin().As(3)} {
		other.Ask(asked, nil).Is(`{"relationship":{"firstFollowedAt":null}}`)
	}
}
