package resolvers_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"
	"pgregory.net/rapid"

	"kith/graph/generated"
	"kith/graph/sdl"
	"kith/graph/selections"
	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
)

// Without posts, an id of a post or of a comment is one of nobody, in every way to name an object.
func TestNodesOfTypesThatAreLeftOut(t *testing.T) {
	store := storeOf(t, 3)
	whole, without := apitest.New(t, store, apitest.Options{}), apitest.New(t, store, apitest.Options{Without: []string{sdl.Posts}})
	post := publish(t, whole, 2, "A post", "k")
	said := comment(t, whole, 3, post, "A-comment")
	query := fmt.Sprintf(`{ node(id: %q) { __typename id } nodes(ids: [%[1]q, %[2]q, "2"]) { id }
		_entities(representations: [{__typename: "Post", id: %[1]q}, {__typename: "Comment", id: %[2]q}, {__typename: "User", id: 2}]) { __typename } }`, post, said)
	whole.As(1).Ask(query, nil).Is(fmt.Sprintf(`{"node": {"__typename": "Post", "id": %q}, "nodes": [{"id": %[1]q}, {"id": %[2]q}, {"id": "2"}],
		"_entities": [{"__typename": "Post"}, {"__typename": "Comment"}, {"__typename": "User"}]}`, post, said))
	without.As(1).Ask(query, nil).Is(`{"node": null, "nodes": [null, null, {"id": "2"}], "_entities": [null, null, {"__typename": "User"}]}`)
	for _, query := range []string{
		`{ node(id: 1) { ... on Post { text } } }`, `{ node(id: 1) { ... on User { postCount } } }`, `{ latestPosts { nodes { id } } }`, `{ searchUsers(text: "u") { nodes { favoritesGivenCount } } }`, `{ viewer { feed { complete } } }`,
		`mutation { publishPost(text: "x", clientKey: "y") { changed } }`, `subscription { postAdded { edge { cursor } } }`,
	} {
		check.Lacks(t, query, whole.As(1).Ask(query, nil).Text, "Cannot query", "Unknown argument")
		without.As(1).Ask(query, nil).Refused("BAD_USER_INPUT")
		without.Admin().Ask(query, nil).Refused("BAD_USER_INPUT")
	}
	const activity = `{ viewer { activity { nodes { kind } } } }`
	whole.As(2).Ask(activity, nil).Is(`{"viewer": {"activity": {"nodes": [{"kind": "COMMENT"}]}}}`)
	without.As(2).Ask(activity, nil).Is(`{"viewer": {"activity": {"nodes": []}}}`)
	introspected := without.Admin().Ask(`{ __schema { types { name fields { name type { name } } inputFields { name } possibleTypes { name fields { name } } } } }`, nil).Whole().Text
	for _, name := range []string{"Post", "Comment", "COMMENT", "MENTION", "Media", "favorite", "FAVORITE", "postCount", "feed"} {
		check.Lacks(t, "introspection", introspected, `"`+name)
		check.Lacks(t, "the schema", without.Ask(`{ _service { sdl } }`, nil).Whole().Text, " "+name)
	}
}

// What operators use shows to them alone: in introspection, in the schema for routers, and in what is wrong with a query.
func TestOperatorsHaveASchemaOfTheirOwn(t *testing.T) {
	store := storeOf(t, 1)
	for _, prefix := range []selections.Prefix{"", "Kith"} {
		api := apitest.New(t, store, apitest.Options{TypePrefix: prefix, Statuses: kept{}})
		field, typeName := prefix.Field("consistency"), prefix.Type("Consistency")
		const introspect = `{ __schema { queryType { fields { name } } mutationType { fields { name } } types { name } } }`
		for query, secret := range map[string]string{introspect: `"` + typeName, `{ __type(name: "` + typeName + `") { fields { name } } }`: "lastFullScanAt", `{ ` + field + ` { modes { mode } } }`: `"modes":[]`} {
			for range 2 { // also once the gateway knows the document
				for who, a := range map[string]*apitest.API{"nobody": api, "a user": api.As(1), "an operator": api.Admin()} {
					check.Equal(t, who+": "+query, strings.Contains(a.Ask(query, nil).Text, secret), who == "an operator")
				}
			}
		}
		for _, query := range []string{introspect, `{ _service { sdl } }`, `{ consistenc }`, `mutation { createUse(id: 1) { user { id } } }`, `{ ... on Consistenc { modes } }`} {
			if got := api.As(1).Ask(query, nil).Text; regexp.MustCompile(`consistency"|(?i:consistency): |type \w*Consistency|createUser|\blinkIdentity|ReconcileMode`).MatchString(got) {
				t.Errorf("%s: %.300s", query, got)
			}
		}
	}
}

