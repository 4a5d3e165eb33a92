package cli

import (
	"github.com/alecthomas/kong"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/generated"
	"kith/graph/sdl"
)

// SchemaCmd is `kith schema`.
type SchemaCmd struct {
	Federation bool `help:"Print what a router of Apollo Federation 2 composes: with keys, and without what only clients of this schema read."`
}

// BeforeReset prints the schema as every gateway without --federation has it at /schema.graphql, and ends the program before
// any setting is read.
func (SchemaCmd) BeforeReset(app *kong.Kong, given *kong.Context) error {
	of := func(schema *ast.Schema) (string, error) { return sdl.Of(sdl.WithoutFederation(schema)) }
	for _, p := range given.Path {
		if p.Flag != nil && p.Flag.Name == "federation" && given.FlagValue(p.Flag) == true { // at this point it has not been read into the command
			of = sdl.Subgraph
		}
	}
	text, err := of(generated.NewExecutableSchema(generated.Config{}).Schema())
	return showInstead(app, text, err)
}
