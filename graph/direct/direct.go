// Package direct writes objects and lists straight to JSON if all selected
// values are in memory.
//
// gqlgen gives every field of every object its own context, recover and marshaler,
// and every element of a list a goroutine. That is right if a field may load something, but it is
// nine tenths of the work on a page whose users have been read already. In graph/generated, the
// functions below are called before those that gqlgen generates: its plugin internal/generate puts
// them there. They write the fields that have a [fields.Value], and leave the rest to gqlgen:
// fields with resolvers, and values that failed to load.
package direct

import (
	"context"
	"io"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/fields"
	"kith/graph/selections"
)

// Object answers a selection on one object, if necessary by slow. A missing object is an error.
func Object[T any](ctx context.Context, sel ast.SelectionSet, v *T, slow func(context.Context, ast.SelectionSet, *T) graphql.Marshaler) graphql.Marshaler {
	if v == nil && !graphql.HasFieldError(ctx, graphql.GetFieldContext(ctx)) {
		graphql.AddErrorf(ctx, "the requested element is null which the schema does not allow")
	}
	return OptionalObject(ctx, sel, v, slow)
}

// OptionalObject is [Object] for an object that may be null.
func OptionalObject[T any](ctx context.Context, sel ast.SelectionSet, v *T, slow func(context.Context, ast.SelectionSet, *T) graphql.Marshaler) graphql.Marshaler {
	if v == nil {
		return graphql.Null
	}
	if p := planOf(ctx, fields.TypeOf(v), sel); p != nil && !p.fails(v) {
		return written{p, v}
	}
	return decided(ctx, sel, v, slow)
}

// decided answers by slow if the fields of the selection can be collected, and otherwise by an error.
func decided[T any](ctx context.Context, sel ast.SelectionSet, v *T, slow func(context.Context, ast.SelectionSet, *T) graphql.Marshaler) graphql.Marshaler {
	if t := fields.TypeOf(v); t != nil && v != nil {
		if _, err := selections.Collect(graphql.GetOperationContext(ctx), sel, t.Is); err != nil {
			graphql.AddError(ctx, err)
			return graphql.Null
		}
	}
	return slow(ctx, sel, v)
}

// Slice answers a selection on each element of a list, if necessary by slow.
func Slice[T any](ctx context.Context, sel ast.SelectionSet, list []*T, slow func(context.Context, ast.SelectionSet, *T) graphql.Marshaler) graphql.Marshaler {
	if objects, p := planned(ctx, sel, list); p != nil {
		return written{p, objects}
	}
	return graphql.MarshalSliceConcurrently(ctx, len(list), 0, false, func(ctx context.Context, i int) graphql.Marshaler {
		graphql.GetFieldContext(ctx).Result = &list[i]
		return decided(ctx, sel, list[i], slow)
	})
}

// OptionalSlice is [Slice] for a list that may be null: nil is null.
func OptionalSlice[T any](ctx context.Context, sel ast.SelectionSet, list []*T, slow func(context.Context, ast.SelectionSet, *T) graphql.Marshaler) graphql.Marshaler {
	if list == nil {
		return graphql.Null
	}
	return Slice(ctx, sel, list, slow)
}

// planned is a list ready to be written; without a plan if slow has to write it.
func planned[T any](ctx context.Context, sel ast.SelectionSet, list []*T) (elements, *plan) {
	p := planOf(ctx, fields.TypeOf((*T)(nil)), sel)
	if p == nil {
		return nil, nil
	}
	objects := make(elements, len(list))
	for i, v := range list {
		if v == nil {
			continue
		}
		if p.fails(v) {
			return nil, nil
		}
		objects[i] = v
	}
	return objects, p
}

// elements are the objects of a list; null ones are nil.
type elements []any

type byGqlgenKey struct{}

// ByGqlgen has everything in a request answered by gqlgen, so that tests can compare.
func ByGqlgen(ctx context.Context) context.Context {
	return context.WithValue(ctx, byGqlgenKey{}, true)
}

func isByGqlgen(ctx context.Context) bool { return ctx.Value(byGqlgenKey{}) != nil }

// written is an answer that is written out when the response is.
type written struct {
	plan *plan
	v    any
}

// MarshalGQL implements [graphql.Marshaler].
func (a written) MarshalGQL(w io.Writer) {
	if whole, ok := w.(*answer); ok {
		whole.append(a.plan, a.v)
		return
	}
	scratch := buffers.Get().(*[]byte)
	*scratch = a.plan.append((*scratch)[:0], a.v, noLimit)
	w.Write(*scratch)
	if cap(*scratch) <= maxPooled {
		buffers.Put(scratch)
	}
}
