package direct

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

type limitKey struct{}

// A Limit is how many bytes an answer may have.
type Limit int

// With bounds the answers that are written under a context. Writing ends soon after the bound, so
// an answer that is longer is not complete.
func (l *Limit) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, limitKey{}, l)
}

const noLimit = math.MaxInt

// Once answers an operation that has one answer, which data makes for an execution.
func Once[E any](op *graphql.OperationContext, ec E, data func(E, context.Context, ast.SelectionSet) graphql.Marshaler) graphql.ResponseHandler {
	given := false
	return func(ctx context.Context) *graphql.Response {
		if given {
			return nil
		}
		given = true
		return &graphql.Response{Data: whole(ctx, data(ec, ctx, op.Operation.SelectionSet))}
	}
}

// Each answers an operation whose answers come one after another, until there are no more.
func Each(next func(context.Context) graphql.Marshaler) graphql.ResponseHandler {
	return func(ctx context.Context) *graphql.Response {
		data := next(ctx)
		if data == nil {
			return nil
		}
		return &graphql.Response{Data: whole(ctx, data)}
	}
}

// whole writes a whole answer into its own memory.
func whole(ctx context.Context, of graphql.Marshaler) []byte {
	a := answers.Get().(*answer)
	a.bytes, a.most = a.bytes[:0], noLimit
	if most, ok := ctx.Value(limitKey{}).(*Limit); ok {
		a.most = int(*most)
	}
	of.MarshalGQL(a)
	if cap(a.bytes) > maxPooled { // it is not kept for other answers
		return a.bytes
	}
	text := slices.Clone(a.bytes)
	answers.Put(a)
	return text
}

// answer grows until it is complete, or longer than it may be: from then on it takes no more.
type answer struct {
	bytes []byte
	most  int
}

// Write implements [io.Writer].
func (a *answer) Write(text []byte) (int, error) {
	if len(a.bytes) <= a.most {
		a.bytes = append(a.bytes, text...)
	}
	return len(text), nil
}

// WriteString implements [io.StringWriter].
func (a *answer) WriteString(text string) (int, error) {
	if len(a.bytes) <= a.most {
		a.bytes = append(a.bytes, text...)
	}
	return len(text), nil
}

func (a *answer) append(p *plan, v any) {
	if len(a.bytes) <= a.most {
		a.bytes = p.append(a.bytes, v, a.most)
	}
}

// answers are the memory in which whole answers grow, and buffers the memory for parts of them.
// Those that are not too large are kept.
var (
	answers = sync.Pool{New: func() any { return new(answer) }}
	buffers = sync.Pool{New: func() any { return new([]byte) }}
)

const maxPooled = 64 << 10
