package limits

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"

	"kith/graph/apierr"
	"kith/graph/fields"
)

// kind says how a field's cost depends on the selection below it.
type kind uint8

const (
	plain kind = iota // a value or an object
	list              // a list whose length the field sets
	page              // a connection, or a payload with outcomes
	item              // `edges` or `nodes` of a connection, or `outcomes`, as many as the page has
	info              // `pageInfo`, for which the rows of the page are read
)

type rule struct {
	kind   kind
	weight uint64
	chosen uint64 // what an argument of [fields.ChosenBy] adds to it
	queued bool
	inputs []input                                 // the arguments that have a size
	length func(*ast.Field, map[string]any) uint64 // of a list or page
}

// rules are those of the fields of one schema.
type rules map[*ast.FieldDefinition]rule

// rulesOf reads the rules from a schema, so that a new field needs no entry here:
//
//   - an object with `pageInfo` is a connection; the length of its `edges` and `nodes` is
//     `first` or `last` of the field that returns it, or what its [fields.Field] says;
//   - a list with `first` or `last` has that length, too;
//   - the `outcomes` of a payload are as many as the elements of the list arguments of the
//     field that returns it;
//   - a list with one element for each element of its list arguments (`by`, `from` × `to`) is as
//     long as the product of their lengths;
//   - a few lists are as long as their [fields.Field] says;
//   - the lists of introspection are as long as in this schema.
//
// Any other list is an error, because its cost would be unknown. So is an argument that
// takes texts without a bound (see [maxBytes]).
func rulesOf(schema *ast.Schema) (rules, error) {
	all := make(rules)
	lengths := introspectionLengths(schema)
	inputs := inputsOf{schema, make(map[string]map[string]*input)}
	for _, definition := range schema.Types {
		if definition.Kind != ast.Object && definition.Kind != ast.Interface {
			continue
		}
		for _, field := range definition.Fields {
			name := definition.Name + "." + field.Name
			known := cmp.Or(fields.Of(definition.Name, field.Name), new(fields.Field)) // of Query, `__schema`
			r, ok := ruleOf(schema, definition, field, max(lengths[name], known.Length))
			if !ok {
				return nil, fmt.Errorf("field %s returns a list of unknown length: give it the argument first, or a list of ids", name)
			}
			r.weight, r.chosen, r.queued = max(1, known.Weight), known.Chosen, known.Queued
			var err error
			if r.inputs, err = inputs.arguments(name, field.Arguments); err != nil {
				return nil, err
			}
			for i := range r.inputs {
				if r.kind == plain || r.inputs[i].fields != nil {
					r.inputs[i].each = max(1, known.Each)
				}
			}
			all[field] = r
		}
	}
	return all, nil
}

func ruleOf(schema *ast.Schema, parent *ast.Definition, field *ast.FieldDefinition, length uint64) (rule, bool) {
	lists := listArguments(schema, field)
	known := func(*ast.Field, map[string]any) uint64 { return length }
	switch {
	case isConnection(schema.Types[field.Type.Name()]) && length > 0:
		return rule{kind: page, length: known}, true
	case isConnection(schema.Types[field.Type.Name()]):
		return rule{kind: page, length: pageLength}, true
	case hasOutcomes(schema.Types[field.Type.Name()]) && len(lists) > 0:
		return rule{kind: page, length: lengthOfArguments(lists)}, true
	case isConnection(parent) && field.Name == "pageInfo":
		return rule{kind: info}, true
	case !isList(field.Type):
		return rule{kind: plain}, true
	case isConnection(parent) && (field.Name == "edges" || field.Name == "nodes"),
		hasOutcomes(parent) && field.Name == "outcomes":
		return rule{kind: item}, true
	case field.Arguments.ForName("first") != nil || field.Arguments.ForName("last") != nil:
		return rule{kind: list, length: pageLength}, true
	case len(lists) > 0:
		return rule{kind: list, length: lengthOfArguments(lists)}, true
	case length > 0:
		return rule{kind: list, length: known}, true
	}
	return rule{}, false
}

func isConnection(d *ast.Definition) bool { return d != nil && d.Fields.ForName("pageInfo") != nil }

func hasOutcomes(d *ast.Definition) bool { return d != nil && d.Fields.ForName("outcomes") != nil }

func isList(t *ast.Type) bool { return t.Elem != nil }

// listArguments are the arguments of a field that are lists, or one of several lists.
func listArguments(schema *ast.Schema, field *ast.FieldDefinition) []string {
	var names []string
	for _, arg := range field.Arguments {
		if isList(arg.Type) || isChoiceOfLists(schema.Types[arg.Type.Name()]) {
			names = append(names, arg.Name)
		}
	}
	return names
}

