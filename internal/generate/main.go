// Command generate writes the code that gqlgen generates from graph/schema and gqlgen.yml:
// `go run ./internal/generate`, from the top of the project.
//
// Values at hand are written by kith/graph/selections, see [direct].
// `_entities` and `_service` are Kith's own, see [federation].
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
)

func main() {
	log.SetOutput(io.Discard) // gqlgen prints what it tries
	cfg, err := config.LoadConfig("gqlgen.yml")
	if err == nil {
		err = api.Generate(cfg, api.PrependPlugin(federation{}), api.AddPlugin(direct{}))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
