package resolvers_test

import (
	"context"
	"encoding/json"
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
	"kith/storage/sqlstore"
)

// wrongValues are values that each argument refuses whoever asks, by its name, or by that of the field and its name; "": it takes what its type does,
// or it is part of another one.
var wrongValues = map[string]string{
	"after": `"x"`, "before": `"x"`, "newerThan": `"x"`, "upTo": `"x"`, "first": "101", "last": "101",
	"id": `"x"`, "userId": `"x"`, "postId": `"x"`, "commentId": `"x"`, "listId": `"x"`, "with": `"x"`, "from": `"x"`, "to": `"x"`,
	"ids": "[" + strings.Repeat("1 ", 2001) + "]", "userIds": "[" + strings.Repeat("1 ", 501) + "]", "relationships.from": `["x"]`, "relationships.to": `["x"]`,
	"text": `"\u202e` + strings.Repeat("x", 500) + `"`, "reason": `""`, "remark": `"\u202e"`, "message": `"\u202e"`, "clientKey": `""`, "file": `""`, "importId": `"x"`,
	"handle": `""`, "name": `""`, "bio": `"\u202e"`, "avatarUrl": `"x"`, "website": `"x"`, "password": `"x"`, "current": `"x"`, "new": `"x"`,
	"issuer": `""`, "subject": `""`, "until": `"2001-01-01T00:00:00Z"`, "media": `[{url: "x", kind: IMAGE}]`, "attributes": `{since: "\u202e"}`,
	"where": `{followedBy: "x"}`, "changes.kinds": "[]", "requests.state": "DECLINED",
	"login.handle": "", "login.password": "", // of no argument of these it is told which one is wrong
	"unlinkIdentity.issuer": "", "unlinkIdentity.subject": "", "filter": "", // a text of any length there is measured with the query
	"register.handle": "", "register.name": "", "register.password": "", "changePassword.current": "", "changePassword.new": "", // see the tests of accounts: nobody signs in here with a password
	"kind": "", "kinds": "", "direction": "", "scope": "", "orderBy": "", "only": "", "public": "", "special": "", "locked": "", "discoverable": "", "listVisibility": "",
	"representations": "", "by": "", "afterLine": "",
}

// With two or more arguments that are wrong, every field of the schema tells of all of them at once.
func TestAFieldTellsOfAllItsWrongArguments(t *testing.T) {
	file := declare(t, someKinds+"  user: &all\n    since: {type: String}\n  post: *all\n  follow: *all\n")
	v := settle(t, opened.Store(t, sqlstore.Config{Location: apitest.Location(t, 1)}), apitest.Options{Declared: file})
	post, list := publish(t, v.api, v.a, "x", "first"), v.createList(v.a, true)
	paths := map[string]string{
		"Query": "query { # }", "Mutation": "mutation { # }", "Subscription": "subscription { # }",
		"User": `{ user(by: {id: ` + v.b.String() + `}) { # } }`, "Viewer": "{ viewer { # } }",
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
				if wrong != "" {
					want = append(want, strings.NewReplacer("attributes", "since").Replace(a.Name))
				} else if wrong = right(schema, a); f.Name == "requests" {
					wrong = "FOLLOW"
				}
				given = append(given, a.Name+": "+wrong)
			}
			if len(want) < 2 {
				continue
			}
			asked++
			selection := " { __typename }"
			if schema.Types[f.Type.Name()].IsLeafType() {
				selection = ""
			}
			must.That(t, paths[of.Name] != "", "%s.%s: no way to it is known", of.Name, f.Name)
			query := strings.Replace(paths[of.Name], "#", f.Name+"("+strings.Join(given, ", ")+")"+selection, 1)
			var got []string
			for _, e := range v.refusals(t, f, query) {
				if !slices.Contains(got, e.Argument()) { // of `last` it is told that `first` is there, too
					got = append(got, e.Argument())
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			check.Equal(t, query, got, want)
		}
	}
	check.Least(t, "fields that were asked", asked, 50)
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
