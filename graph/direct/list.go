package direct

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// List reads a list by reading each of its elements. gqlgen makes a context for each that has
// the element's place, which matters only to an error about it.
func List[T any](ctx context.Context, v any, one func(context.Context, any) (T, error)) ([]T, error) {
	given := graphql.CoerceList(v)
	list := make([]T, len(given))
	for i, v := range given {
		var err error
		if list[i], err = one(ctx, v); err != nil {
			_, err = one(graphql.WithPathContext(ctx, graphql.NewPathWithIndex(i)), v)
			return nil, err
		}
	}
	return list, nil
}

// Elements answers a list whose elements must not be null.
func Elements[T any](ctx context.Context, sel ast.SelectionSet, list []T, one func(context.Context, ast.SelectionSet, T) graphql.Marshaler) graphql.Marshaler {
	all := make(graphql.Array, len(list))
	for i, v := range list {
		if all[i] = one(ctx, sel, v); all[i] == graphql.Null {
			return graphql.Null
		}
	}
	return all
}
