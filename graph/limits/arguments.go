package limits

import (
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/inputs"
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
	value := inputs.Argument(field, name, vars)
	if value == nil {
		return 0, false
	}
	n, ok := value.(int64)
	if !ok || n < 0 || n > maxPage {
		return maxPage, true
	}
	return uint64(n), true
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
	list, _ := inputs.Argument(field, name, vars).([]any)
	return uint64(len(list))
}
