// Command generate writes the code that gqlgen generates from graph/schema and gqlgen.yml:
// `go run ./internal/generate`, from the top of the project.
//
// Values at hand are written by kith/graph/selections, see [direct], and so are names of types, see [nameTypes]. Fields of objects are answered in turn, see [inTurn].
// `_entities` and `_service` are Kith's own, see [federation].
package main

import (
	"bytes"
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
		err = edit(cfg.Exec.Filename, nameTypes, inTurn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// edit has edits change a file.
func edit(file string, edits ...func(code []byte) []byte) error {
	code, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, change := range edits {
		code = change(code)
	}
	return os.WriteFile(file, code, 0o644)
}

// nameTypes has the code answer `__typename` by our function: gqlgen's templates have the names of the schema's files as
// constants, and a setting may put a prefix in front of them.
func nameTypes(code []byte) []byte {
	constant := regexp.MustCompile(`(case "__typename":\s+out.Values\[i\] = )graphql.MarshalString\(("\w+")\)`)
	return constant.ReplaceAll(code, []byte("${1}typeName(ctx, $2)"))
}

// inTurn has the code answer the fields of an object one after another: what they show has been read before, so that goroutines would only
// give one request all processors. Fields of the viewer are read when they are answered, and root fields as well.
func inTurn(code []byte) []byte {
	object := regexp.MustCompile(`(?s)\nfunc \(ec \*executionContext\) _(\w+)\(ctx context.Context, sel ast.SelectionSet.*?\n}\n`)
	return object.ReplaceAllFunc(code, func(of []byte) []byte {
		if string(object.FindSubmatch(of)[1]) == "Viewer" {
			return of
		}
		return bytes.ReplaceAll(of,
			[]byte("out.Concurrently(i, func(ctx context.Context) graphql.Marshaler { return innerFunc(ctx, out) })"), []byte("out.Values[i] = innerFunc(ctx, out)"))
	})
}
