package cli

import (
	"io"

	"github.com/alecthomas/kong"

	"kith/graph/generated"
	"kith/graph/sdl"
)

// SchemaCmd is `kith schema`.
type SchemaCmd struct{}

// BeforeReset prints the schema as every gateway has it at /schema.graphql, and ends the program before
// any setting is read.
func (SchemaCmd) BeforeReset(app *kong.Kong) error {
	text, err := sdl.Of(generated.NewExecutableSchema(generated.Config{}).Schema())
	if err != nil {
		return err
	}
	if _, err := io.WriteString(app.Stdout, text); err != nil {
		return err
	}
	app.Exit(0)
	return nil
}
