// Package sdl writes the schema for tools that read files rather than ask a gateway: in the schema
// definition language, with its descriptions and the costs of fields.
package sdl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/formatter"

	"kith/graph/limits"
	"kith/graph/selections"
)

// Of returns a schema as text: types in alphabetical order, with the directives of the schema and
// with `@cost` and `@listSize` (see [limits.Declare]), by the names that clients know with a prefix.
func Of(schema *ast.Schema, p selections.Prefix) (string, error) {
	own, err := costed(schema, "")
	if err != nil {
		return "", err
	}
	rename(own, p)
	return text(own), nil
}

// costed is a copy of a schema with the costs of its fields. definitions are those of more directives.
func costed(schema *ast.Schema, definitions string) (*ast.Schema, error) {
	own, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: text(schema) + limits.Directives + definitions})
	if err != nil {
		return nil, fmt.Errorf("read the schema's own text: %w", err)
	}
	return own, limits.Declare(own)
}

func text(schema *ast.Schema) string {
	var b strings.Builder
	f := formatter.NewFormatter(&b, formatter.WithIndent("  "))
	f.FormatSchemaDocument(&ast.SchemaDocument{Schema: ast.SchemaDefinitionList{root(schema)}}) // FormatSchema leaves this out
	f.FormatSchema(schema)
	return b.String()
}

func root(schema *ast.Schema) *ast.SchemaDefinition {
	d := &ast.SchemaDefinition{Description: schema.Description}
	for operation, definition := range map[ast.Operation]*ast.Definition{
		ast.Query: schema.Query, ast.Mutation: schema.Mutation, ast.Subscription: schema.Subscription,
	} {
		if definition != nil {
			d.OperationTypes = append(d.OperationTypes, &ast.OperationTypeDefinition{Operation: operation, Type: definition.Name})
		}
	}
	slices.SortFunc(d.OperationTypes, func(a, b *ast.OperationTypeDefinition) int { return cmp.Compare(a.Type, b.Type) })
	return d
}
