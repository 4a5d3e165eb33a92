// Package sides is the contract by which the two sides of all edges are compared, and made to agree again.
package sides

import "kith/storage"

// What is still declared beside the rest of the contract.
type (
	Comparer   = storage.Comparer
	Repairer   = storage.Repairer
	Repair     = storage.Repair
	OwnerRange = storage.OwnerRange
)