// isChoiceOfLists reports whether a type is an input object that is given as one of several lists.
func isChoiceOfLists(d *ast.Definition) bool {
	return d != nil && d.Directives.ForName("oneOf") != nil &&
		!slices.ContainsFunc(d.Fields, func(f *ast.FieldDefinition) bool { return !isList(f.Type) })
}

// introspectionLengths returns how long the lists of introspection are in this
// schema: all types, all directives, and for the rest the mean, rounded up. The
// means are right if a query walks all types, and validation lets lists
// of types nest only twice.
func introspectionLengths(schema *ast.Schema) map[string]uint64 {
	var fields, interfaces, possible, enums, inputs, fieldArgs, directiveArgs, locations int
	for name, d := range schema.Types {
		if d.Kind == ast.InputObject {
			inputs += len(d.Fields)
		} else {
			fields += len(d.Fields)
		}
		for _, f := range d.Fields {
			fieldArgs += len(f.Arguments)
		}
		interfaces += len(d.Interfaces)
		enums += len(d.EnumValues)
		possible += len(schema.PossibleTypes[name])
	}
	for _, d := range schema.Directives {
		directiveArgs += len(d.Arguments)
		locations += len(d.Locations)
	}
	mean := func(total, count int) uint64 { return uint64(total/max(1, count)) + 1 }
	types, directives := len(schema.Types), len(schema.Directives)
	return map[string]uint64{
		"__Schema.types":        uint64(types),
		"__Schema.directives":   uint64(max(1, directives)),
		"__Type.fields":         mean(fields, types),
		"__Type.interfaces":     mean(interfaces, types),
		"__Type.possibleTypes":  mean(possible, types),
		"__Type.enumValues":     mean(enums, types),
		"__Type.inputFields":    mean(inputs, types),
		"__Field.args":          mean(fieldArgs, fields),
		"__Directive.args":      mean(directiveArgs, directives),
		"__Directive.locations": mean(locations, directives),
	}
}

// Parse parses a query text and checks its shape against the limits, without the schema.
// Returned errors are [apierr.Error] or, for syntax errors, the parser's.
func (l Limits) Parse(text string) (*ast.QueryDocument, error) {
	l = l.withDefaults()
	if len(text) > l.TextBytes {
		return nil, apierr.QueryTooLarge.Error("the query text has %d bytes and may have at most %d: pass values as variables", len(text), l.TextBytes).Over(uint64(len(text)), uint64(l.TextBytes))
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, l.Tokens)
	if err != nil {
		// The parser has no error type of its own for this.
		if strings.Contains(err.Error(), "token limit") {
			return nil, apierr.QueryTooLarge.Error("the query text has more than %d tokens: pass values as variables", l.Tokens).Over(uint64(l.Tokens)+1, uint64(l.Tokens))
		}
		if strings.Contains(err.Error(), "<Invalid>") { // it names no token, where the lexer says what is wrong
			err = misread(text, err)
		}
		errcode.Set(err, errcode.ParseFailed)
		return nil, err
	}
	return doc, newShape(doc, l).check()
}

// misread returns the error of a text's first part that is no token, or else the one given: a text may have "<Invalid>" in it.
func misread(text string, parsed error) error {
	tokens, letters := lexer.New(&ast.Source{Input: text}), []rune(text)
	for {
		token, err := tokens.ReadToken()
		if token.Kind == lexer.EOF {
			return parsed
		}
		if of, is := errors.AsType[*gqlerror.Error](err); is && strings.HasPrefix(of.Message, "Cannot parse") && token.Pos.Start < len(letters) {
			of.Message = fmt.Sprintf("Cannot parse the unexpected character %q.", letters[token.Pos.Start]) // the lexer has only its first byte
		}
		if err != nil {
			return err
		}
	}
}

func tooMany(what string, count uint64, limit int) error {
	return apierr.QueryTooLarge.Error("the query has too many %s: at most %d are allowed", what, limit).Over(count, uint64(max(0, limit)))
}

func tooDeep(depth, limit int) error {
	return apierr.QueryTooLarge.Error("the query nests fields %d deep: at most %d levels are allowed", depth, limit).Over(uint64(depth), uint64(limit))
}

// positioned is an error about a position in the text.
func positioned(at *ast.Position, format string, args ...any) error {
	err := gqlerror.ErrorPosf(at, format, args...)
	err.Err = apierr.InvalidQuery.Error(format, args...)
	return err
}
