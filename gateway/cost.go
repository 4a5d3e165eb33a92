package gateway

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"kith/gateway/traces"
	"kith/graph/limits"
	"kith/storage"
)

// How a request asks what it costs: by a header, or by an extension that is true. The answer says so in the extension.
const (
	headerCost    = "Kith-Cost"
	extensionCost = "cost"
)

// asksCost reports whether a request asks what it costs.
func asksCost(op *graphql.OperationContext) bool { return asks(op, headerCost, extensionCost) }

// asks reports whether a request asks for something by a header, or by an extension that is true. The header counts.
func asks(op *graphql.OperationContext, header, extension string) bool {
	if len(op.Headers[header]) > 0 {
		return op.Headers.Get(header) == "1"
	}
	asks, _ := op.Extensions[extension].(bool)
	return asks
}

// countingReads is a context that notes what is read for an operation, as far as that is asked for.
func (l slowLog) countingReads(ctx context.Context, op *graphql.OperationContext, span *traces.Span) context.Context {
	switch {
	case span != nil:
		return span.Reading(ctx)
	case asksPlan(op):
		ctx, _ = storage.LogReads(ctx)
	case l.from > 0 || asksCost(op):
		ctx, _ = storage.CountReads(ctx)
	}
	return ctx
}

// withCost adds to an answer what its operation may cost by the limit, which depends on the document and its variables
// alone. What was read for it is for admins: the number of rows reveals edges and users that the answer does not show.
func withCost(ctx context.Context, response *graphql.Response, limit *limits.Extension, mayPlan func(context.Context) bool) *graphql.Response {
	op := graphql.GetOperationContext(ctx)
	if response == nil || op.Operation == nil {
		return response
	}
	estimated, err := limit.Cost(op)
	if err != nil {
		return response // it is not executed
	}
	cost := map[string]any{"estimated": estimated}
	if reads := storage.ReadsOf(ctx); reads != nil && mayPlan(ctx) {
		totals := reads.Totals()
		cost["actual"] = map[string]any{"statements": totals.Statements, "rows": totals.Rows}
	}
	if response.Extensions == nil {
		response.Extensions = map[string]any{}
	}
	response.Extensions[extensionCost] = cost
	return response
}
