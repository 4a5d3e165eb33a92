package gateway

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/consistency"
	"kith/graph/apierr"
	"kith/storage"
)

// Where a consistency token travels: as a header of request and answer, or as an
// extension of both.
const (
	headerConsistency    = "Kith-Consistency"
	extensionConsistency = "consistencyToken"
	extensionStale       = "stale"
)

// readYourWrites makes an operation that brings a token wait until what the token
// stands for can be read, and tells in the answer what the operation has written
// itself. When the wait is over first, the answer says that it may be stale.
func readYourWrites(store storage.EdgeReader, atMost time.Duration) graphql.ResponseMiddleware {
	return func(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
		op := graphql.GetOperationContext(ctx)
		if op.Operation == nil || op.Operation.Operation == ast.Subscription {
			return next(ctx) // it is not executed; or its answers are about what has arrived
		}
		text := tokenOf(op)
		if text == "" && op.Operation.Operation == ast.Query {
			return next(ctx) // it waits for nothing and writes nothing
		}
		ctx, request := consistency.Attach(ctx)
		token, err := consistency.Parse(text)
		if err != nil {
			graphql.AddError(ctx, apierr.BadInput("the consistency token is none that this server has given"))
			return &graphql.Response{Errors: graphql.GetErrors(ctx)}
		}
		if !consistency.Wait(ctx, store, token, atMost) {
			request.Stale()
		}
		response := next(ctx)
		if response == nil {
			return nil
		}
		written, stale := request.Result()
		if written != "" || stale {
			response.Extensions = extended(response.Extensions, written, stale)
		}
		return response
	}
}

func tokenOf(op *graphql.OperationContext) string {
	token := op.Headers.Get(headerConsistency)
	if more, ok := op.Extensions[extensionConsistency].(string); ok {
		token += "," + more
	}
	return token
}

func extended(extensions map[string]any, written string, stale bool) map[string]any {
	if extensions == nil {
		extensions = map[string]any{}
	}
	if written != "" {
		extensions[extensionConsistency] = written
	}
	if stale {
		extensions[extensionStale] = true
	}
	return extensions
}

// freshForEachMutation prepares the context of every root field of a mutation
// anew: they run one after another, and each must see what the last one wrote.
func freshForEachMutation(prepare func(context.Context) context.Context) graphql.RootFieldMiddleware {
	return func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
		if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
			ctx = prepare(ctx)
		}
		return next(ctx)
	}
}
