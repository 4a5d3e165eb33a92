package sdl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"kith/graph/generated"
	"kith/graph/sdl"
	"kith/graph/selections"
	"kith/internal/check"
	"kith/internal/must"
)

var allParts = []string{sdl.Federation, sdl.Operators, sdl.Accounts, sdl.Posts}

// each runs a test for the schema without each combination of parts.
func each(t *testing.T, test func(t *testing.T, schema *ast.Schema, left []string)) {
	for n := range 1 << len(allParts) {
		var left []string
		for i, part := range allParts {
			if n&(1<<i) != 0 {
				left = append(left, part)
			}
		}
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			test(t, sdl.Without(generated.NewSchema(generated.Config{}).Schema(), left...), left)
		})
	}
}

// Every combination of parts, with and without a prefix, is a valid schema and a valid subgraph. A query leads to each of its types.
func TestEverySchemaIsValid(t *testing.T) {
	each(t, func(t *testing.T, schema *ast.Schema, left []string) {
		for _, prefix := range []selections.Prefix{"", "Kith"} {
			text, err := sdl.Of(schema, prefix)
			must.OK(t, err)
			again, err := gqlparser.LoadSchema(&ast.Source{Input: text})
			must.That(t, err == nil, "prefix %q: %v", prefix, err)
			for name, d := range again.Types {
				check.That(t, d.BuiltIn || reached(again)[name], "prefix %q: nothing leads to %s", prefix, name)
			}
			text, err = sdl.Subgraph(schema, prefix)
			check.That(t, err == nil && !strings.Contains(text, "_entities"), "prefix %q: %v", prefix, err)
		}
		whole := generated.NewSchema(generated.Config{}).Schema()
		check.That(t, len(left) != 0 || len(schema.Types) == len(whole.Types), "%d types, want %d", len(schema.Types), len(whole.Types))
	})
}

// reached are the types to which fields and directives lead from the roots on, without the members of interfaces and unions.
func reached(schema *ast.Schema) map[string]bool {
	seen := map[string]bool{}
	next := []string{"Query", "Mutation", "Subscription"}
	arguments := func(list ast.ArgumentDefinitionList) {
		for _, a := range list {
			next = append(next, a.Type.Name())
		}
	}
	for _, d := range schema.Directives {
		arguments(d.Arguments)
	}
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		next = append(next, schema.Types[name].Interfaces...)
		for _, f := range schema.Types[name].Fields {
			next = append(next, f.Type.Name())
			arguments(f.Arguments)
		}
	}
	return seen
}

// A part leaves with all that belongs to it: no name of the schema tells of it, and none of the parts takes more.
func TestPartsAreWhole(t *testing.T) {
	for part, words := range map[string][]string{
		sdl.Federation: {"_entit", "_service", "_any"},
		sdl.Operators:  {"consistency", "reconcil", "disagree", "createuser", "linkidentity", "userpayload", "moderation", "suspenduser", "reinstate", "removepost", "removecomment", "subscription.changes", "changeevent", "changekind", "changedata"},
		sdl.Accounts:   {"register", "login", "token", "password", "session", "signout"},
		sdl.Posts:      {"post", "comment", "favorite", "favorited", "media", "feed", "publish"},
	} {
		whole := names(generated.NewSchema(generated.Config{}).Schema())
		without := names(sdl.Without(generated.NewSchema(generated.Config{}).Schema(), part))
		isOf := func(name string) bool {
			name = strings.ToLower(name)
			return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
		}
		for _, name := range without {
			check.That(t, !isOf(name) || slices.Contains(elsewhere[part], name), "without %s there is %s", part, name)
		}
		for _, name := range whole {
			typeName, _, _ := strings.Cut(name, ".")
			check.That(t, isOf(name) || isOf(typeName) || slices.Contains(without, name) || typeName == "NewerPosts", "%s takes %s away", part, name)
		}
	}
}

// elsewhere are names that sound as if they were of a part, and are of another one.
var elsewhere = map[string][]string{
	sdl.Operators: {"Mutation.unlinkIdentity", "UnlinkIdentityPayload", "UnlinkIdentityPayload.changed"},
	sdl.Posts:     {"ModerationEntry.postId", "ModerationEntry.commentId"},
}

// names are those of all types and fields.
func names(schema *ast.Schema) (all []string) {
	for name, d := range schema.Types {
		if d.BuiltIn {
			continue
		}
		all = append(all, name)
		for _, f := range d.Fields {
			if !strings.HasPrefix(f.Name, "__") {
				all = append(all, name+"."+f.Name)
			}
		}
	}
	return all
}

