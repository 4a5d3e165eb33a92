package replication

import (
	"log/slog"

	"kith/storage"
)

// A chain is the rows from which a row has followed, the nearest first: a block that was applied
// has ended a follow, which is a forward row of its own and must be applied to its other side. The
// chain is nil for rows that no other row has caused.
//
// Chains end: the longest, with four rows, is that of a friend request that meets another one. If a
// faulty store continued a chain without end, the chain would be cut off.
type chain struct {
	row    storage.Row
	before *chain
	length int
}

// longestChain is the length at which a chain is cut off.
const longestChain = 16

// behind returns the chain with one more row.
func (c *chain) behind(row storage.Row) *chain {
	if c == nil {
		return &chain{row: row, length: 1}
	}
	return &chain{row: row, before: c, length: c.length + 1}
}

// next sorts the rows that, as a store says, have followed from the chain's last row: those to
// propagate, and those on both sides already. It leaves out rows that the chain holds, because a
// store reports again what followed from rows that were there before.
func (c *chain) next(also []storage.Written, logger *slog.Logger) (missing, there []storage.Row) {
	for _, w := range also {
		switch {
		case w.Inverse:
			there = append(there, w.Row)
		case c.holds(w.Row):
		case c.length >= longestChain:
			logger.Error("replication: one row follows from another without end; this one is left to reconcile",
				"table", w.Side.String(), "from", w.Edge.From, "to", w.Edge.To)
		default:
			missing = append(missing, w.Row)
		}
	}
	return missing, there
}

func (c *chain) holds(row storage.Row) bool {
	for ; c != nil; c = c.before {
		if c.row == row {
			return true
		}
	}
	return false
}

// hasConsequences reports whether other rows may follow from a row when it is applied to
// its other side, see [storage.EdgeWriter].
func hasConsequences(row storage.Row) bool {
	return row.Side.Truth() == storage.Requests || row.Edge.Type == storage.Blocking
}
