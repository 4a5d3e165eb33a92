// Package sides is the contract by which the two sides of all edges are compared, and made to agree again.
package sides

import "kith/storage"

// What is still declared beside the rest of the contract.
type (
	Comparer   = storage.Comparer
	Repairer   = storage.Repairer
	Repair     = storage.Repair
	OwnerRange = storage.OwnerRange
	WrongCount = storage.WrongCount
	Cut        = storage.Cut
	Digest     = storage.Digest
)

// Classes is the number of classes of edges, by From.
const Classes = storage.Classes

// Choose selects the given numbers among those below n.
func Choose(n int, numbers []int) storage.Choice { return storage.Choose(n, numbers) }
