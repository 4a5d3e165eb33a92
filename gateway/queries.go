package gateway

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
)

// queries answers queries over plain HTTP, which have one answer each. It does what gqlgen's
// executor does in DispatchOperation, which is made for answers that come one after another. Both
// use the same steps, which newServer passes to both.
type queries struct {
	schema  graphql.ExecutableSchema
	present graphql.ErrorPresenterFunc
	recover graphql.RecoverFunc
	around  graphql.ResponseMiddleware
}

// answer executes a query, and also returns the context of its answer.
func (q queries) answer(ctx context.Context, op *graphql.OperationContext) (context.Context, *graphql.Response) {
	ctx = graphql.WithResponseContext(graphql.WithOperationContext(ctx, op), q.present, q.recover)
	if ctx.Err() != nil {
		return ctx, nil
	}
	return ctx, q.around(ctx, func(ctx context.Context) *graphql.Response {
		response := q.schema.Exec(ctx)(ctx)
		if response == nil {
			return nil
		}
		response.Errors = append(response.Errors, graphql.GetErrors(ctx)...)
		response.Extensions = graphql.GetExtensions(ctx)
		return response
	})
}
