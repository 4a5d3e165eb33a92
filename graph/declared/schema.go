package declared

import (
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// In the schema's files, and so for gqlgen, the types of attributes, and the kinds of relations, are scalars. The schema that is served has types
// with the declared fields in their places. Clients see these types, and documents are validated by them.

// ofType returns the attributes of which a type of the schema consists; false for a type that is none of attributes.
func (f *File) ofType(name string) (list map[string]Attribute, kind ast.DefinitionKind, is bool) {
	if name == "RelationKind" {
		return f.kindValues(), ast.Enum, true
	}
	kind = ast.Object
	name, isInput := strings.CutSuffix(name, "Input")
	if isInput {
		kind = ast.InputObject
	}
	owner, isOfAttributes := strings.CutSuffix(name, "Attributes")
	if !isOfAttributes {
		return nil, "", false
	}
	owner, byOperator := strings.CutPrefix(owner, "Operator")
	list = f.attributes()[strings.ToLower(owner)]
	if isInput && !byOperator {
		list = maps.Clone(list)
		maps.DeleteFunc(list, func(_ string, a Attribute) bool { return a.SetBy == Operator })
	}
	return list, kind, true
}

// ofRelations are the types to which only fields with a kind lead.
var ofRelations = []string{"RelationConnection", "RelationEdge", "RelatePayload", "RelateOutcome", "RelatedToFilter"}

// lacks reports whether a type is one of attributes of which none is declared.
func (f *File) lacks(t *ast.Type) bool {
	list, _, is := f.ofType(t.Name())
	return is && len(list) == 0 || len(f.Relations) == 0 && slices.Contains(ofRelations, t.Name())
}

// Schema is a schema of gqlgen with the declared types, and without the fields and arguments that would have a type without fields. It is
// made once: definitions of fields, from which costs follow, stay the same ones.
func (f *File) Schema(compiled *ast.Schema) *ast.Schema {
	f.served.Do(func() {
		own := *compiled
		own.Types = make(map[string]*ast.Definition, len(compiled.Types))
		for name, d := range compiled.Types {
			list, kind, is := f.ofType(name)
			switch {
			case !is && (len(f.Relations) > 0 || !slices.Contains(ofRelations, name)):
				own.Types[name] = f.without(d)
			case len(list) > 0:
				own.Types[name] = definition(d, kind, list)
			}
		}
		own.Query, own.Mutation, own.Subscription = own.Types["Query"], own.Types["Mutation"], own.Types["Subscription"]
		own.PossibleTypes, own.Implements = Related(compiled.PossibleTypes, own.Types), Related(compiled.Implements, own.Types)
		for name, d := range own.Types {
			if _, _, is := f.ofType(name); is && d.Kind == ast.Object {
				own.PossibleTypes[name] = []*ast.Definition{d}
			}
		}
		f.schema = &own
	})
	return f.schema
}

// Related are the types that a schema relates to others, as far as a schema made of it has both.
func Related(all map[string][]*ast.Definition, types map[string]*ast.Definition) map[string][]*ast.Definition {
	own := make(map[string][]*ast.Definition, len(all))
	for name, list := range all {
		for _, d := range list {
			if types[name] != nil && types[d.Name] != nil {
				own[name] = append(own[name], types[d.Name])
			}
		}
	}
	return own
}

// without is a type without the fields and arguments that it lacks.
func (f *File) without(d *ast.Definition) *ast.Definition {
	own := *d
	own.Fields = nil
	lacking := func(a *ast.ArgumentDefinition) bool { return f.lacks(a.Type) }
	for _, field := range d.Fields {
		if i := slices.IndexFunc(field.Arguments, lacking); i >= 0 {
			if field.Arguments[i].Type.NonNull {
				continue
			}
			fewer := *field
			fewer.Arguments = slices.DeleteFunc(slices.Clone(field.Arguments), lacking)
			field = &fewer
		}
		if !f.lacks(field.Type) {
			own.Fields = append(own.Fields, field)
		}
	}
	return &own
}

// definition is a type with a field for each attribute, in the order of their names.
func definition(scalar *ast.Definition, kind ast.DefinitionKind, list map[string]Attribute) *ast.Definition {
	d := &ast.Definition{Kind: kind, Name: scalar.Name, Description: scalar.Description, Position: scalar.Position}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		a := list[name]
		if kind == ast.Enum {
			d.EnumValues = append(d.EnumValues, &ast.EnumValueDefinition{Name: name, Description: a.Description, Position: scalar.Position})
			continue
		}
		d.Fields = append(d.Fields, &ast.FieldDefinition{Name: name, Description: a.Description, Type: ast.NamedType(a.Type, scalar.Position), Position: scalar.Position})
	}
	return d
}
