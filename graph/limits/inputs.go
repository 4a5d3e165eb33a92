package limits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/fields"
	"kith/storage"
)

// maxBytes is how long a text may be, in bytes, as an argument or a field of an
// input object, by its name or, if it has another one, by its place: as long as its longest valid value. An ID has
// [maxID]. A text with any other name is a mistake in the program, see [rulesOf].
var maxBytes = map[string]int{
	"after":     maxCursor,
	"newerThan": maxCursor,
	"upTo":      maxCursor,
	"before":    maxCursor,
	"handles":   2 * storage.MaxHandleLength,
	"handle":    2 * storage.MaxHandleLength, // with blanks around it
	"match":     4 * storage.MaxNameLength,
	"remark":    4 * storage.MaxRemarkLength,
	"message":   4 * storage.MaxMessageLength,
	"reason":    4 * storage.MaxReasonLength,
	"text":      4 * storage.MaxPostLength,
	"file":      192 << 10, // of importAccounts: 5,000 lines
	"url":       4 * storage.MaxMediaURLLength,
	"clientKey": storage.MaxClientKeyLength,
	"issuer":    storage.MaxIdentityText,
	"subject":   storage.MaxIdentityText,
	"password":  maxPassword,
	"current":   maxPassword,
	"new":       maxPassword,

	"Subscription.changes(after:)": maxChanges,
}

// longestText is how long any text may be that a variable holds.
var longestText = slices.Max(slices.Collect(maps.Values(maxBytes)))

const (
	maxID       = 64  // rel_ and two ids of 19 digits have 43
	maxCursor   = 256 // sealed cursors have 124
	maxPassword = 200
	maxChanges  = 1 << 15 // a position in each log of the store: mostly some 200 bytes a server
)

// bytesAUnit is how many bytes of a text cost as much as one value: of an argument, and of
// the alias of a field, which the answer repeats.
const bytesAUnit = 64

// input is what may be given for an argument or for a field of an input object.
type input struct {
	name   string
	most   int    // bytes of a text; 0: it is not a text
	list   bool   // of such values
	each   uint64 // what its elements cost; 0 if they set the length of the field's result
	weight uint64 // see [fields.Given]

	fields map[string]*input // of an input object; nil: it is not one
}

// representation is the fields of an entity that `_entities` reads; routers may send others.
var representation = map[string]*input{
	"__typename": {name: "__typename", most: maxID},
	"id":         {name: "id", most: maxID},
	"handle":     {name: "handle", most: maxBytes["handle"]},
}

// inputsOf reads from a schema what each argument takes. It fails if a text has no bound.
type inputsOf struct {
	schema  *ast.Schema
	objects map[string]map[string]*input // by the name of their type: they may hold themselves
}

func (r *inputsOf) arguments(owner string, list ast.ArgumentDefinitionList) (inputs []input, err error) {
	for _, a := range list {
		one, err := r.input(owner+"("+a.Name+":)", a.Name, a.Type)
		if err != nil {
			return nil, err
		}
		if one != nil {
			inputs = append(inputs, *one)
		}
	}
	return inputs, nil
}

// input is nil for types without a size of their own: numbers, booleans, enums.
func (r *inputsOf) input(where, name string, t *ast.Type) (*input, error) {
	in := &input{name: name, list: isList(t), weight: fields.Given[where]}
	d := r.schema.Types[t.Name()]
	switch {
	case d != nil && d.Kind == ast.InputObject:
		fields, err := r.fields(d)
		in.fields = fields
		return in, err
	case t.Name() == "_Any":
		in.fields = representation
	case t.Name() == "ID":
		in.most = maxID
	case t.Name() == "String":
		in.most = cmp.Or(maxBytes[where], maxBytes[name])
		if i := slices.IndexFunc(storage.UserTexts[:], func(t storage.UserText) bool { return t.Field == name }); i >= 0 {
			in.most = 4 * storage.UserTexts[i].Most // of characters that have up to 4 bytes
		}
		if strings.Contains(where, "AttributesInput.") {
			in.most = storage.MaxAttributes // the resolver knows how long each may be
		}
		if in.most == 0 {
			return nil, fmt.Errorf("%s takes texts of any length: give it a bound", where)
		}
	case !in.list:
		return nil, nil
	}
	return in, nil
}

