package direct

import (
	"context"
	"errors"

	"kith/graph/model"
	"kith/storage"
)

// User is the schema's.
type User = model.User

// BrokenCounts is a user whose counts could not be read.
func BrokenCounts() *User {
	return &User{Row: storage.User{Handle: "anna"}, Counts: storage.Result[storage.Counts]{Err: errors.New("shard unavailable")}}
}

type withoutKey struct{}

func init() {
	byGqlgen = func(ctx context.Context) bool { return ctx.Value(withoutKey{}) != nil }
}

// Without has everything answered by gqlgen, for comparison.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutKey{}, true)
}
