// Package social holds the rules of the graph: what two users have in common, who
// is a friend, whom to follow next. Each answer is an expression over lists as sets, which are
// read in batches from a store, in ways that depend on their lengths.
//
// Answers have a [Budget], and those of one request one together. It counts rows examined, not
// time, so that the same data gives the same answer. Lists in memory, and packed ones, need none.
package social

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/storage"
)

// Budget is how many rows one answer may examine. An answer that needs more stops early, reports
// that, and can be continued from there.
type Budget int

// DefaultBudget reads two lists of a quarter of a million each.
const DefaultBudget Budget = 500_000

// Graph answers questions about the edges of a store.
type Graph struct {
	store    storage.Answerer
	budget   Budget
	request  *Allowance // what all answers of the request have examined; nil: this is the only one
	audience *Audience  // hidden users are left out
	sizes    sizes
}

// New makes a graph over a store, of which lists and recommenders are Found if it keeps them, as an audience may see it; nil: it hides nobody. A
// budget of 0 means [DefaultBudget].
func New(store storage.Answerer, budget Budget, audience *Audience) *Graph {
	if budget <= 0 {
		budget = DefaultBudget
	}
	if audience == nil {
		audience = new(Audience)
	}
	return &Graph{store: store, budget: budget, audience: audience, sizes: defaultSizes}
}

// Budget is how many rows one answer may examine.
func (g *Graph) Budget() Budget { return g.budget }

// Within makes the graph one for the answers of one request: together they examine one budget. When that is spent, others look at the first few rows of
// their lists.
func (g *Graph) Within(request *Allowance) *Graph {
	g.request = request
	return g
}

// left is how many rows an answer that begins now may examine.
func (g *Graph) left() int {
	if g.request == nil {
		return int(g.budget)
	}
	return max(0, int(g.budget)-int(g.request.rows.Load()))
}

// examine counts rows before they are read.
func (g *Graph) examine(rows int) {
	if g.request != nil {
		g.request.rows.Add(int64(rows))
	}
}

// MayExamine counts rows, or look-ups, of an answer that can be given without them; false if more are left neither to it nor to the request. A few
// are always affordable.
func (g *Graph) MayExamine(rows int) bool {
	if rows > max(sparse, g.left()) {
		return false
	}
	g.examine(rows)
	return true
}

// firstLook is how many rows of a list an answer reads in any case.
func (g *Graph) firstLook() int {
	if g.left() > 0 {
		return g.sizes.firstLook
	}
	return min(g.sizes.firstLook, fewRows)
}

// Among is the graph for one of n answers that are worked out together. Each step of all of them is
// one statement, so each answer looks up its share of ids at a time.
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

// sizes is how much is read at a time, and the sizes from which whole sets are used.
type sizes struct {
	firstLook int // rows of a list that are read at first instead of its length
	stride    int // rows of a longer list that are read at a time
	probes    int // ids that are looked up at a time
	firstPool int // followings of a pool that are read at first
	maxPool   int // most followings of one pool of suggestions

	packedFrom int64 // the length from which a list may be kept packed
	packedMost int64 // most users that are read from packed lists, 8 bytes each

	fewCommon    int // the number of common users up to which they are checked one by one for hidden users
	fewPositions int // the length up to which a list is scanned and counted meanwhile
	fewHidden    int // the number of hidden users up to which they are looked up in a list
	maxMembers   int // users of a list, its newest ones, who are sorted and searched
	maxNamed     int // rows of the index of words that are read for one word: if it has more, the users of the list are looked at one by one

	positionsPerRow int // positions of a list in memory that are scanned in less time than one row takes
}

var defaultSizes = sizes{
	firstLook: 500, stride: 4000, probes: 4000, firstPool: firstPool, maxPool: 5000,
	packedFrom: 10_000, packedMost: 4 << 20,
	fewCommon: 128, fewPositions: 256, fewHidden: 16, positionsPerRow: 64,
	maxMembers: MaxMembers, maxNamed: 2000,
}

const (
	// togetherProbes is how many ids answers that are worked out together look up at a time, all of
	// them together, in one statement; each looks up at least fewProbes.
	togetherProbes, fewProbes = 20_000, 200

	// fewRows are read of each list when a request has spent its budget.
	fewRows = 16

	// probeCost is how many rows are read in order in the time of one look-up by key.
	probeCost = 8
)

// settleTime bounds the work done at once for committed rows, even if the client has disconnected.
const settleTime = 5 * time.Second

// settle propagates newly written forward rows to their other sides at once,
// in every redundancy mode, and then the consequences written there: a block ends
// the follow in return, an accepted request begins one. Then it hands
// all rows to the mode, which propagates those that could not be written.
//
// It completes committed rows even if the client has disconnected.
//
// A crash leaves the rows that it has not reached as they are. In the modes
// stream and binlog the mode propagates them; otherwise repeating the change or
// reconcile does. Everything may be applied twice: versions decide.
func (t *Relations) settle(ctx context.Context, written []storage.Written) (all []storage.Written, stale bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	seen := map[storage.Row]bool{}
	for fresh := written; ; {
		fresh = slices.DeleteFunc(slices.Clone(fresh), func(w storage.Written) bool {
			known := seen[w.Row] // rows that exist already are handed over again
			seen[w.Row] = true
			return known
		})
		if len(fresh) == 0 {
			break
		}
		var also []storage.Written
		for _, side := range storage.Truths {
			more, err := t.inverse(ctx, side, fresh)
			stale = stale || err != nil
			also = append(also, more...)
		}
		all = append(all, fresh...)
		fresh = also
	}
	return all, t.propagate(ctx, all) || stale
}

// inverse applies the rows of one side that have not been applied yet, and marks those that it has
// applied. It returns their consequences.
func (t *Relations) inverse(ctx context.Context, side storage.Side, rows []storage.Written) (also []storage.Written, err error) {
	var edges []storage.Edge
	var index []int
	for i, w := range rows {
		if w.Side == side && !w.Inverse {
			edges = append(edges, w.Edge)
			index = append(index, i)
		}
	}
	if len(edges) == 0 {
		return nil, nil
	}
	for j, r := range t.Store.Apply(ctx, side.Replica(), edges, storage.IfNewer) {
		if r.Err != nil {
			err = r.Err
			continue
		}
		rows[index[j]].Inverse = true
		also = append(also, r.Value.Also...)
	}
	return also, err
}

// nobody is HiddenUsers without any user.
type nobody struct{}

func (nobody) Has(storage.UserID) bool { return false }
func (nobody) IDs() []storage.UserID   { return nil }

// ActorMissing reports that the acting user does not exist, as opposed to the other one.
type ActorMissing struct{ User storage.UserID }

func (g ActorMissing) Error() string { return fmt.Sprintf("user %s is gone", g.User) }

// Unwrap makes it a [storage.ErrUserUnknown].
func (ActorMissing) Unwrap() error { return storage.ErrUserUnknown }

// gone makes an error that names the user whom the store does not know.
func gone(user storage.UserID, err error) error {
	if errors.Is(err, storage.ErrUserUnknown) {
		return fmt.Errorf("%w: %w", ActorMissing{user}, err)
	}
	return err
}
