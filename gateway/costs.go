package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/gateway/traces"
	"kith/graph/apierr"
	"kith/storage"
)

// How a request asks what it costs: by a header, or by an extension that is true. The answer says so in the extension.
const (
	headerCost    = "Kith-Cost"
	extensionCost = "cost"
)

// asksCost reports whether a request asks what it costs. The header counts.
func asksCost(op *graphql.OperationContext) bool {
	if len(op.Headers[headerCost]) > 0 {
		return op.Headers.Get(headerCost) == "1"
	}
	asks, _ := op.Extensions[extensionCost].(bool)
	return asks
}

// countingReads is a context that notes what is read for an operation, as far as that is asked for.
func (s *server) countingReads(ctx context.Context, op *graphql.OperationContext, span *traces.Span) context.Context {
	switch {
	case span != nil:
		return span.Reading(ctx)
	case s.SlowOperation > 0 || asksCost(op):
		ctx, _ = storage.CountReads(ctx)
	}
	return ctx
}

// withCost adds to an answer what its operation may cost by the limit, which depends on the document and its variables
// alone. What was read for it is for admins: the number of rows reveals edges and users that the answer does not show.
func (s *server) withCost(ctx context.Context, response *graphql.Response) *graphql.Response {
	op := graphql.GetOperationContext(ctx)
	if response == nil || op.Operation == nil {
		return response
	}
	estimated, err := s.costs.Of(op)
	if err != nil {
		return response // it is not executed
	}
	cost := map[string]any{"estimated": estimated}
	if reads := storage.ReadsOf(ctx); reads != nil && s.IsAdmin(ctx) {
		totals := reads.Totals()
		cost["actual"] = map[string]any{"statements": totals.Statements, "rows": totals.Rows}
	}
	if response.Extensions == nil {
		response.Extensions = map[string]any{}
	}
	response.Extensions[extensionCost] = cost
	return response
}

// noteSlow logs an operation that has been executed since began, if that took long. At any time there are no more such lines
// than operations being executed. The time of an answer of a subscription begins with its event: before that, the subscription
// waits.
func (s *server) noteSlow(ctx context.Context, began time.Time, response *graphql.Response) {
	op := graphql.GetOperationContext(ctx)
	if s.SlowOperation <= 0 || op.Operation == nil {
		return // it is off, or the operation was not executed
	}
	if op.Operation.Operation == ast.Subscription {
		e, ok := ctx.Value(eventKey{}).(*event)
		if !ok || response == nil || e.began.IsZero() {
			return
		}
		began = e.began
	}
	took := time.Since(began)
	if took < s.SlowOperation {
		return
	}
	attrs := append(make([]slog.Attr, 0, 12), slog.String("request_id", RequestID(ctx)), slog.String("operation", string(op.Operation.Operation)))
	if name := op.Operation.Name; name != "" {
		attrs = append(attrs, slog.String("name", apierr.Shortened(name, 100)))
	}
	hash := sha256.Sum256([]byte(op.RawQuery))
	attrs = append(attrs, slog.String("sha256", hex.EncodeToString(hash[:])), slog.Float64("took_ms", float64(took.Microseconds())/1000))
	if cost, err := s.costs.Of(op); err == nil {
		attrs = append(attrs, slog.Uint64("cost", cost))
	}
	if reads := storage.ReadsOf(ctx); reads != nil {
		totals := reads.Totals()
		attrs = append(attrs, slog.Int64("statements", totals.Statements), slog.Int64("rows", totals.Rows), slog.Any("shards", append([]int{}, totals.Shards...)))
	}
	if response != nil {
		attrs = append(attrs, slog.Int("errors", len(response.Errors)))
	} else if ctx.Err() != nil {
		attrs = append(attrs, slog.String("ended", context.Cause(ctx).Error()))
	}
	if id := exchangeOf(ctx).span.TraceID(); id != "" {
		attrs = append(attrs, slog.String("trace_id", id))
	}
	s.Logger.LogAttrs(ctx, slog.LevelWarn, "slow operation", attrs...)
}
