package cli

import (
	"cmp"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/alecthomas/kong"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/declared"
	"kith/graph/generated"
	"kith/graph/sdl"
	"kith/graph/selections"
)

// SchemaCmd is `kith schema`.
type SchemaCmd struct {
	Federation bool     `help:"Print the Apollo Federation 2 subgraph: with keys, without what only direct clients read."`
	Operators  bool     `help:"Include fields that need a token with the scope admin."`
	Without    []string `placeholder:"PART" help:"Parts to leave out: posts, accounts."`
	TypePrefix string   `placeholder:"PREFIX" help:"Prefix of types and root fields."`
	Relations  string   `placeholder:"FILE" help:"Include what this file declares."`
}

// BeforeReset prints the schema as gateways with the same parts have it at /schema.graphql, and ends the program before any
// setting is read.
func (SchemaCmd) BeforeReset(app *kong.Kong, given *kong.Context) (err error) {
	var s shape
	operators, subgraph := false, false
	for _, p := range given.Path {
		if p.Flag == nil {
			continue
		}
		switch v := given.FlagValue(p.Flag); p.Flag.Name { // at this point it has not been read into the command
		case "federation":
			subgraph = v == true
		case "operators":
			operators = v == true
		case "without":
			s.without = v.([]string)
		case "type-prefix":
			s.prefix = selections.Prefix(v.(string))
		case "relations":
			if s.declared, err = declared.Read(v.(string)); err != nil {
				return Misset("relations", err)
			}
		}
	}
	if err := s.check(); err != nil {
		return err
	}
	of := sdl.Of
	if subgraph {
		of = sdl.Subgraph
	}
	text, err := of(s.schema(operators), s.prefix)
	return showInstead(app, given, text, err)
}

// shape is which parts of the schema a gateway has, and what is in front of its names.
type shape struct {
	federation bool
	without    []string
	prefix     selections.Prefix
	declared   *declared.File // nil: nothing
}

func (c *ServeCmd) shape() shape {
	return shape{c.Federation, c.Without, selections.Prefix(c.TypePrefix), c.declared}
}

// isWhole reports whether the pages can ask all that they ask.
func (s shape) isWhole() bool { return len(s.without) == 0 && s.prefix == "" }

func (s shape) check() error {
	return cmp.Or(Misset("without", sdl.CheckParts(s.without)), Misset("type-prefix", sdl.CheckPrefix(s.prefix)))
}

// schema is the schema for operators or for everybody, with our own names.
func (s shape) schema(operators bool) *ast.Schema {
	left := slices.Clone(s.without)
	if !s.federation {
		left = append(left, sdl.Federation)
	}
	if !operators {
		left = append(left, sdl.Operators)
	}
	return sdl.Without(generated.SchemaOf(cmp.Or(s.declared, declared.Nothing)), left...)
}

// schemas answer what callers may ask.
func (s shape) schemas(root generated.ResolverRoot) selections.Schemas {
	executable := func(schema *ast.Schema) graphql.ExecutableSchema {
		return sdl.Executable(schema, s.prefix, func(shown *ast.Schema) graphql.ExecutableSchema {
			return generated.NewSchema(generated.Config{Resolvers: root, Schema: shown})
		})
	}
	return selections.Schemas{Schema: executable(s.schema(false)), Operators: executable(s.schema(true))}
}
