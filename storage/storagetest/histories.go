package storagetest

import (
	"errors"
	"flag"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/storage"
	"kith/storage/memory"
)

// Thirty histories are some seconds on real servers; -rapid.checks asks for more.
func init() {
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
}

// histories: whatever is done to a store, in whatever order, it answers as the
// reference engine does to which the same was done.
type histories struct{ *harness }

func (s histories) AnyHistoryReadsLikeTheReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// One store serves all histories: each has people of its own.
		p := &pair{store: s.store, reference: memory.New(), ids: s.ids(8)}
		for _, id := range p.ids {
			p.handles = append(p.handles, person(id).Handle)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create":     p.create,
			"apply":      p.apply,
			"apply more": p.apply, // so that there is something to read
			"users":      p.users,
			"counts":     p.counts,
			"edges":      p.edges,
			"pages":      p.pages,
			"walks":      p.walks,
			"neighbours": p.neighbours,
		})
		p.everything(rt)
	})
}

// A pair is a store under test and the reference in lock step. Every method is
// one step: the same call to both, and a comparison of the answers.
type pair struct {
	store, reference storage.Store
	ids              []storage.UserID
	handles          []string
	// The versions last read, of the store and of the reference. They need not be
	// the same numbers, but must rise together.
	versions map[storage.UserID][2]int64
}

// create makes users with any handles, their own or not. Not asked is what the
// contract leaves open: who wins within a batch.
func (p *pair) create(t *rapid.T) {
	n := rapid.IntRange(1, 4).Draw(t, "users")
	ids := rapid.Permutation(p.ids).Draw(t, "ids")[:n]
	handles := rapid.Permutation(p.handles).Draw(t, "handles")[:n]
	users := make([]storage.User, n)
	for i := range users {
		users[i] = person(ids[i])
		users[i].Name = rapid.StringN(0, 20, -1).Filter(printable).Draw(t, "name")
		if rapid.Bool().Draw(t, "another handle") {
			users[i].Handle = handles[i]
		}
	}
	if repeated(handlesOf(users)) {
		t.Skip("one handle twice")
	}
	got := p.store.CreateUsers(t.Context(), users)
	want := p.reference.CreateUsers(t.Context(), users)
	if len(got) != n {
		t.Fatalf("create: %d results for %d users", len(got), n)
	}
	existed := p.reference.Users(t.Context(), ids)
	for i := range users {
		refused := errors.Is(got[i].Err, storage.ErrHandleTaken)
		if got[i].Err != nil && !refused {
			t.Fatalf("create %+v: %v", users[i], got[i].Err)
		}
		// A user that exists and asks for somebody else's handle may be told either.
		open := existed[i].Found && !want[i].Value && existed[i].Value.Handle != users[i].Handle
		if got[i].Value != want[i].Value || (refused != (want[i].Err != nil) && !open) {
			t.Fatalf("create %+v:\ngot  %+v\nwant %+v", users[i], got[i], want[i])
		}
	}
	p.versions = nil // whether making a user raises the version is left open
}

func (p *pair) apply(t *rapid.T) {
	side := drawSide(t)
	rule := rapid.SampledFrom([]storage.Rule{storage.IfNewer, storage.IfNewer, storage.IfAbsent}).Draw(t, "rule")
	p.compareCounts(t, p.ids)
	batch := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) storage.Edge {
		ends := p.drawPair(t)
		kind := rapid.SampledFrom(append(allTypes, storage.Following)).Draw(t, "type")
		return storage.Edge{From: ends.From, To: ends.To, Type: kind, UpdateTime: drawTime(t)}
	}), 1, 12).Draw(t, "edges")
	batch = append(batch, rapid.SliceOfN(rapid.SampledFrom(batch), 0, 3).Draw(t, "given again")...)

	got := p.store.Apply(t.Context(), side, batch, rule)
	want := p.reference.Apply(t.Context(), side, batch, rule)
	if len(got) != len(want) {
		t.Fatalf("apply: %d results for %d edges", len(got), len(want))
	}
	last := map[storage.Pair]int{}
	for i, e := range batch {
		last[e.Pair()] = i
	}
	for i, e := range batch {
		same := got[i].Value.Changed == want[i].Value.Changed
		if i == last[e.Pair()] { // earlier ones may tell either row
			same = same && got[i].Value.Row == want[i].Value.Row
		}
		if got[i].Err != nil || !same {
			t.Fatalf("apply %v, edge %d:\ngot  %+v\nwant %+v", batch, i, got[i], want[i])
		}
	}
	p.compareCounts(t, p.ids)
}

