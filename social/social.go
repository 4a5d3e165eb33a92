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
	storage.ProfileReader
	People
	storage.CountReader
	storage.EdgeReader
}

// Graph answers questions about the edges of a store.
type Graph struct {
	store    Reader
	budget   Budget
	audience *Audience // hidden users are left out; nil: nobody is hidden
	packed   Packed    // lists in memory, asked first; nil: there are none

	firstLook, stride, probes, firstPool, maxPool int // the constants below, but in tests

	plan  packedPlan
	whole wholePlan
}

// New makes a graph over a store, as an audience may see it. A budget of 0 means
// [DefaultBudget].
func New(store Reader, budget Budget, audience *Audience) *Graph {
	if budget <= 0 {
		budget = DefaultBudget
	}
	return &Graph{
		store: store, budget: budget, audience: audience,
		firstLook: firstLook, stride: stride, probes: stride, firstPool: firstPool, maxPool: maxPool, plan: packedDefaults, whole: wholeDefaults,
	}
}

// Budget is how many rows one answer may examine.
func (g *Graph) Budget() Budget { return g.budget }

// Shared is the graph for answers that are computed side by side with others, each step
// of all of them as one statement: fewer ids are looked up at a time.
func (g *Graph) Shared() *Graph {
	shared := *g
	shared.probes = min(g.probes, sharedProbes)
	return &shared
}

// A List is one user's followings (Forward) or fans (Inverse).
type List struct {
	Side  storage.Side
	Owner storage.UserID
}

// String names the list: "following of 7".
func (l List) String() string { return l.Side.String() + " of " + l.Owner.String() }

// How much is read at a time.
const (
	// firstLook is how many rows of each list are read before anything is planned:
	// most lists end within it, and then one round trip was enough.
	firstLook = 500

	// stride is how many rows of a longer list are read at a time, and how many ids
	// are probed at a time.
	stride = 4000

	// sharedProbes is how many ids each of several answers looks up at a time: those of 33
	// are one statement.
	sharedProbes = 600

	// probeCost is how many rows are read in order in the time of one look-up by key.
	probeCost = 8

	// maxPool is how many followings one pool of suggestions has at most.
	maxPool = 5000
)
