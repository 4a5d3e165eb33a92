package gateway

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/consistency"
)

// Where a consistency token travels: as a header of request and answer, or as an
// extension of both.
const (
	headerConsistency    = "Kith-Consistency"
	extensionConsistency = "consistencyToken"
	extensionStale       = "stale"

	// maxTokenHeader is how long a token may be that is answered as a header: proxies refuse
	// headers of more than 4 kB. A longer token, of a request with a hundred writes, is only in the
	// extension.
	maxTokenHeader = 4000
)

// readToken reads the consistency token of an operation for [readYourWrites], and returns what it adds
// to the operation's cost.
func readToken(tokens *consistency.Tokens) func(*graphql.OperationContext) (cost uint64, err error) {
	return func(op *graphql.OperationContext) (uint64, error) {
		text := tokenOf(op)
		if text == "" || op.Operation.Operation == ast.Subscription { // the answers of a subscription are read after their events
			return 0, nil
		}
		token, err := tokens.Parse(text)
		if err != nil {
			return 0, apierr.BadInput("the consistency token is none that this server has given")
		}
		op.Stats.SetExtension(extensionConsistency, token)
		return token.Cost(), nil
	}
}

// readYourWrites makes an operation with a token wait until the token's rows
// can be read, and puts a token for the operation's own writes into the
// answer. If the wait ends before that, the answer says that it may be stale.
func readYourWrites(ctx context.Context, tokens *consistency.Tokens, next graphql.ResponseHandler) *graphql.Response {
	op := graphql.GetOperationContext(ctx)
	if op.Operation == nil || op.Operation.Operation == ast.Subscription {
		return next(ctx) // it is not executed, or it is a subscription, whose answers are read after their events
	}
	token, _ := op.Stats.GetExtension(extensionConsistency).(consistency.Token)
	if len(token) == 0 && op.Operation.Operation == ast.Query {
		return next(ctx) // it waits for nothing and writes nothing
	}
	ctx, request := consistency.Attach(ctx)
	if !tokens.Wait(ctx, token) {
		request.Stale()
	}
	response := next(ctx)
	if response == nil {
		return nil
	}
	if written, stale := request.Result(); len(written) > 0 || stale {
		response.Extensions = extended(response.Extensions, tokens.Text(written), stale)
	}
	return response
}

func tokenOf(op *graphql.OperationContext) string {
	token := op.Headers.Get(headerConsistency)
	if more, ok := op.Extensions[extensionConsistency].(string); ok && more != "" {
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

// freshForEachMutation prepares a new context for every root field of a mutation:
// they run one after another, and each must see what the one before it wrote.
func freshForEachMutation(prepare func(context.Context) context.Context) graphql.RootFieldMiddleware {
	return func(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
		if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
			ctx = prepare(ctx)
		}
		return next(ctx)
	}
}
