package limits

import (
	"encoding/json"
	"reflect"

	"github.com/vektah/gqlparser/v2/ast"
)

// The bounds of `first` and `last`. The field's resolver refuses values
// outside; until then they count as the greatest allowed.
const (
	defaultPage = 20
	maxPage     = 100
)

// Bounds on the lists of ids that one field takes. The field's resolver refuses more.
const (
	MaxIDs   = 500
	MaxPairs = 2000
	MaxAmong = 2000 // users of `edgesAmong`
)

// pageLength is what `first` or `last` asks for, the greater one if both are given.
func pageLength(field *ast.Field, vars map[string]any) uint64 {
	first, hasFirst := pageArgument(field, "first", vars)
	last, hasLast := pageArgument(field, "last", vars)
	if !hasFirst && !hasLast {
		return defaultPage
	}
	return max(first, last)
}

func pageArgument(field *ast.Field, name string, vars map[string]any) (uint64, bool) {
	value := argument(field, name, vars)
	if value == nil {
		return 0, false
	}
	n, ok := integer(value)
	if !ok || n < 0 || n > maxPage {
		return maxPage, true
	}
	return uint64(n), true
}

func integer(value any) (int64, bool) {
	switch value := value.(type) {
	case int64:
		return value, true
	case int:
		return int64(value), true
	case json.Number:
		n, err := value.Int64()
		return n, err == nil
	}
	return 0, false
}

// lengthOfArguments multiplies the lengths of several list arguments.
func lengthOfArguments(names []string) func(*ast.Field, map[string]any) uint64 {
	return func(field *ast.Field, vars map[string]any) uint64 {
		length := uint64(1)
		for _, name := range names {
			length = product(length, listLength(field, name, vars))
		}
		return length
	}
}

// listLength does not build the list if the query text holds it.
func listLength(field *ast.Field, name string, vars map[string]any) uint64 {
	if arg := field.Arguments.ForName(name); arg != nil && arg.Value.Kind == ast.ListValue {
		return uint64(len(arg.Value.Children))
	}
	value := argument(field, name, vars)
	if value == nil {
		return 0
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Slice {
		return uint64(v.Len())
	}
	return 1 // a single value stands for a list of one
}

// argument is the value that the resolver will get, with variables and defaults
// put in; nil if there is none. Validation has refused what cannot be read.
func argument(field *ast.Field, name string, vars map[string]any) any {
	if arg := field.Arguments.ForName(name); arg != nil {
		value, given := any(nil), true
		if arg.Value.Kind == ast.Variable {
			value, given = vars[arg.Value.Raw]
		} else {
			value, _ = arg.Value.Value(vars)
		}
		if given {
			return value
		}
	}
	def := field.Definition.Arguments.ForName(name)
	if def == nil || def.DefaultValue == nil {
		return nil
	}
	value, _ := def.DefaultValue.Value(nil)
	return value
}
