package replication

import (
	"log/slog"
	"slices"

	"kith/storage"
)

// A chain is a row that has been applied and the rows from which it has followed, the first one first: a block that
// was applied has ended a follow, which is a forward row of its own and must be applied to its other side. The
// chain of rows that no other row has caused is empty.
//
// Chains end: the longest, with four rows, is that of a friend request that meets another one. If a
// faulty store continued a chain without end, the chain would be cut off.
type chain []storage.Row

// longestChain is the length at which a chain is cut off.
const longestChain = 16

// with returns the chain with one more row.
func (c chain) with(row storage.Row) chain { return append(slices.Clip(c), row) }

// next sorts the rows that, as a store says, have followed from the chain's last row: those to
// propagate, and those on both sides already. It leaves out rows that the chain holds, because a
// store reports again what followed from rows that were there before.
func (c chain) next(also []storage.Written, logger *slog.Logger) (missing, there []storage.Row) {
	for _, w := range also {
		switch {
		case w.Inverse:
			there = append(there, w.Row)
		case slices.Contains(c, w.Row):
		case len(c) >= longestChain:
			logger.Error("replication: rows cause one another without end: one is left to kith reconcile",
				"table", w.Side.String(), "from", w.Edge.From, "to", w.Edge.To)
		default:
			missing = append(missing, w.Row)
		}
	}
	return missing, there
}
