package selections_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/selections"
	"kith/internal/check"
	"kith/internal/must"
)

var schema = gqlparser.MustLoadSchema(&ast.Source{Input: `
type Query { echo(text: String, texts: [String], id: ID, ids: [ID!], must: ID!, color: Color, filter: Filter, any: Any): String }
scalar Any
enum Color { RED BLUE }
input Filter { id: ID! colors: [Color!] = [RED] }
input Either @oneOf { a: ID b: ID }
`})

// Expected values are those of getVariableValues of graphql-js 16.15.
func TestVariables(t *testing.T) {
	for _, c := range []struct{ definition, given, want string }{
		{"Int", "2", "2"}, {"Int", "2.0", "2"}, {"Int", "2e1", "20"}, {"Int", "-0", "0"}, {"Int", "2147483647", "2147483647"},
		{"Int", "2147483648", "32 bits without a fraction"}, {"Int", "2.5", "32 bits without a fraction"}, {"Int", "1e400", "32 bits without a fraction"},
		{"Int", `"2"`, "a text is given, and it takes Int"}, {"Int", "true", "a boolean is given"}, {"Int", "null", "null"}, {"Int!", "null", "nothing is given"},
		{"Int = 3", "", "3"}, {"Int = 3", "null", "null"}, {"Int!", "", "nothing is given"}, {"Int! = 3", "", "3"},
		{"ID", `"x"`, `"x"`}, {"ID", "5", `"5"`}, {"ID", "5.0", `"5"`}, {"ID", "5.5", "64 bits without a fraction"}, {"ID", "9223372036854775808", "ID takes a text, or a number"}, {"ID", "9223372036854775807", `"9223372036854775807"`},
		{"ID", `{"a": 1}`, "an object is given"}, {"[ID!]!", `{"a": 1}`, "an object is given"}, {"[ID!]!", `["1", 2]`, `["1", "2"]`}, {"[ID!]!", "7", `["7"]`},
		{"[ID!]!", `["1", null]`, "[1]: nothing is given"}, {"[[ID]]", `["1", ["2", null], null]`, `[["1"], ["2", null], null]`}, {"[ID]", "null", "null"}, {"[ID!]", "[]", "[]"},
		{"String", `"5"`, `"5"`}, {"String", "5", "a number is given, and it takes String"}, {"Boolean", "false", "false"}, {"Boolean", `"true"`, "a text is given"},
		{"Float", "2", "2"}, {"Float", `"2"`, "a text is given"}, {"Color", `"RED"`, `"RED"`}, {"Color", `"red"`, "one of the values of Color"}, {"Color", "1", "a number is given"},
		{"Filter", `{"id": 1}`, `{"id": "1", "colors": ["RED"]}`}, {"Filter", `{"id": 1, "colors": "BLUE"}`, `{"id": "1", "colors": ["BLUE"]}`}, {"Filter", `{}`, ".id: nothing"},
		{"Filter", `{"id": 1, "more": 1}`, `no field "more"`}, {"Filter", `"1"`, "a text is given"}, {"[Filter]", `[{"id": true}]`, "[0].id: a boolean"},
		{"Either", `{"a": 1}`, `{"a": "1"}`}, {"Either", `{"a": null}`, "exactly one"}, {"Either", `{}`, "exactly one"}, {"Either", `{"a": 1, "b": null}`, "exactly one"},
	} {
		name, byDefault, _ := strings.Cut(c.definition, " = ")
		v := &ast.VariableDefinition{Variable: "v", Type: typeOf(name)}
		if byDefault != "" {
			v.DefaultValue = &ast.Value{Kind: ast.IntValue, Raw: byDefault}
		}
		given := map[string]any{"more": true}
		if c.given != "" {
			given["v"] = decoded(t, c.given)
		}
		got, err := selections.Variables(schema, &ast.OperationDefinition{VariableDefinitions: ast.VariableDefinitionList{v}}, given)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "variable $v") {
				t.Errorf("%s with %s: %v, want %s", c.definition, c.given, err, c.want)
			}
			continue
		}
		text, _ := json.Marshal(got)
		var value map[string]any
		if json.Unmarshal(text, &value) != nil || !json.Valid([]byte(c.want)) || !reflect.DeepEqual(decoded(t, string(text)), map[string]any{"v": decoded(t, c.want)}) {
			t.Errorf("%s with %s becomes %s, want %s", c.definition, c.given, text, c.want)
		}
	}
}

