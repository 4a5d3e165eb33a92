// Command generate writes the code that gqlgen generates from graph/schema and gqlgen.yml:
// `go run ./internal/generate`, from the top of the project.
//
// Values at hand are written by kith/graph/selections, see [direct], and so are names of types, see [nameTypes].
// `_entities` and `_service` are Kith's own, see [federation].
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"regexp"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
)

func main() {
	log.SetOutput(io.Discard) // gqlgen prints what it tries
	cfg, err := config.LoadConfig("gqlgen.yml")
	if err == nil {
		err = api.Generate(cfg, api.PrependPlugin(federation{}), api.AddPlugin(direct{}))
	}
	if err == nil {
		err = nameTypes(cfg.Exec.Filename)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// nameTypes has the code answer `__typename` by our function: gqlgen's templates have the names of the schema's files as
// constants, and a setting may put a prefix in front of them.
func nameTypes(file string) error {
	code, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	constant := regexp.MustCompile(`(case "__typename":\s+out.Values\[i\] = )graphql.MarshalString\(("\w+")\)`)
	return os.WriteFile(file, constant.ReplaceAll(code, []byte("${1}typeName(ctx, $2)")), 0o644)
}
