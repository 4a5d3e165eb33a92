package gateway

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/storage"
)

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
