package sdl_test

import (
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"kith/graph/generated"
	"kith/graph/sdl"
	"kith/internal/check"
	"kith/internal/must"
)

func published(t *testing.T) (*ast.Schema, string) {
	text, err := sdl.Of(generated.NewExecutableSchema(generated.Config{}).Schema(), "")
	must.OK(t, err)
	schema, err := gqlparser.LoadSchema(&ast.Source{Input: text})
	must.That(t, err == nil, "the text cannot be read: %v", err)
	return schema, text
}

// Everything in the schema has a description.
func TestEverythingIsDescribed(t *testing.T) {
	schema, _ := published(t)
	check := func(what, description string) {
		check.That(t, strings.TrimSpace(description) != "", "%s has no description", what)
	}
	check("the schema", schema.Description)
	for name, d := range schema.Types {
		if d.BuiltIn {
			continue
		}
		check(name, d.Description)
		for _, f := range d.Fields {
			if strings.HasPrefix(f.Name, "__") {
				continue
			}
			check(name+"."+f.Name, f.Description)
			for _, a := range f.Arguments {
				check(name+"."+f.Name+"("+a.Name+":)", a.Description)
			}
		}
		for _, v := range d.EnumValues {
			check(name+"."+v.Name, v.Description)
		}
	}
}

// The cost of operations follows from the declared costs of fields and lengths of lists.
func TestCostsAreDeclared(t *testing.T) {
	schema, text := published(t)
	field := func(of, name string) string {
		var list []string
		for _, d := range schema.Types[of].Fields.ForName(name).Directives {
			if d.Name == "cacheControl" {
				continue
			}
			var arguments []string
			for _, a := range d.Arguments {
				arguments = append(arguments, a.Name+": "+a.Value.String())
			}
			list = append(list, "@"+d.Name+"("+strings.Join(arguments, ", ")+")")
		}
		return strings.Join(list, " ")
	}
	for _, tc := range []struct{ of, name, want string }{
		{"Query", "people", `@cost(weight: "200") @listSize(assumedSize: 20, slicingArguments: ["first","last"], sizedFields: ["edges","nodes"], requireOneSlicingArgument: false)`},
		{"Query", "users", `@listSize(assumedSize: 500)`},
		{"Query", "relationships", `@listSize(assumedSize: 2000)`},
		{"User", "followings", `@cost(weight: "25") @listSize(assumedSize: 20, slicingArguments: ["first","last"], sizedFields: ["edges","nodes"], requireOneSlicingArgument: false)`},
		{"Mutation", "followMany", `@semanticNonNull @cost(weight: "50") @listSize(assumedSize: 500, sizedFields: ["outcomes"])`},
		{"SuggestionEdge", "via", `@semanticNonNull(levels: [0,1]) @listSize(slicingArguments: ["first"], requireOneSlicingArgument: false)`},
		{"User", "handle", ""},
	} {
		check.Equal(t, tc.of+"."+tc.name, strings.ReplaceAll(field(tc.of, tc.name), "()", ""), tc.want)
	}
	if again, err := sdl.Of(schema, ""); err == nil {
		t.Errorf("a schema that has the directives already is written again:\n%s", again[:100])
	}
	check.That(t, len(text) >= 10_000, "the text has %d bytes", len(text))
}

// A subgraph has keys for nodes, shares the types that other subgraphs also have, and does not have
// the fields through which routers ask. Nothing else changes.
func TestTheSubgraph(t *testing.T) {
	schema := generated.NewExecutableSchema(generated.Config{}).Schema()
	text, err := sdl.Subgraph(schema, "")
	must.OK(t, err)
	doc, err := parser.ParseSchema(&ast.Source{Input: text})
	must.That(t, err == nil, "the text cannot be read: %v", err)
	for _, want := range []string{
		`extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: [`,
		`type User implements Node @key(fields: "id") @key(fields: "handle") {`,
		`type Relationship implements Node @key(fields: "id") {`,
		`type PageInfo @shareable {`,
		`  ): Node @shareable`,
		`  ): [Node]! @listSize(assumedSize: 500) @shareable`,
		`@cost(weight: 200) @listSize(assumedSize: 20, slicingArguments: ["first"], sizedFields: ["edges","nodes"]`, // the weight is a number, as in Federation
	} {
		check.That(t, strings.Contains(text, want), "it has no %s", want)
	}
	for _, name := range []string{"_Any", "_Entity", "_Service", "CacheControlScope"} {
		check.That(t, doc.Definitions.ForName(name) == nil && schema.Types[name] != nil, "%s is in it, or is not in the schema", name)
	}
	if len(doc.Directives) > 0 || strings.Contains(text, "@oneOf") || strings.Contains(text, "_entities") {
		t.Errorf("it has directives of its own: %d", len(doc.Directives))
	}
	again, err := sdl.Subgraph(schema, "")
	check.That(t, err == nil && again == text, "made again, it is another: %v", err)
}