func typeOf(text string) *ast.Type {
	nonNull := strings.HasSuffix(text, "!")
	text = strings.TrimSuffix(text, "!")
	if inner, ok := strings.CutPrefix(text, "["); ok {
		return &ast.Type{Elem: typeOf(strings.TrimSuffix(inner, "]")), NonNull: nonNull}
	}
	return &ast.Type{NamedType: text, NonNull: nonNull}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err := d.Decode(&value)
	must.That(t, err == nil, "%v %v", text, err)
	return value
}

// Expected values are those of graphql-js 16.15.
func TestLiterals(t *testing.T) {
	for literal, want := range map[string]any{
		`text: """a\n    b\n   c"""`:                   `a\n    b\n   c`, // the backslash is no escape in a block string
		"text: \"\"\"a\n    b\n   c\"\"\"":             "a\n b\nc",
		"text: \"\"\"  a\n    b\n  c\n \"\"\"":         "  a\n  b\nc",
		"text: \"\"\"\n    a\n      b\n    c\"\"\"":    "a\n  b\nc",
		"text: \"\"\" \r\n    a\r      b\r\n\"\"\"":    "a\n  b",
		"text: \"\"\"ü\n\n\t ü\n\t\"\"\" texts: \"x\"": "ü\n\nü",
		`text: "\ud83d\ude00"`:                         "😀",
		`text: "\ufffd"`:                               "\ufffd",
		`text: "\uD83d\uDe00 \ufffd"`:                  "😀 \ufffd",
		`text: "\\ud800 \ufffd"`:                       `\ud800 ` + "\ufffd",
		`text: "\\\ud800"`:                             "half of a surrogate pair",
		`text: "\ud83d\ud83d\ude00"`:                   "half of a surrogate pair",
		`texts: "a"`:                                   []any{"a"},
		`texts: ["a", null]`:                           []any{"a", nil},
		`texts: null`:                                  nil,
		`id: 5`:                                        "5",
		`ids: 5`:                                       []any{"5"},
		`ids: [5, "6"]`:                                []any{"5", "6"},
		`text: "\ud800"`:                               "half of a surrogate pair",
		`texts: ["a", "\ude00x"]`:                      "half of a surrogate pair",
		`any: {}`:                                      map[string]any{},
		`any: -9223372036854775808`:                    int64(math.MinInt64),
		`any: 1e308`:                                   1e308,
		`any: 9223372036854775808`:                     "a number is out of range",
		`any: [{a: -1e309}]`:                           "a number is out of range",
		`color: {}`:                                    "it takes Color",
		`id: {}`:                                       "it takes ID",
		`ids: {}`:                                      "it takes [ID!]",
		`texts: ["a", {}]`:                             "it takes String",
		`filter: {id: {}}`:                             "it takes ID!",
		`text: "a") @skip(if: {}`:                      "it takes Boolean!",
	} {
		doc, errs := gqlparser.LoadQueryWithRules(schema, "{ echo(must: 1, "+literal+") }", nil)
		must.That(t, errs == nil, "%v, %v", literal, errs)
		if err := selections.Settle(doc); err != nil {
			refused, _ := want.(string)
			check.That(t, refused != "" && strings.Contains(err.Message, refused), "%s: %v", literal, err)
			continue
		}
		name, _, _ := strings.Cut(literal, ":")
		check.Equal(t, literal, selections.Argument(doc.Operations[0].SelectionSet[0].(*ast.Field), name, nil), want)
	}
}
