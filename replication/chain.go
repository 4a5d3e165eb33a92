package replication

import (
	"log/slog"

	"kith/storage"
)

// A chain is the rows that one row has followed from, the nearest first: a block that
// was applied has ended a follow, which is a forward row of its own and has to be
// applied to its other side. It is nil for rows that nothing else has caused.
//
// Chains end: a request for friendship that meets another one is the longest, with
// four rows. What a store that is wrong would go on with for ever is cut off.
type chain struct {
	row    storage.Row
	before *chain
	length int
}

// longestChain is where a chain is cut off.
const longestChain = 16

// behind is the chain with one more row.
func (c *chain) behind(row storage.Row) *chain {
	if c == nil {
		return &chain{row: row, length: 1}
	}
	return &chain{row: row, before: c, length: c.length + 1}
}

// next sorts what a store says has followed from the chain's last row: what has to be
// carried on, and what is on both sides already. A row that the chain holds is left
// out: a store tells again what followed from rows that were there before.
func (c *chain) next(also []storage.Written, logger *slog.Logger) (carry, there []storage.Row) {
	for _, w := range also {
		switch {
		case w.Inverse:
			there = append(there, w.Row)
		case c.holds(w.Row):
		case c.length >= longestChain:
			logger.Error("replication: one row follows from another without end; this one is left to reconcile",
				"table", w.Side.String(), "from", w.Edge.From, "to", w.Edge.To)
		default:
			carry = append(carry, w.Row)
		}
	}
	return carry, there
}

func (c *chain) holds(row storage.Row) bool {
	for ; c != nil; c = c.before {
		if c.row == row {
			return true
		}
	}
	return false
}

// hasConsequences tells whether other rows may follow from a row when it is applied to
// its other side, see [storage.EdgeWriter].
func hasConsequences(row storage.Row) bool {
	return row.Side.Truth() == storage.Requests || row.Edge.Type == storage.Blocking
}