// With a prefix, every query has the answer that it has without, but for `__typename`: values at hand, those that gqlgen writes, and
// objects that a router names.
func TestAPrefixChangesNamesOnly(t *testing.T) {
	store := storeOf(t, 12)
	apitest.Tangle(t, store, 12)
	apitest.Publish(t, store, 12)
	const prefix = selections.Prefix("Kith")
	options := apitest.Options{Limits: apitest.NoLimits}
	plain := apitest.New(t, store, options)
	options.TypePrefix = prefix
	prefixed := apitest.New(t, store, options)
	options.Context = selections.ByGqlgen
	byGqlgen := apitest.New(t, store, options)
	typeName := regexp.MustCompile(`"__typename":"(\w+)"`)
	compare := func(t apitest.T, query string, vars apitest.Vars) {
		want := plain.For(t).As(3).Ask(query, vars)
		_, data, _ := strings.Cut(want.Text, `"data":`)
		data = typeName.ReplaceAllStringFunc(data, func(pair string) string {
			return `"__typename":"` + prefix.Type(typeName.FindStringSubmatch(pair)[1]) + `"`
		})
		named := inTheirNames(t, query, prefix)
		for how, api := range map[string]*apitest.API{"directly": prefixed, "by gqlgen": byGqlgen} {
			for range 2 {
				got := api.For(t).As(3).Ask(named, vars)
				_, its, _ := strings.Cut(got.Text, `"data":`)
				must.That(t, its == data && len(got.Errors) == len(want.Errors), "%s\n%v\n%s: %s\nwant %s", named, vars, how, got.Text, data)
			}
		}
	}
	properties.Check(t, 100, func(t *rapid.T) {
		query, vars := apitest.Query(t, 12)
		compare(t, query, vars)
	})
	compare(t, `{ __typename viewer { __typename feed { __typename edges { __typename node { __typename media { __typename kind } } } } requests(kind: FRIEND, direction: SENT) { __typename } } }`, nil)
	compare(t, `mutation { __typename followMany(userIds: [1, 3, 99]) { __typename outcomes { __typename error { __typename code } } } }`, nil)
	compare(t, `query($of: [_Any!]!) { _entities(representations: $of) { __typename ... on User { id } } }`, apitest.Vars{"of": []any{map[string]string{"__typename": "User", "id": "2"}}})

	prefixed.Ask(`query($of: [_Any!]!) { _entities(representations: $of) { __typename } }`, apitest.Vars{"of": []any{
		map[string]string{"__typename": "KithRelationship", "id": "rel_1_2"}, map[string]string{"__typename": "Relationship", "id": "rel_1_2"},
	}}).FailsAt("BAD_USER_INPUT", "_entities.1")
	prefixed.Ask(`{ kithRelationships(from: ["x"], to: ["1"]) { id } }`, nil).FailsAt("BAD_USER_INPUT", "kithRelationships.0")
	prefixed.As(1).Ask(`mutation { kithFollow(userId: 5) { __typename relationship { __typename } } }`, nil).Is(`{"kithFollow": {"__typename": "KithRelationshipPayload", "relationship": {"__typename": "KithRelationship"}}}`)
	prefixed.Ask(`{ __type(name: "KithVisibility") { name kind } none: __type(name: "Visibility") { name } }`, nil).Is(`{"__type": {"name": "KithVisibility", "kind": "ENUM"}, "none": null}`)
}

// inTheirNames is a query in the names that clients know with a prefix. The keys of its answer stay the same.
func inTheirNames(t apitest.T, query string, p selections.Prefix) string {
	schema := generated.NewSchema(generated.Config{}).Schema()
	doc, errs := gqlparser.LoadQueryWithRules(schema, query, nil)
	must.That(t, errs == nil, "%s: %v", query, errs)
	var rename func(ast.SelectionSet)
	rename = func(set ast.SelectionSet) {
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				if s.ObjectDefinition == schema.Query || s.ObjectDefinition == schema.Mutation {
					s.Name = p.Field(s.Name)
				}
				if all := s.Arguments.ForName("representations"); all != nil {
					for _, one := range all.Value.Children {
						if name := one.Value.Children.ForName("__typename"); name != nil {
							name.Raw = p.Type(name.Raw)
						}
					}
				}
				rename(s.SelectionSet)
			case *ast.InlineFragment:
				s.TypeCondition = p.Type(s.TypeCondition)
				rename(s.SelectionSet)
			}
		}
	}
	for _, op := range doc.Operations {
		rename(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		f.TypeCondition = p.Type(f.TypeCondition)
		rename(f.SelectionSet)
	}
	var text strings.Builder
	formatter.NewFormatter(&text).FormatQueryDocument(doc)
	return text.String()
}
