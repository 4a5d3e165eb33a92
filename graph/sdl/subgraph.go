package sdl

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/selections"
)

// federation is where the directives of a subgraph are defined: routers know them. 2.9 is the first
// version with the directives for costs.
const federation = `"https://specs.apollo.dev/federation/v2.9", import: ["@key", "@shareable", "@cost", "@listSize"]`

// definitions defines directives of Federation, so that text with them can be parsed here.
const definitions = `
directive @link(url: String!, import: [String!]) repeatable on SCHEMA
directive @key(fields: String!) repeatable on OBJECT
directive @shareable on FIELD_DEFINITION | OBJECT
`

// unshared are directives that only concern clients of this schema: composition drops those that it
// knows, and fails on `@oneOf`. Resolvers check what `@oneOf` says.
var unshared = []string{"semanticNonNull", "cacheControl", "oneOf"}

// Subgraph returns a schema as text for the router of a larger one, by Apollo Federation 2: types
// that are a Node have a key, what other subgraphs also have is shareable, and fields have their
// costs. The fields by which routers ask are not in it. Names are those that clients know with a prefix.
func Subgraph(schema *ast.Schema, p selections.Prefix) (string, error) {
	own, err := costed(schema, definitions)
	if err != nil {
		return "", err
	}
	for _, d := range own.Types {
		if d.BuiltIn {
			continue
		}
		for _, f := range d.Fields {
			f.Directives = shared(f.Directives)
		}
		d.Directives = append(shared(d.Directives), keys(own, d)...)
	}
	shareable := &ast.Directive{Name: "shareable", Definition: own.Directives["shareable"]}
	own.Types["PageInfo"].Directives = append(own.Types["PageInfo"].Directives, shareable)
	for _, name := range []string{"node", "nodes"} {
		f := own.Query.Fields.ForName(name)
		f.Directives = append(f.Directives, shareable)
	}
	own = Without(own, Federation)
	delete(own.Types, "CacheControlScope")
	for _, name := range append(unshared, "cost", "listSize", "link", "key", "shareable") {
		delete(own.Directives, name)
	}
	rename(own, p)
	return "extend schema @link(url: " + federation + ")\n\n" + text(own), nil
}

// shared are the directives of a field that other schemas know, as Federation writes them: a weight
// is a number there.
func shared(list ast.DirectiveList) (kept ast.DirectiveList) {
	for _, d := range list {
		if slices.Contains(unshared, d.Name) {
			continue
		}
		if d.Name == "cost" {
			d.Arguments[0].Value.Kind = ast.IntValue
		}
		kept = append(kept, d)
	}
	return kept
}

// keys are the fields by which a router names an object of a type. [kith/resolvers] reads them.
func keys(schema *ast.Schema, d *ast.Definition) (list ast.DirectiveList) {
	if d.Kind != ast.Object || !slices.Contains(d.Interfaces, "Node") {
		return nil
	}
	fields := []string{"id"}
	if d.Name == "User" {
		fields = append(fields, "handle")
	}
	for _, field := range fields {
		list = append(list, &ast.Directive{
			Name: "key", Definition: schema.Directives["key"],
			Arguments: ast.ArgumentList{{Name: "fields", Value: &ast.Value{Raw: field, Kind: ast.StringValue}}},
		})
	}
	return list
}
