// Package social holds the rules of the graph: what two users have in common, who
// is a friend, whom to follow next. It plans each question by how long the lists
// are and reads them in batches from a store.
//
// Answers that walk lists have a [Budget]. It is counted in rows examined, not in
// time, so that the same data gives the same answer.
package social

import (
	"kith/storage"
)

// Budget is how many rows one answer may examine. An answer that needs more ends
// early, says so, and can be continued from where it ended.
type Budget int

// DefaultBudget reads two lists of a quarter of a million each.
const DefaultBudget Budget = 500_000

// Reader is what the rules ask of a store.
type Reader interface {
	storage.CountReader
	storage.EdgeReader
}

// Graph answers questions about the edges of a store.
type Graph struct {
	store  Reader
	budget Budget

	firstLook, stride, maxPool int // the constants below, but in tests
}

// New makes a graph over a store. A budget of 0 means [DefaultBudget].
func New(store Reader, budget Budget) *Graph {
	if budget <= 0 {
		budget = DefaultBudget
	}
	return &Graph{store, budget, firstLook, stride, maxPool}
}

// A List is one user's followings (Forward) or fans (Inverse).
type List struct {
	Side  storage.Side
	Owner storage.UserID
}

// How much is read at a time.
const (
	// firstLook is how many rows of each list are read before anything is planned:
	// most lists end within it, and then one round trip was enough.
	firstLook = 500

	// stride is how many rows of a longer list are read at a time, and how many ids
	// are probed at a time.
	stride = 4000

	// maxPool is how many followings one pool of suggestions has at most.
	maxPool = 5000
)
