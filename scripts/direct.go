//go:build ignore

// direct puts kith/graph/direct in front of the marshalers that gqlgen has just
// generated, has queries for one field answered without a set of fields, has lists of ids read without a context for each of them, has answers written
// into memory of a bounded size, leaves out the map of input types, which only code of our own would
// read, and takes @defer out of the schema: `go run scripts/direct.go`, from the top of the project.
package main

import (
	"bytes"
	"fmt"
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

	// What gqlgen's own decoding of input types never looks at.
	inputMap    = regexp.MustCompile(`(?m)^\tinputUnmarshalMap := graphql\.BuildUnmarshalerMap\(\n(?:\t\tec\.\w+,\n)*\t\)\n`)
	inputMapPut = regexp.MustCompile(`(?m)^\t+ctx = graphql\.WithUnmarshalerMap\(ctx, inputUnmarshalMap\)\n`)
	// The answers to a query, a mutation and an event, which grow without a bound.
	grown  = regexp.MustCompile(`(?m)^(?:\t+var buf bytes\.Buffer\n)?\t+data\.MarshalGQL\(&buf\)\n(?:\t+response\.Data = buf\.Bytes\(\)\n|\n\t+return &graphql\.Response\{\n\t+Data: buf\.Bytes\(\),\n\t+\}\n)`)
	buffer = regexp.MustCompile(`(?m)^\t+var buf bytes\.Buffer\n|^\t+buf\.Reset\(\)\n|^\t"bytes"\n`)

	// The fields of Query, each of which has a function, and the call that answers them all.
	root  = regexp.MustCompile(`(?m)^func \(ec \*executionContext\) _Query_([a-z]\w*)\(ctx context\.Context, field graphql\.CollectedField\) \(ret graphql\.Marshaler\) \{$`)
	query = []byte("data = ec._Query(ctx, opCtx.Operation.SelectionSet)\n")
	quick = []byte("data = direct.Query(ctx, ec, opCtx.Operation.SelectionSet, queryRoots, ec._Query)\n")

	// The schema, which has directives that gqlgen brings along.
	schema    = []byte("var parsedSchema = gqlparser.MustLoadSchema(sources...)\n")
	schemaOwn = []byte("var parsedSchema = direct.Schema(gqlparser.MustLoadSchema(sources...))\n")

	objects = regexp.MustCompile(`(?m)^\treturn ec\.(_` + types + `)\(ctx, sel, v\)$`)
)

func main() {
	log.SetFlags(0)
	files, err := filepath.Glob(folder + "/*.generated.go")
	if err != nil || len(files) == 0 {
		log.Fatalf("no generated code in %s: %v", folder, err)
	}
	var total places
	for _, name := range files {
		n, err := rewrite(name)
		if err != nil {
			log.Fatalf("%s: %v", name, err)
		}
		for kind, count := range n {
			total[kind] += count
		}
	}
	for kind, count := range total {
		if count == 0 {
			log.Fatalf("gqlgen generates other code now: there is no %s any more", kinds[kind])
		}
	}
}

// places is in how many places each kind of code was found.
type places [len(kinds)]int

var kinds = [...]string{"list", "object", "list of ids", "map of input types", "answer to a query", "field of Query", "call for them", "schema"}

// rewrite rewrites one file.
func rewrite(name string) (n places, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return n, err
	}
	n = places{
		len(lists.FindAll(text, -1)), len(objects.FindAll(text, -1)), bytes.Count(text, ids),
		len(inputMap.FindAll(text, -1)), len(grown.FindAll(text, -1)),
		len(root.FindAll(text, -1)), bytes.Count(text, query), bytes.Count(text, schema),
	}
	if n == (places{}) {
		return n, nil
	}
	text = bytes.ReplaceAll(text, ids, idsFast)
	text = inputMapPut.ReplaceAll(inputMap.ReplaceAll(text, nil), nil)
	if n[4] > 0 {
		text = grown.ReplaceAllFunc(text, atOnce)
		text = buffer.ReplaceAll(text, nil)
	}
	text = bytes.ReplaceAll(text, query, quick)
	text = bytes.ReplaceAll(text, schema, schemaOwn)
	text = append(text, rootsOf(text)...)
	text = lists.ReplaceAll(text, []byte("${1}direct.Slice(ctx, sel, v, "))
	text = objects.ReplaceAll(text, []byte("\treturn direct.Object(ctx, sel, v, ec.${1})"))
	if bytes.Contains(text, []byte("direct.")) {
		text = bytes.Replace(text, []byte(imports), []byte(imports+"\t\"kith/graph/direct\"\n"), 1)
	}
	if text, err = format.Source(text); err != nil {
		return n, err
	}
	return n, os.WriteFile(name, text, 0o644)
}

// atOnce has one answer written by [kith/graph/direct.Bytes].
func atOnce(grown []byte) []byte {
	if bytes.Contains(grown, []byte("response.Data")) {
		return []byte("\t\t\tresponse.Data = direct.Bytes(ctx, data)\n")
	}
	return []byte("\n\t\t\treturn &graphql.Response{Data: direct.Bytes(ctx, data)}\n")
}

// rootsOf is the table of the fields of Query, in the file that has their functions.
func rootsOf(text []byte) []byte {
	found := root.FindAllSubmatch(text, -1)
	if len(found) == 0 {
		return nil
	}
	var table bytes.Buffer
	table.WriteString("\nvar queryRoots = direct.Roots[*executionContext]{\n")
	for _, f := range found {
		fmt.Fprintf(&table, "\t%q: (*executionContext)._Query_%s,\n", f[1], f[1])
	}
	table.WriteString("}\n")
	return table.Bytes()
}
