package selections

import (
	"context"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"
)

// Prefix is what clients see in front of the names of types and root fields, so that they do not collide with those of
// other schemas behind the same router. Empty: the names are those of the schema's files, as they always are here within.
type Prefix string

// shared are the names without the prefix: what other schemas have as well, or extend. So are names with two underscores.
var shared = []string{
	"Query", "Mutation", "Subscription", "Node", "PageInfo", "User", "Int", "Float", "String", "Boolean", "ID", "DateTime",
	"_Any", "_Entity", "_Service", "_entities", "_service", "node", "nodes",
}

func isShared(name string) bool {
	return strings.HasPrefix(name, "__") || slices.Contains(shared, name)
}

// Type is a type's name as clients know it.
func (p Prefix) Type(name string) string {
	if p == "" || isShared(name) {
		return name
	}
	return string(p) + name
}

// Own is the name of the type that clients know by a name; empty if there is none.
func (p Prefix) Own(name string) string {
	if p == "" || isShared(name) {
		return name
	}
	own, ok := strings.CutPrefix(name, string(p))
	if !ok {
		return ""
	}
	return own
}

// Field is the name of a root field as clients know it: `kithUser` for `user`.
func (p Prefix) Field(name string) string {
	if p == "" || isShared(name) {
		return name
	}
	return strings.ToLower(string(p[:1])) + string(p[1:]) + strings.ToUpper(name[:1]) + name[1:]
}

func (p Prefix) ownField(name string) string {
	if isShared(name) {
		return name
	}
	own := name[len(p):]
	return strings.ToLower(own[:1]) + own[1:]
}

// Renamed is a schema whose clients know other names. Introspection shows these, and documents are validated by them.
type Renamed struct {
	graphql.ExecutableSchema // with the names that clients know
	Own                      *ast.Schema
	Prefix                   Prefix
}

// Schema implements [graphql.ExecutableSchema]: it is the one with our own names.
func (r Renamed) Schema() *ast.Schema { return r.Own }

// read gives a valid document our own names, and definitions.
func (r Renamed) read(doc *ast.QueryDocument) {
	for _, op := range doc.Operations {
		for _, v := range op.VariableDefinitions {
			Rename(v.Type, r.Prefix.Own)
		}
		r.readSelections(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		f.TypeCondition = r.Prefix.Own(f.TypeCondition)
		r.readSelections(f.SelectionSet)
	}
	validator.Walk(r.Own, doc, &validator.Events{})
}

// Rename changes the name in a type.
func Rename(t *ast.Type, to func(string) string) {
	for t.Elem != nil {
		t = t.Elem
	}
	t.NamedType = to(t.NamedType)
}

func (r Renamed) readSelections(set ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			switch s.ObjectDefinition.Name {
			case "Query", "Mutation", "Subscription":
				s.Name = r.Prefix.ownField(s.Name)
			}
			r.readSelections(s.SelectionSet)
		case *ast.InlineFragment:
			if s.TypeCondition != "" {
				s.TypeCondition = r.Prefix.Own(s.TypeCondition)
			}
			r.readSelections(s.SelectionSet)
		}
	}
}

const statPrefix = "typePrefix" // of [graphql.Stats]

// PrefixIn is what clients of a schema see in front of names.
func PrefixIn(schema graphql.ExecutableSchema) Prefix {
	r, _ := schema.(Renamed)
	return r.Prefix
}

// WithPrefix has an operation answered with the names that its clients know.
func WithPrefix(op *graphql.OperationContext, p Prefix) { op.Stats.SetExtension(statPrefix, p) }

// PrefixOf is what clients see in front of names in an operation.
func PrefixOf(op *graphql.OperationContext) Prefix {
	p, _ := op.Stats.GetExtension(statPrefix).(Prefix)
	return p
}

// TypeName is the answer to `__typename` on an object of a type.
func TypeName(ctx context.Context, name string) graphql.Marshaler {
	return graphql.MarshalString(PrefixOf(graphql.GetOperationContext(ctx)).Type(name))
}
