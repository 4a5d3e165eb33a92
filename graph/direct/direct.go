// Package direct writes objects and lists straight to JSON where everything that
// is selected on them is a value at hand.
//
// gqlgen gives every field of every object a context, a recover and a marshaler of
// its own, and every element of a list a goroutine: right where a field may load
// something, and nine tenths of the work on a page whose users have been read
// already. `make generate` puts [Object] and [Slice] in front of the generated
// marshalers. They take what they have a table for (see fields.go), and leave the rest to
// gqlgen: fields with resolvers, and values that failed to load.
package direct

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// Object answers a selection on one object, by slow where it has to be.
func Object[T any](ctx context.Context, sel ast.SelectionSet, v *T, slow func(context.Context, ast.SelectionSet, *T) graphql.Marshaler) graphql.Marshaler {
	if p := planOf(ctx, typeOf(v), sel); p != nil && !p.fails(v) {
		return written{p, v}
	}
	return slow(ctx, sel, v)
}

// Slice answers a selection on each element of a list, which may be nil. slow makes one
// of them.
func Slice[T any](ctx context.Context, sel ast.SelectionSet, list []T, slow func(ctx context.Context, i int) graphql.Marshaler) graphql.Marshaler {
	var one T
	p := planOf(ctx, typeOf(one), sel)
	if p == nil {
		return graphql.MarshalSliceConcurrently(ctx, len(list), 0, false, slow)
	}
	objects := make(elements, len(list))
	for i, v := range list {
		objects[i] = any(v)
		if !isNil(objects[i]) && p.fails(objects[i]) {
			return graphql.MarshalSliceConcurrently(ctx, len(list), 0, false, slow)
		}
	}
	return written{p, objects}
}

// elements are the objects of a list.
type elements []any

type withoutKey struct{}

// withouts tells whether anybody ever wanted that, which spares all others to search
// their contexts.
var withouts atomic.Bool

// Without has everything answered by gqlgen, for comparison.
func Without(ctx context.Context) context.Context {
	withouts.Store(true)
	return context.WithValue(ctx, withoutKey{}, true)
}

// written is an answer that is put into words when the response is.
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
