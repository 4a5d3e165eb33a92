//go:build ignore

// direct puts kith/graph/direct in front of the marshalers that gqlgen has just
// generated, and has lists of ids read without a context for each of them: `go run
// scripts/direct.go`, from the top of the project.
package main

import (
	"bytes"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"regexp"
)

const (
	folder  = "graph/generated"
	imports = "import (\n"
)

// Of these types kith/graph/direct has tables.
const types = `(?:User|UserEdge|UserConnection|PageInfo|Relationship|SuggestionEdge|UserSearchEdge)`

var (
	lists = regexp.MustCompile(`(?m)^(func \(ec \*executionContext\) marshal[^(]*\(ctx context\.Context, sel ast\.SelectionSet, v \[\]\*model\.` + types + `\) graphql\.Marshaler \{\n` +
		`(?:\tif v == nil \{\n\t\treturn graphql\.Null\n\t\}\n)?\tret := )graphql\.MarshalSliceConcurrently\(ctx, len\(v\), 0, false, `)
	// Where an id stands in its list matters only to the error about it.
	ids     = []byte("\t\tctx := graphql.WithPathContext(ctx, graphql.NewPathWithIndex(i))\n\t\tres[i], err = ec.unmarshalNID2string(ctx, vSlice[i])\n\t\tif err != nil {\n")
	idsFast = []byte("\t\tres[i], err = ec.unmarshalNID2string(ctx, vSlice[i])\n\t\tif err != nil {\n\t\t\tctx := graphql.WithPathContext(ctx, graphql.NewPathWithIndex(i))\n\t\t\t_, err = ec.unmarshalNID2string(ctx, vSlice[i])\n")

	objects = regexp.MustCompile(`(?m)^\treturn ec\.(_` + types + `)\(ctx, sel, v\)$`)
)

func main() {
	log.SetFlags(0)
	files, err := filepath.Glob(folder + "/*.generated.go")
	if err != nil || len(files) == 0 {
		log.Fatalf("no generated code in %s: %v", folder, err)
	}
	var places [3]int
	for _, name := range files {
		n, err := rewrite(name)
		if err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		places[0] += n[0]
		places[1] += n[1]
		places[2] += n[2]
	}
	if places[0] == 0 || places[1] == 0 || places[2] == 0 {
		log.Fatal("gqlgen generates other code now: there is nothing to put kith/graph/direct in front of, or no list of ids")
	}
}

// rewrite tells in how many places lists, objects and lists of ids were found.
func rewrite(name string) (places [3]int, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return places, err
	}
	places = [3]int{len(lists.FindAll(text, -1)), len(objects.FindAll(text, -1)), bytes.Count(text, ids)}
	text = bytes.ReplaceAll(text, ids, idsFast)
	if places[0]+places[1] == 0 && places[2] > 0 {
		return places, os.WriteFile(name, text, 0o644)
	}
	if places[0]+places[1] == 0 {
		return places, nil
	}
	text = lists.ReplaceAll(text, []byte("${1}direct.Slice(ctx, sel, v, "))
	text = objects.ReplaceAll(text, []byte("\treturn direct.Object(ctx, sel, v, ec.${1})"))
	text = bytes.Replace(text, []byte(imports), []byte(imports+"\t\"kith/graph/direct\"\n"), 1)
	if text, err = format.Source(text); err != nil {
		return places, err
	}
	return places, os.WriteFile(name, text, 0o644)
}