func (p *pair) users(t *rapid.T) {
	p.compareUsers(t, rapid.SliceOfN(rapid.SampledFrom(p.ids), 0, 10).Draw(t, "ids"))
	p.compareHandles(t, rapid.SliceOfN(rapid.SampledFrom(p.handles), 0, 10).Draw(t, "handles"))
}

func (p *pair) counts(t *rapid.T) {
	p.compareCounts(t, rapid.SliceOfN(rapid.SampledFrom(p.ids), 0, 10).Draw(t, "ids"))
}

func (p *pair) edges(t *rapid.T) {
	p.compareEdges(t, drawSide(t), rapid.SliceOfN(rapid.Custom(p.drawPair), 0, 20).Draw(t, "pairs"))
}

func (p *pair) pages(t *rapid.T) {
	side := drawSide(t)
	p.comparePages(t, side, rapid.SliceOfN(rapid.Custom(func(t *rapid.T) storage.PageQuery {
		owner := rapid.SampledFrom(p.ids).Draw(t, "owner")
		return storage.PageQuery{
			Owner:    owner,
			Limit:    rapid.IntRange(1, 5).Draw(t, "limit"),
			After:    p.drawPosition(t, side, owner),
			Before:   p.drawPosition(t, side, owner),
			Backward: rapid.Bool().Draw(t, "backward"),
		}
	}), 0, 12).Draw(t, "queries"))
}

func (p *pair) walks(t *rapid.T) {
	p.compareWalks(t, drawSide(t), rapid.SliceOfN(rapid.Custom(func(t *rapid.T) storage.WalkQuery {
		return storage.WalkQuery{
			Owner: rapid.SampledFrom(p.ids).Draw(t, "owner"),
			After: p.drawPlace(t),
			Limit: rapid.IntRange(1, 5).Draw(t, "limit"),
		}
	}), 0, 12).Draw(t, "queries"))
}

func (p *pair) neighbours(t *rapid.T) {
	p.compareNeighbours(t, drawSide(t), rapid.SliceOfN(rapid.SampledFrom(p.ids), 0, 10).Draw(t, "owners"))
}

func drawSide(t *rapid.T) storage.Side {
	return rapid.SampledFrom([]storage.Side{storage.Forward, storage.Inverse}).Draw(t, "side")
}

// drawTime draws from few times, so that many are equal.
func drawTime(t *rapid.T) storage.Micros { return at(rapid.IntRange(0, 9).Draw(t, "time")) }

func (p *pair) drawPair(t *rapid.T) storage.Pair {
	owner := rapid.IntRange(0, len(p.ids)-1).Draw(t, "from")
	step := rapid.IntRange(1, len(p.ids)-1).Draw(t, "to")
	return storage.Pair{From: p.ids[owner], To: p.ids[(owner+step)%len(p.ids)]}
}

// drawPlace draws a place in the order of ids: the start, a peer's or just before it.
func (p *pair) drawPlace(t *rapid.T) storage.UserID {
	places := []storage.UserID{0}
	for _, id := range p.ids {
		places = append(places, id, id-1)
	}
	return rapid.SampledFrom(places).Draw(t, "place")
}

// drawPosition draws a bound of an owner's list: none, a row's, or a place where
// there may be no row.
func (p *pair) drawPosition(t *rapid.T, side storage.Side, owner storage.UserID) storage.Position {
	rows := p.reference.Pages(t.Context(), side, []storage.PageQuery{{Owner: owner, Limit: 100}})[0].Value
	switch kind := rapid.IntRange(0, 2).Draw(t, "bound"); {
	case kind == 0:
		return storage.Position{}
	case kind == 1 && len(rows) > 0:
		return storage.PositionOf(side, rapid.SampledFrom(rows).Draw(t, "row"))
	default:
		return storage.Position{UpdateTime: drawTime(t), Peer: p.drawPlace(t)}
	}
}

// printable tells whether a name holds only what names hold.
func printable(name string) bool {
	return !slices.Contains([]rune(name), 0)
}

func repeated(handles []string) bool {
	slices.Sort(handles)
	return len(slices.Compact(handles)) != len(handles)
}
