package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/limits"
	"kith/storage"
)

// slowLog writes a line for each operation that takes long. At any time there are no more such lines than operations
// being executed.
type slowLog struct {
	from   time.Duration // operations that take as long are logged; 0: none is
	costs  *limits.Extension
	logger *slog.Logger
}

// note logs an operation that has been executed since began, if that took long. The time of an answer of a subscription begins
// with its event: before that, the subscription waits.
func (l slowLog) note(ctx context.Context, began time.Time, response *graphql.Response) {
	op := graphql.GetOperationContext(ctx)
	if op.Operation == nil {
		return // it was not executed
	}
	if op.Operation.Operation == ast.Subscription {
		e, ok := ctx.Value(eventKey{}).(*event)
		if !ok || response == nil || e.began.IsZero() {
			return
		}
		began = e.began
	}
	if took := time.Since(began); took >= l.from {
		l.write(ctx, op, took, response)
	}
}

func (l slowLog) write(ctx context.Context, op *graphql.OperationContext, took time.Duration, response *graphql.Response) {
	attrs := append(make([]slog.Attr, 0, 12), slog.String("request_id", RequestID(ctx)), slog.String("operation", string(op.Operation.Operation)))
	if name := op.Operation.Name; name != "" {
		attrs = append(attrs, slog.String("name", apierr.Shortened(name, 100)))
	}
	hash := sha256.Sum256([]byte(op.RawQuery))
	attrs = append(attrs, slog.String("sha256", hex.EncodeToString(hash[:])), slog.Float64("took_ms", milliseconds(took)))
	if cost, err := l.costs.Cost(op); err == nil {
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
	l.logger.LogAttrs(ctx, slog.LevelWarn, "slow operation", attrs...)
}
