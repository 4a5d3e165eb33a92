package direct

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
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
