// Command generate writes the code that gqlgen generates from graph/schema and gqlgen.yml:
// `go run ./internal/generate`, from the top of the project.
//
// Values at hand are written by kith/graph/direct, see [direct].
package main

import (
	"log"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
)

func main() {
	log.SetFlags(0)
	cfg, err := config.LoadConfig("gqlgen.yml")
	if err != nil {
		log.Fatal(err)
	}
	if err := api.Generate(cfg, api.AddPlugin(direct{})); err != nil {
		log.Fatal(err)
	}
}
