package limits

import (
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"
)

// Directives are those of IBM's GraphQL Cost Directive Specification, by which routers and code
// generators learn what a query costs. [Declare] applies them.
const Directives = `
"""
What the field costs besides what is selected below it. A field without this directive costs 1, also if it is a plain value.
"""
directive @cost(weight: String!) on ARGUMENT_DEFINITION | ENUM | FIELD_DEFINITION | INPUT_FIELD_DEFINITION | OBJECT | SCALAR

"""
How long a list is: what one of ` + "`slicingArguments`" + ` says, else ` + "`assumedSize`" + `. That of ` + "`sizedFields`" + ` below it, if there are any.
"""
directive @listSize(assumedSize: Int, slicingArguments: [String!], sizedFields: [String!], requireOneSlicingArgument: Boolean = true) on FIELD_DEFINITION
`

// Declare applies [Directives] to the fields of a schema, with the costs and lengths by which
// operations are measured. It fails if [New] does.
func Declare(schema *ast.Schema) error {
	rules, err := rulesOf(schema)
	if err != nil {
		return err
	}
	for field, rule := range rules {
		if field.Name[:2] == "__" {
			continue
		}
		if rule.weight > 1 {
			field.Directives = append(field.Directives, directive(schema, "cost", named("weight", strconv.FormatUint(rule.weight, 10), ast.StringValue)))
		}
		if size := declaredSize(schema, field, rule); len(size) > 0 {
			field.Directives = append(field.Directives, directive(schema, "listSize", size...))
		}
	}
	return nil
}

// declaredSize is what `@listSize` says of a list.
func declaredSize(schema *ast.Schema, field *ast.FieldDefinition, r rule) (arguments ast.ArgumentList) {
	if r.length == nil {
		return nil
	}
	longest := uint64(longestOfIDs(schema, field))
	if longest == 0 {
		longest = r.length(&ast.Field{Definition: field}, nil)
	}
	var slicing, sized []string
	hasDefault := false
	for _, name := range []string{"first", "last"} {
		if argument := field.Arguments.ForName(name); argument != nil {
			slicing = append(slicing, name)
			hasDefault = hasDefault || argument.DefaultValue != nil
		}
	}
	if !hasDefault { // a default says the same; Cosmo's composition refuses both
		arguments = append(arguments, named("assumedSize", strconv.FormatUint(longest, 10), ast.IntValue))
	}
	if len(slicing) > 0 {
		arguments = append(arguments, named("slicingArguments", "", ast.ListValue, slicing...))
	}
	if r.kind == page {
		for _, name := range []string{"edges", "nodes", "outcomes"} {
			if schema.Types[field.Type.Name()].Fields.ForName(name) != nil {
				sized = append(sized, name)
			}
		}
		arguments = append(arguments, named("sizedFields", "", ast.ListValue, sized...))
	}
	if len(slicing) > 0 {
		arguments = append(arguments, named("requireOneSlicingArgument", "false", ast.BooleanValue))
	}
	return arguments
}

// longestOfIDs is the greatest length of a list that has one element for each element of its
// arguments.
func longestOfIDs(schema *ast.Schema, field *ast.FieldDefinition) int {
	switch lists := listArguments(schema, field); len(lists) {
	case 0:
		return 0
	case 1:
		if lists[0] == "representations" {
			return MaxEntities
		}
		return MaxIDs
	default:
		return MaxPairs
	}
}

func directive(schema *ast.Schema, name string, arguments ...*ast.Argument) *ast.Directive {
	return &ast.Directive{Name: name, Arguments: arguments, Definition: schema.Directives[name], Location: ast.LocationFieldDefinition}
}

func named(name, raw string, kind ast.ValueKind, texts ...string) *ast.Argument {
	value := &ast.Value{Raw: raw, Kind: kind}
	for _, text := range texts {
		value.Children = append(value.Children, &ast.ChildValue{Value: &ast.Value{Raw: text, Kind: ast.StringValue}})
	}
	return &ast.Argument{Name: name, Value: value}
}
