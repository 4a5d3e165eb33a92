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

// How a request of an admin asks what was read for it: by a header, or by an extension that is true. The answer says so in the
// extension.
const (
	headerPlan    = "Kith-Plan"
	extensionPlan = "plan"
)

// asksPlan reports whether a query or a mutation asks what is read for it.
func asksPlan(op *graphql.OperationContext) bool {
	return asks(op, headerPlan, extensionPlan) && op.Operation != nil && op.Operation.Operation != ast.Subscription
}

var errNoPlan = apierr.Forbidden("the plan of an operation takes a token with the scope admin")

// plan is what was read for an operation. It has neither texts of statements nor their arguments, and at most as many
// look-ups and statements as [storage.ReadLog] keeps.
type plan struct {
	LookUps    []plannedLookUp    `json:"lookUps"`    // in the order in which they began
	Statements []plannedStatement `json:"statements"` // that belong to no look-up, such as those of writes; in the order in which they ended
	LeftOut    int                `json:"leftOut"`    // look-ups and statements that are not listed
	Shards     []int              `json:"shards"`     // on which statements ran, ascending
}

// plannedLookUp are look-ups that were sent together.
type plannedLookUp struct {
	Keys       map[string]int     `json:"keys"`     // asked for, by kind
	InMemory   int                `json:"inMemory"` // keys that were answered from the gateway's memory
	InRedis    int                `json:"inRedis"`
	Ms         *float64           `json:"ms"` // null: the answer did not wait for it
	Statements []plannedStatement `json:"statements"`
}

type plannedStatement struct {
	For    string  `json:"for"`
	Shard  int     `json:"shard"`
	Keys   int     `json:"keys"`
	Rows   int     `json:"rows"`
	Ms     float64 `json:"ms"`
	Failed bool    `json:"failed,omitempty"`
}

// withPlan adds to an answer what was read for it. A client that may not see this has been refused
// before.
func withPlan(ctx context.Context, response *graphql.Response) *graphql.Response {
	reads := storage.ReadsOf(ctx)
	if reads == nil || response == nil {
		return response
	}
	if response.Extensions == nil {
		response.Extensions = map[string]any{}
	}
	response.Extensions[extensionPlan] = planOf(reads)
	return response
}

func planOf(reads *storage.Reads) plan {
	log := reads.Log()
	p := plan{
		LookUps: make([]plannedLookUp, len(log.Bundles)), Statements: []plannedStatement{}, LeftOut: log.LeftOut,
		Shards: append([]int{}, reads.Totals().Shards...),
	}
	for i, b := range log.Bundles {
		one := plannedLookUp{Keys: make(map[string]int, len(b.Asked)), InMemory: b.Memory, InRedis: b.Redis, Statements: []plannedStatement{}}
		for _, a := range b.Asked {
			one.Keys[a.Kind] = a.Keys
		}
		if !b.Ended.IsZero() {
			took := milliseconds(b.Ended.Sub(b.Began))
			one.Ms = &took
		}
		p.LookUps[i] = one
	}
	for _, s := range log.Statements {
		of := &p.Statements
		if s.Bundle >= 0 {
			of = &p.LookUps[s.Bundle].Statements
		}
		*of = append(*of, plannedStatement{s.Lookup, s.Shard, s.Keys, s.Rows, milliseconds(s.Took), s.Err != nil})
	}
	return p
}

// milliseconds is a time to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

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
