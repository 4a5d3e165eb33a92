// Package limits refuses queries that cost too much, before they run.
//
// It works in two steps, both linear in the size of their input. The
// shape of a query text is checked before validation, because validation itself
// is quadratic in places (see [Limits] and shape.go). The cost of an operation
// is computed once its variables are known, because `first` decides how much a
// query asks for (see cost.go).
package limits

import "kith/graph/defaults"

// Limits bounds one query. A field left zero takes its default.
type Limits struct {
	// TextBytes is how long a query text may be; variables do not count.
	// Defaults to 65,536.
	TextBytes int

	// Tokens is how many tokens a query text may have. Defaults to 4,000: room
	// for the 500 ids of a `users` written into the text. The shape limits below make that many
	// safe.
	Tokens int

	// Depth is how deep fields may nest. Defaults to 15.
	Depth int

	// IntrospectionDepth is how deep they may nest below `__schema` and `__type`.
	// Defaults to 20: the official introspection query has 15 levels.
	IntrospectionDepth int

	// Fields is how many fields a query may have if every fragment is written
	// out at each spread, all operations together. Defaults to 5,000.
	Fields int

	// Visits is how many selections validation may look at: it enters every operation and every
	// fragment once, and from each one everything that it reaches. Defaults to 20,000.
	Visits int

	// Overlaps is how many pairs of fields or fragments validation may have to
	// compare to find out whether fields of one response name can be merged, at
	// 70 to 430 ns each. Defaults to 100,000.
	Overlaps int

	// Directives is how many directives a query text may have. Defaults to 200.
	Directives int

	// Cost is how much an operation may cost (see cost.go), roughly how many
	// values its answer may hold. Defaults to 100,000.
	Cost int

	// SubscriptionCost is how much a subscription may cost: it is answered again and again, for all
	// of its subscribers at once. Defaults to 1,000.
	SubscriptionCost int
}

const (
	// Values is how many values the variables of a request may hold, those in lists and objects
	// included; an object counts for ten. That is room for 3,900 representations of an `_entities`, of which up to 2,000 differ.
	Values = 50_000

	// ValueDepth is how deep the variables may nest lists and objects: a filter of 8 levels has 16.
	ValueDepth = 32
)

func (l Limits) withDefaults() Limits {
	return defaults.For(l, Limits{
		TextBytes: 64 << 10, Tokens: 4_000, Depth: 15, IntrospectionDepth: 20, Fields: 5_000,
		Visits: 20_000, Overlaps: 100_000, Directives: 200, Cost: 100_000, SubscriptionCost: 1_000,
	})
}
