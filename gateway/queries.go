package gateway

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
)

// queries answers queries over plain HTTP, which have one answer each. It does what
// gqlgen's executor does in DispatchOperation, which is made for answers that come one after
// another, and runs them through the same steps as it: see newServer.
type queries struct {
	schema  graphql.ExecutableSchema
	present graphql.ErrorPresenterFunc
	recover graphql.RecoverFunc
	around  graphql.ResponseMiddleware
}

func newQueries(cfg Config) queries {
	q := queries{
		schema:  cfg.Schema,
		present: presenter(cfg.Logger),
		recover: recoverFunc(cfg.Logger),
		around:  bounded(cfg.MaxAnswer),
	}
	if cfg.Consistency != nil {
		reads := readYourWrites(cfg.Consistency)
		bound := q.around
		q.around = func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
			return bound(ctx, func(ctx context.Context) *graphql.Response { return reads(ctx, next) })
		}
	}
	return q
}

// answer executes a query, and returns the context of its answer besides.
func (q queries) answer(ctx context.Context, op *graphql.OperationContext) (context.Context, *graphql.Response) {
	ctx = graphql.WithResponseContext(graphql.WithOperationContext(ctx, op), q.present, q.recover)
	if ctx.Err() != nil {
		return ctx, inTime(ctx, nil)
	}
	return ctx, inTime(ctx, q.around(ctx, func(ctx context.Context) *graphql.Response {
		response := q.schema.Exec(ctx)(ctx)
		if response == nil {
			return nil
		}
		response.Errors = append(response.Errors, graphql.GetErrors(ctx)...)
		response.Extensions = graphql.GetExtensions(ctx)
		return response
	}))
}
