package inputs

import (
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
)

// Argument is the value of a field's argument, coerced: that in the document, that of a variable, or the default; nil if it is
// null, or if there is none. vars are those of [Variables], and the document has been through [Settle].
func Argument(f *ast.Field, name string, vars map[string]any) any {
	if given := f.Arguments.ForName(name); given != nil {
		if value, there := vars[given.Value.Raw]; there || given.Value.Kind != ast.Variable {
			if given.Value.Kind != ast.Variable {
				value, _ = given.Value.Value(vars)
			}
			return value
		}
	}
	if takes := f.Definition.Arguments.ForName(name); takes != nil {
		value, _ := takes.DefaultValue.Value(nil)
		return value
	}
	return nil
}

// CheckNulls refuses the arguments of a field (section 6.4.1) if a variable is null where null may not be: one that may be null is
// valid there if it has a default. gqlgen would read null as "null", 0 or an empty list.
func CheckNulls(f *ast.Field, vars map[string]any) error {
	for _, a := range f.Arguments {
		if v := wrongNull(a.Value, vars); v != nil {
			return apierr.BadInput("argument %q: $%s is null, and %s takes no null", a.Name, v.Raw, v.ExpectedType)
		}
	}
	return nil
}

func wrongNull(v *ast.Value, vars map[string]any) *ast.Value {
	if v.Kind == ast.Variable {
		value, given := vars[v.Raw]
		if given && value == nil && v.ExpectedType != nil && v.ExpectedType.NonNull {
			return v
		}
		return nil
	}
	for _, child := range v.Children {
		if found := wrongNull(child.Value, vars); found != nil {
			return found
		}
	}
	return nil
}
