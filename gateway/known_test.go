package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"pgregory.net/rapid"
)

// Variables of every type that is defined here.
const variableSchema = `
type Query { hello: String }
enum Color { RED BLUE }
input Filter { id: ID! }
scalar Moment
`

var variableTypes = []string{
	"ID", "ID!", "[ID!]!", "[ID]", "Int", "Int!", "Boolean", "Boolean!", "String", "Color", "Filter", "Float", "[[ID]]", "[Int!]", "Moment",
	`ID = "7"`, "Int = 7", `[ID!] = ["7"]`,
}

// If variables are converted without the validator, the result is the same as the validator's.
// Variables that this conversion refuses are left to the validator.
func TestVariablesAreCoercedAsTheValidatorDoes(t *testing.T) {
	schema := gqlparser.MustLoadSchema(&ast.Source{Input: variableSchema})
	value := drawnValue(3)
	coercions := 0
	rapid.Check(t, func(t *rapid.T) {
		types := rapid.SliceOfN(rapid.SampledFrom(variableTypes), 0, 3).Draw(t, "types")
		definitions := make([]string, len(types))
		given := map[string]any{}
		for i, kind := range types {
			name := fmt.Sprintf("v%d", i)
			definitions[i] = "$" + name + ": " + kind
			if rapid.IntRange(0, 5).Draw(t, "given") > 0 {
				given[name] = value.Draw(t, name)
			}
		}
		if rapid.IntRange(0, 5).Draw(t, "superfluous") == 0 {
			given["more"] = "1"
		}
		text := "query Q { __typename }"
		if len(definitions) > 0 {
			text = "query Q(" + strings.Join(definitions, ", ") + ") { __typename }"
		}
		doc, err := parser.ParseQuery(&ast.Source{Input: text})
		if err != nil {
			t.Fatal(err)
		}
		op := doc.Operations[0]
		for _, v := range op.VariableDefinitions {
			v.Definition = schema.Types[v.Type.Name()] // as validation would set it; validation also requires that all variables are used
		}
		want, wrong := validator.VariableValues(schema, op, cloned(given).(map[string]any))
		got, ok := coerced(variablesOf(op), cloned(given).(map[string]any))
		if !ok {
			return
		}
		coercions++
		if wrong != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s with %v becomes %#v, want %#v, %v", text, given, got, want, wrong)
		}
	})
	if coercions == 0 {
		t.Error("nothing was coerced")
	}
}

func drawnValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 8).Draw(t, "kind") {
		case 0, 1, 2:
			return rapid.SampledFrom([]string{"1", "42", "RED", "x", ""}).Draw(t, "text")
		case 3:
			return json.Number(rapid.SampledFrom([]string{"0", "-3", "2147483648", "9223372036854775808", "1.5", "1e3"}).Draw(t, "number"))
		case 4:
			return rapid.Bool().Draw(t, "bool")
		case 5:
			return nil
		case 6:
			return map[string]any{"id": "1"}
		}
		if depth == 0 {
			return "deep"
		}
		return rapid.SliceOfN(drawnValue(depth-1), 0, 3).Draw(t, "list")
	})
}

func cloned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		c := maps.Clone(v)
		for k := range c {
			c[k] = cloned(c[k])
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = cloned(v[i])
		}
		return c
	}
	return value
}

// If a document is forgotten, everything derived from it is forgotten, too. A document keeps no
// more operations than it has.
func TestDocumentsAreForgottenWhole(t *testing.T) {
	d, ctx := newDocuments(nil), context.Background()
	parsed := &ast.QueryDocument{}
	d.Add(ctx, "first", parsed)
	first := d.of(ctx, "first")
	first.keep("A", &known{text: "A"})
	first.keep("B", &known{text: "B"})
	first.keep("A", &known{text: "A"})
	if first.operation("A").text != "A" || first.operation("B").text != "B" || first.operation("C") != nil || len(*first.operations.Load()) != 2 {
		t.Errorf("the document has the operations %v", *first.operations.Load())
	}
	for i := range 2 * queryCacheEntries { // used as often as the first one
		for range 10 {
			d.Add(ctx, fmt.Sprint(i), &ast.QueryDocument{})
			d.of(ctx, fmt.Sprint(i))
		}
	}
	d.entries.CleanUp()
	if d.of(ctx, "first") != nil {
		t.Error("a document that was not used for long is kept")
	}
	if _, ok := d.Get(ctx, "first"); ok {
		t.Error("its text is known")
	}
	again := d.of(ctx, "first")
	for ; again == nil; again = d.of(ctx, "first") { // a text that is asked for often is admitted in the end
		d.Add(ctx, "first", parsed)
	}
	if again.operation("A") != nil {
		t.Error("an operation has outlived its document")
	}
	long := strings.Repeat("x", queryCacheBytes/documentBytesFactor/8+1)
	d.Add(ctx, long, parsed)
	if d.of(ctx, long) != nil {
		t.Error("a document is kept that takes more than an eighth of the cache")
	}
}

// The cache keeps the text of a request and the name of its operation, and nothing else.
func TestKnownOperationsHoldNothingOfARequest(t *testing.T) {
	for i := range reflect.TypeFor[known]().NumField() {
		field := reflect.TypeFor[known]().Field(i)
		switch field.Type {
		case reflect.TypeFor[map[string]any](), reflect.TypeFor[context.Context](), reflect.TypeFor[*graphql.OperationContext]():
			t.Errorf("%s is a request's", field.Name)
		}
	}
}
