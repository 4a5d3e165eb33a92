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
	named := reread(schema)
	rename(named, p)
	return selections.Renamed{ExecutableSchema: of(selections.Schema(reread(named))), Own: schema, Prefix: p}
}

func reread(schema *ast.Schema) *ast.Schema {
	return gqlparser.MustLoadSchema(&ast.Source{Name: "schema.graphql", Input: text(schema)})
}

// rename gives the types and root fields of a schema that nobody else has yet the names that clients know, as far as the schema's
// text has them.
func rename(schema *ast.Schema, p selections.Prefix) {
	types := make(map[string]*ast.Definition, len(schema.Types))
	for _, d := range schema.Types {
		isRoot := d == schema.Query || d == schema.Mutation || d == schema.Subscription
		d.Name = p.Type(d.Name)
		types[d.Name] = d
		for i := range d.Interfaces {
			d.Interfaces[i] = p.Type(d.Interfaces[i])
		}
		for i := range d.Types {
			d.Types[i] = p.Type(d.Types[i])
		}
		for _, f := range d.Fields {
			if isRoot {
				f.Name = p.Field(f.Name)
			}
			selections.Rename(f.Type, p.Type)
			renameArguments(f.Arguments, p)
		}
	}
	for _, d := range schema.Directives {
		renameArguments(d.Arguments, p)
	}
	schema.Types = types
}

func renameArguments(list ast.ArgumentDefinitionList, p selections.Prefix) {
	for _, a := range list {
		selections.Rename(a.Type, p.Type)
	}
}