// What Without makes is its own: the schema that it is made of does not change, and definitions of fields are the same ones.
func TestPartsAreTakenFromACopy(t *testing.T) {
	whole := generated.NewSchema(generated.Config{}).Schema()
	before := names(whole)
	public := sdl.Without(whole, allParts...)
	check.Equal(t, "names", len(names(whole)), len(before))
	for name, d := range public.Types {
		for _, f := range d.Fields {
			check.That(t, whole.Types[name].Fields.ForName(f.Name) == f, "%s.%s is a copy", name, f.Name)
		}
	}
	for _, member := range public.PossibleTypes["Node"] {
		check.That(t, member == public.Types[member.Name], "%s is another one among the nodes", member.Name)
	}
}

func TestPartsHaveNames(t *testing.T) {
	for names, want := range map[string]string{
		"": "", "posts": "", "accounts posts": "", "federation": "there is no part", "operators": "there is no part", "Posts": `"Posts": the parts are accounts and posts`,
	} {
		err := sdl.CheckParts(strings.Fields(names))
		check.Says(t, names, err, want)
	}
	for prefix, fits := range map[selections.Prefix]bool{
		"": true, "K": true, "Kith2": true, selections.Prefix("K" + strings.Repeat("x", 39)): true, selections.Prefix("K" + strings.Repeat("x", 40)): false,
		"kith": false, "2K": false, "__K": false, "K_": false, "K-": false, "Ä": false, "K\n": false,
	} {
		err := sdl.CheckPrefix(prefix)
		check.That(t, (err == nil) == fits, "%q: %v", prefix, err)
	}
}

// With a prefix, introspection has the clients' names everywhere, and no other ones. A document in these names becomes one in ours,
// with the definitions of the schema that costs are made of.
func TestAPrefix(t *testing.T) {
	own := sdl.Without(generated.NewSchema(generated.Config{}).Schema(), sdl.Operators)
	before := names(own)
	var shown *ast.Schema
	renamed := sdl.Executable(own, "Kith", func(schema *ast.Schema) graphql.ExecutableSchema {
		shown = schema
		return generated.NewSchema(generated.Config{Schema: schema})
	})
	check.That(t, renamed.Schema() == own && len(names(own)) == len(before) && own.Types["KithPost"] == nil, "the schema has changed")
	for _, name := range names(shown) {
		typeName, field, _ := strings.Cut(name, ".")
		if root := typeName == "Query" || typeName == "Mutation" || typeName == "Subscription"; root && field != "" {
			check.That(t, strings.HasPrefix(field, "kith") || strings.HasPrefix(field, "_") || field == "node" || field == "nodes", "%s has no prefix", name)
		} else if !root && !strings.HasPrefix(typeName, "Kith") && !slices.Contains([]string{"User", "Node", "PageInfo", "DateTime", "_Any", "_Entity", "_Service"}, typeName) {
			t.Errorf("%s has no prefix", name)
		}
	}
	doc, err := gqlparser.LoadQueryWithRules(shown, `query($where: KithPeopleFilter!, $ids: [ID!]!) {
		a: kithPeople(where: $where) { nodes { ...U } } nodes(ids: $ids) { __typename ... on KithPost { text author { ...U } } } ...Q
	} fragment U on User { name } fragment Q on Query { kithViewer { __typename } ... on Query { kithRelationships(from: $ids, to: $ids) { id } } }`, nil)
	must.That(t, err == nil, "%v", err)
	only, errs := (selections.Schemas{Schema: renamed}).Validate(doc, true, nil)
	must.That(t, !only && errs == nil, "%v", errs)
	errs = validator.ValidateWithRules(own, doc, nil)
	check.That(t, errs == nil, "it is not in our names: %v", errs)
	op := doc.Operations[0]
	f := op.SelectionSet[0].(*ast.Field)
	check.That(t, f.Alias == "a" && f.Name == "people" && f.Definition == own.Query.Fields.ForName("people"), "it asks for %+v", f)
	f = doc.Fragments.ForName("Q").SelectionSet[0].(*ast.Field)
	check.That(t, f.Alias == "kithViewer" && f.Name == "viewer", "the fragment asks for %+v", f)
	for _, wrong := range []string{"{ viewer { id } }", "{ node(id: 1) { ... on Post { text } } }", "query($w: PeopleFilter!) { kithPeople(where: $w) { complete } }", "{ kithuser(id: 1) { id } }"} {
		doc, err := parser.ParseQuery(&ast.Source{Input: wrong})
		must.OK(t, err)
		_, errs := (selections.Schemas{Schema: renamed}).Validate(doc, false, nil)
		check.That(t, errs != nil, "%s is valid", wrong)
	}
}
