package selections

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
)

// Argument is the value of a field's argument, coerced: that in the document, that of a variable, or the default; nil if it is
// null, or if there is none. vars are those of [Variables], and the document has been through [Settle].
func Argument(f *ast.Field, name string, vars map[string]any) any {
	if given := f.Arguments.ForName(name); given != nil {
		if given.Value.Kind != ast.Variable {
			value, _ := given.Value.Value(vars)
			return value
		}
		if value, there := vars[given.Value.Raw]; there {
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
	var refused []error
	for _, a := range f.Arguments {
		if v := wrongNull(a.Value, vars); v != nil {
			refused = append(refused, apierr.InvalidValue.Error("argument %q: $%s is null, and %s takes no null", a.Name, v.Raw, v.ExpectedType).In(a.Name))
		}
	}
	if refused == nil {
		return nil
	}
	return apierr.All(refused...)
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

// Variables coerces the variables of an operation (section 6.1.2). Afterwards a value has one form, as have arguments: int64 for Int,
// float64 for Float, string for String, ID and enums, bool, []any for lists, map[string]any for input objects. Other scalars stay as
// they were given. Variables that the operation does not define are left out.
// Errors are [apierr.Error], of all variables, and quote no value: it may be a password.
func Variables(schema *ast.Schema, op *ast.OperationDefinition, given map[string]any) (map[string]any, error) {
	values := make(map[string]any, len(op.VariableDefinitions))
	var refused []error
	for _, d := range op.VariableDefinitions {
		value, ok := given[d.Variable]
		if !ok && d.DefaultValue != nil {
			values[d.Variable], _ = d.DefaultValue.Value(nil) // a literal that has been validated
			continue
		}
		if !ok && !d.Type.NonNull {
			continue
		}
		value, err := coerced(schema, d.Type, value)
		if err != nil {
			refused = append(refused, apierr.InvalidValue.Error("variable $%s%s", d.Variable, err))
		}
		values[d.Variable] = value
	}
	if refused != nil {
		return nil, apierr.All(refused...)
	}
	return values, nil
}

// OwnTexts gives coerced variables texts of their own. Those of a request are parts of the text of all its variables, which a subscription would
// keep for as long as it runs.
func OwnTexts(v any) any {
	switch v := v.(type) {
	case string:
		return strings.Clone(v)
	case []any:
		for i, one := range v {
			v[i] = OwnTexts(one)
		}
	case map[string]any:
		for name, one := range v {
			v[name] = OwnTexts(one)
		}
	}
	return v
}

// mistake is what is wrong with a value, and where it is in a variable.
type mistake struct{ where, what string }

func (m *mistake) Error() string { return m.where + ": " + m.what }

func wrong(t *ast.Type, v any) *mistake {
	return &mistake{what: fmt.Sprintf("%s is given, and it takes %s", described(v), t)}
}

func described(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a text"
	case bool:
		return "a boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

func coerced(schema *ast.Schema, t *ast.Type, v any) (any, *mistake) {
	switch {
	case v == nil && t.NonNull:
		return nil, wrong(t, v)
	case v == nil:
		return nil, nil
	case t.Elem != nil:
		return list(schema, t.Elem, v)
	}
	switch d := schema.Types[t.NamedType]; d.Kind {
	case ast.InputObject:
		return object(schema, t, d, v)
	case ast.Enum:
		if name, ok := v.(string); !ok {
			return nil, wrong(t, v)
		} else if d.EnumValues.ForName(name) == nil {
			return nil, &mistake{what: "it takes one of the values of " + d.Name}
		}
		return v, nil
	}
	return scalar(t, v)
}

// list coerces each element. A single value stands for a list of one.
func list(schema *ast.Schema, t *ast.Type, v any) (any, *mistake) {
	given, ok := v.([]any)
	if !ok {
		one, err := coerced(schema, t, v)
		return []any{one}, err
	}
	values := make([]any, len(given))
	for i, v := range given {
		var err *mistake
		if values[i], err = coerced(schema, t, v); err != nil {
			err.where = fmt.Sprintf("[%d]%s", i, err.where)
			return nil, err
		}
	}
	return values, nil
}

func object(schema *ast.Schema, t *ast.Type, d *ast.Definition, v any) (any, *mistake) {
	given, ok := v.(map[string]any)
	if !ok {
		return nil, wrong(t, v)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if d.Fields.ForName(name) == nil {
			return nil, &mistake{what: fmt.Sprintf("%s has no field %q", d.Name, apierr.Shortened(name, 40))}
		}
	}
	values := make(map[string]any, len(given))
	for _, f := range d.Fields {
		value, ok := given[f.Name]
		if !ok && f.DefaultValue != nil {
			values[f.Name], _ = f.DefaultValue.Value(nil)
		} else if ok || f.Type.NonNull {
			var err *mistake
			if values[f.Name], err = coerced(schema, f.Type, value); err != nil {
				err.where = "." + f.Name + err.where
				return nil, err
			}
		}
	}
	if d.Directives.ForName("oneOf") != nil && (len(values) != 1 || slices.Contains(slices.Collect(maps.Values(values)), nil)) {
		return nil, &mistake{what: d.Name + " has exactly one field, which is not null"}
	}
	return values, nil
}

func scalar(t *ast.Type, v any) (any, *mistake) {
	_, isText := v.(string)
	_, isTruth := v.(bool)
	number, isNumber := v.(json.Number)
	switch name := t.NamedType; {
	case isText && (name == "String" || name == "ID"), isTruth && name == "Boolean":
		return v, nil
	case isNumber && name == "ID":
		if whole, ok := wholeNumber(number); ok {
			return strconv.FormatInt(whole, 10), nil
		}
		return nil, &mistake{what: "ID takes a text, or a number of 64 bits without a fraction"}
	case isNumber && name == "Int":
		if whole, ok := wholeNumber(number); ok && whole == int64(int32(whole)) {
			return whole, nil
		}
		return nil, &mistake{what: "Int takes a number of 32 bits without a fraction"}
	case isNumber && name == "Float":
		if f, err := number.Float64(); err == nil {
			return f, nil
		}
	case !slices.Contains(builtIn, name):
		return v, nil
	}
	return nil, wrong(t, v)
}

// builtIn are the scalars of the specification (section 3.5).
var builtIn = []string{"Int", "Float", "String", "Boolean", "ID"}

// wholeNumber takes 2.0 and 1e3, too: they are the integers 2 and 1000, however a client writes them.
func wholeNumber(n json.Number) (whole int64, ok bool) {
	if whole, err := n.Int64(); err == nil {
		return whole, true
	}
	f, err := n.Float64()
	return int64(f), err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53
}
