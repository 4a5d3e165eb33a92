// Package social holds the rules of the graph: what two users have in common, who
// is a friend, whom to follow next. Each answer is an expression over lists as sets, which are
// read in batches from a store, by how long they are.
//
// Answers have a [Budget]. It is counted in rows examined, not in
// time, so that the same data gives the same answer. Lists in memory, and packed ones, need none.
package social

import (
	"context"

	"kith/storage"
)

// Budget is how many rows one answer may examine. An answer that needs more ends
// early, says so, and can be continued from where it ended.
type Budget int

// DefaultBudget reads two lists of a quarter of a million each.
const DefaultBudget Budget = 500_000

// Reader is what the rules ask of a store.
type Reader interface {
	People
	storage.CountReader
	storage.EdgeReader
	storage.PackedReader

	// Profiles returns users with their counts, in the order of the ids, which must not be
	// changed. Of nobody it is the zero profile.
	Profiles(ctx context.Context, ids []storage.UserID) ([]*storage.Profile, error)
	// Sets returns lists that the store keeps as sets: each is a *[idset.List]. The others are
	// not Found; what errors there are is told by reading their rows.
	Sets(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[storage.Set]
}

// Graph answers questions about the edges of a store.
type Graph struct {
	store    Reader
	budget   Budget
	audience *Audience // hidden users are left out; nil: nobody is hidden
	sizes    sizes
}

// New makes a graph over a store, as an audience may see it. A budget of 0 means
// [DefaultBudget].
func New(store Reader, budget Budget, audience *Audience) *Graph {
	if budget <= 0 {
		budget = DefaultBudget
	}
	return &Graph{store: store, budget: budget, audience: audience, sizes: defaultSizes}
}

// Budget is how many rows one answer may examine.
func (g *Graph) Budget() Budget { return g.budget }

// Among is the graph for one of n answers that are worked out together, each step of all of
// them as one statement: each looks up its share of ids at a time.
func (g *Graph) Among(n int) *Graph {
	if n == 1 {
		return g
	}
	share := *g
	share.sizes.probes = min(g.sizes.probes, max(fewProbes, togetherProbes/n))
	return &share
}

// A List is one user's followings (Forward) or followers (Inverse).
type List struct {
	Side  storage.Side
	Owner storage.UserID
}

// String names the list: "following of 7".
func (l List) String() string { return l.Side.String() + " of " + l.Owner.String() }

// sizes is how much is read at a time, and what is done one by one and what with whole sets.
type sizes struct {
	firstLook int // so many rows of a list are read rather than its length asked for
	stride    int // so many rows of a longer list are read at a time
	probes    int // so many ids are looked up at a time
	firstPool int // so many followings of a pool are read at first
	maxPool   int // so many followings has one pool of suggestions at most

	packedFrom int64 // so long a list may be kept packed
	packedMost int64 // so many users of packed lists are read, 8 bytes each

	fewCommon    int // so many common users are looked at, to see who is hidden
	fewPlaces    int // so long a list is gone through, counting on the way
	fewHidden    int // so many hidden users are looked up in a list
	placesPerRow int // so many places of a list in memory are gone through in less than the time that one row takes
}

var defaultSizes = sizes{
	firstLook: 500, stride: 4000, probes: 4000, firstPool: firstPool, maxPool: 5000,
	packedFrom: 10_000, packedMost: 4 << 20,
	fewCommon: 128, fewPlaces: 256, fewHidden: 16, placesPerRow: 64,
}

const (
	// togetherProbes is how many ids answers that are worked out together look up at a time,
	// those of all of them, which are one statement; each looks up fewProbes at least.
	togetherProbes, fewProbes = 20_000, 200

	// probeCost is how many rows are read in order in the time of one look-up by key.
	probeCost = 8
)
