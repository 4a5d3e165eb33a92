package sdl

import (
	"errors"
	"regexp"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/selections"
)

var prefixes = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,39}$`)

// CheckPrefix refuses what cannot stand in front of the names of types and root fields.
func CheckPrefix(p selections.Prefix) error {
	if p != "" && !prefixes.MatchString(string(p)) {
		return errors.New("it must be a capital letter, and up to 39 letters and digits behind it")
	}
	return nil
}

// Executable is a schema that answers, made by of. If there is a prefix, clients see its names with that.
func Executable(schema *ast.Schema, p selections.Prefix, of func(*ast.Schema) graphql.ExecutableSchema) graphql.ExecutableSchema {
	if p == "" {
		return of(schema)
	}
	shown := selections.Schema(gqlparser.MustLoadSchema(&ast.Source{Name: "schema.graphql", Input: text(schema)}))
	rename(shown, p)
	return selections.Renamed{ExecutableSchema: of(shown), Own: schema, Prefix: p}
}

// rename gives the types and root fields of a schema that nobody else has yet the names that clients know.
func rename(schema *ast.Schema, p selections.Prefix) {
	for _, root := range []*ast.Definition{schema.Query, schema.Mutation, schema.Subscription} {
		if root == nil {
			continue
		}
		for _, f := range root.Fields {
			f.Name = p.Field(f.Name)
		}
	}
	types := make(map[string]*ast.Definition, len(schema.Types))
	for _, d := range schema.Types {
		d.Name = p.Type(d.Name)
		types[d.Name] = d
		for i := range d.Interfaces {
			d.Interfaces[i] = p.Type(d.Interfaces[i])
		}
		for i := range d.Types {
			d.Types[i] = p.Type(d.Types[i])
		}
		for _, f := range d.Fields {
			renameType(f.Type, p)
			renameArguments(f.Arguments, p)
		}
	}
	for _, d := range schema.Directives {
		renameArguments(d.Arguments, p)
	}
	schema.Types, schema.PossibleTypes, schema.Implements = types, renamedKeys(schema.PossibleTypes, p), renamedKeys(schema.Implements, p)
}

func renameArguments(list ast.ArgumentDefinitionList, p selections.Prefix) {
	for _, a := range list {
		renameType(a.Type, p)
	}
}

func renameType(t *ast.Type, p selections.Prefix) {
	for t.Elem != nil {
		t = t.Elem
	}
	t.NamedType = p.Type(t.NamedType)
}

func renamedKeys(all map[string][]*ast.Definition, p selections.Prefix) map[string][]*ast.Definition {
	renamed := make(map[string][]*ast.Definition, len(all))
	for name, list := range all {
		renamed[p.Type(name)] = list
	}
	return renamed
}
