package direct

import (
	"context"
	"io"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/selections"
)

// Roots are the fields of the type Query, by name: how an execution answers each.
type Roots[E any] map[string]func(ec E, ctx context.Context, field graphql.CollectedField) graphql.Marshaler

// Query answers a query that asks for one field, as most do. For such a query gqlgen would collect
// the field, make a set for the one answer with a closure within a closure, and note that its name
// has been written. Everything else is answered by slow. Middleware of root fields is not called:
// Kith has it only for mutations.
func Query[E any](ec E, ctx context.Context, sel ast.SelectionSet, roots Roots[E], slow func(E, context.Context, ast.SelectionSet) graphql.Marshaler) graphql.Marshaler {
	if len(sel) != 1 || !selections.Simple(sel) || isByGqlgen(ctx) {
		return slow(ec, ctx, sel)
	}
	field := sel[0].(*ast.Field)
	root := roots[field.Name]
	if root == nil {
		return slow(ec, ctx, sel)
	}
	ctx = graphql.WithFieldContext(ctx, &graphql.FieldContext{Object: "Query"})
	answer := answerRoot(ctx, ec, root, graphql.CollectedField{Field: field, Selections: field.SelectionSet})
	if answer == graphql.RequiredNull || answer == graphql.Null && field.Definition.Type.NonNull {
		return graphql.Null // if a value must not be null, its parent becomes null
	}
	return single{field.Alias, answer}
}

func answerRoot[E any](ctx context.Context, ec E, root func(E, context.Context, graphql.CollectedField) graphql.Marshaler, field graphql.CollectedField) (answer graphql.Marshaler) {
	defer func() {
		if reason := recover(); reason != nil {
			op := graphql.GetOperationContext(ctx)
			op.Error(ctx, op.Recover(ctx, reason))
			answer = graphql.Null
		}
	}()
	return root(ec, ctx, field)
}

// single is an object of one field.
type single struct {
	key   string
	value graphql.Marshaler
}

// MarshalGQL implements [graphql.Marshaler].
func (s single) MarshalGQL(w io.Writer) {
	io.WriteString(w, `{"`)
	io.WriteString(w, s.key) // a name of GraphQL, with nothing to escape
	io.WriteString(w, `":`)
	s.value.MarshalGQL(w)
	io.WriteString(w, `}`)
}