func (r *inputsOf) fields(d *ast.Definition) (map[string]*input, error) {
	if known, ok := r.objects[d.Name]; ok {
		return known, nil
	}
	fields := make(map[string]*input, len(d.Fields))
	r.objects[d.Name] = fields
	for _, f := range d.Fields {
		one, err := r.input(d.Name+"."+f.Name, f.Name, f.Type)
		if err != nil {
			return nil, err
		}
		if one == nil {
			one = &input{name: f.Name}
		}
		if !isChoiceOfLists(d) {
			one.each = 1
		}
		fields[f.Name] = one
	}
	return fields, nil
}

// given is the cost of a field's alias and arguments. It refuses texts that are too long for their
// argument.
func (w *costWalk) given(field *ast.Field, inputs []input) uint64 {
	cost := uint64(len(field.Alias) / bytesAUnit)
	for i := range inputs {
		in := &inputs[i]
		if arg := field.Arguments.ForName(in.name); arg != nil {
			cost += w.literal(in, arg.Value)
		}
	}
	return cost
}

// literal is the cost of a value written in the query, or of the variable in its place.
func (w *costWalk) literal(in *input, v *ast.Value) (cost uint64) {
	switch {
	case v.Kind == ast.Variable:
		return w.variable(in, v.Raw)
	case v.Kind != ast.ListValue && v.Kind != ast.ObjectValue:
		return w.text(in, v.Raw)
	}
	cost = uint64(len(v.Children))
	if v.Kind == ast.ListValue {
		cost *= in.each
	}
	for _, child := range v.Children {
		if below := in.below(child.Name); below != nil {
			cost += below.weight + w.literal(below, child.Value)
		}
	}
	return cost
}

// variable is the cost of a variable's value. A list or an object is walked once,
// however many fields it is given to.
func (w *costWalk) variable(in *input, name string) (cost uint64) {
	switch value := w.vars[name].(type) {
	case string:
		return w.text(in, value)
	case []any, map[string]any:
		use := variableUse{in, name}
		cost, known := w.variables[use]
		if !known {
			cost = w.value(in, value)
			if w.variables == nil {
				w.variables = make(map[variableUse]uint64)
			}
			w.variables[use] = cost
		}
		return cost
	}
	return 0
}

// variableUse is a variable that is given for an argument.
type variableUse struct {
	in   *input
	name string
}

// value is the cost of a value.
func (w *costWalk) value(in *input, v any) (cost uint64) {
	switch v := v.(type) {
	case string:
		return w.text(in, v)
	case []any:
		cost = uint64(len(v)) * in.each
		for _, one := range v {
			cost += w.value(in, one)
		}
	case map[string]any:
		cost = uint64(len(v))
		for name, one := range v {
			if below := in.below(name); below != nil {
				cost += below.weight + w.value(below, one)
			}
		}
	}
	return cost
}

// below is the input of a field of an object. The elements of a list have the input of the list.
func (in *input) below(name string) *input {
	if name == "" || in.fields == nil {
		return in
	}
	return in.fields[name]
}

func (w *costWalk) text(in *input, text string) uint64 {
	told := func(err error) bool { known, _ := apierr.Of(err); return known.Argument == in.name }
	if in.most > 0 && len(text) > in.most && !slices.ContainsFunc(w.tooLong, told) {
		w.tooLong = append(w.tooLong, apierr.TooLong.Error("argument %q: a text of %d bytes is given, %d is the most", in.name, len(text), in.most).In(in.name))
	}
	return uint64(len(text) / bytesAUnit)
}

// objectValues is how many plain values an object counts for: gqlgen looks up, and converts, each
// of the fields that its type has.
const objectValues = 10

// CheckVariables bounds the variables of a request before they are used, by [Values], [ValueDepth] and the longest text that an
// argument takes.
func CheckVariables(vars map[string]any) error {
	values, longest := 0, longestText
	var walk func(v any, depth int) error
	walk = func(v any, depth int) error {
		if values++; values > Values {
			return apierr.VariablesTooLarge.Error("the variables hold more than %d values", Values).Over(uint64(values), uint64(Values))
		}
		if depth > ValueDepth {
			return apierr.VariablesTooLarge.Error("the variables nest more than %d deep", ValueDepth).Over(uint64(depth), uint64(ValueDepth))
		}
		switch v := v.(type) {
		case string:
			if len(v) > longest {
				return apierr.TooLong.Error("a variable holds a text of %d bytes, and no argument takes more than %d", len(v), longest)
			}
		case []any:
			for _, one := range v {
				if err := walk(one, depth+1); err != nil {
					return err
				}
			}
		case map[string]any:
			values += objectValues - 1
			for _, one := range v {
				if err := walk(one, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, v := range vars {
		if err := walk(v, 1); err != nil {
			return err
		}
	}
	return nil
}
