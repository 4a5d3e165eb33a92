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
		p.startLog(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"create":     p.create,
			"register":   p.register,
			"profile":    p.profile,
			"password":   p.password,
			"apply":      p.apply,
			"apply more": p.apply, // so that there is something to read
			"change":     p.change,
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
	store     storage.Store
	reference *memory.Store
	ids       []storage.UserID
	handles   []string
	// The versions last read, of the store and of the reference. They need not be
	// the same numbers, but must rise together.
	versions map[storage.UserID][2]int64
	// Where the store's logs ended when the history began, if it has any.
	log  logger
	ends []int64
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

func (p *pair) change(t *rapid.T) {
	from := rapid.SampledFrom(p.ids).Draw(t, "from")
	options := storage.ChangeOptions{
		MaxFollowing: rapid.Int64Range(0, 3).Draw(t, "limit"),
		Inverse:      rapid.Bool().Draw(t, "inverse"),
	}
	batch := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) storage.EdgeChange {
		to := rapid.SampledFrom(p.ids).Filter(func(id storage.UserID) bool { return id != from }).Draw(t, "to")
		kind := rapid.SampledFrom(append(allTypes, storage.Following)).Draw(t, "type")
		return storage.EdgeChange{To: to, Type: kind, At: drawTime(t)}
	}), 1, 8).Draw(t, "changes")
	p.compareCounts(t, p.ids)

	got := p.store.ChangeEdges(t.Context(), from, batch, options)
	// What is local is another matter for the reference, so it is told what was.
	options.Inverse = false
	want := p.reference.ChangeEdges(t.Context(), from, batch, options)
	if len(got) != len(want) {
		t.Fatalf("change: %d results for %d changes", len(got), len(want))
	}
	inverse := map[storage.UserID]storage.Edge{}
	for i := range batch {
		g, w := got[i], want[i]
		if g.Value.Inverse {
			inverse[batch[i].To] = w.Value.Row
		}
		g.Value.Inverse = false
		if g.Value != w.Value || g.Found != w.Found || !sameError(g.Err, w.Err) {
			t.Fatalf("change of %d to %+v, %d:\ngot  %+v\nwant %+v", from, batch, i, g, w)
		}
	}
	for _, row := range inverse {
		p.reference.Apply(t.Context(), storage.Inverse, []storage.Edge{row}, storage.IfNewer)
	}
	p.compareCounts(t, p.ids)
}

// register makes a user with any handle. Nobody's claim is left without a user here.
func (p *pair) register(t *rapid.T) {
	user := person(rapid.SampledFrom(p.ids).Draw(t, "id"))
	user.Handle = rapid.SampledFrom(p.handles).Draw(t, "handle")
	user.CreatedAt += storage.Micros(rapid.IntRange(0, 3).Draw(t, "minutes")) * (storage.ClaimTTL + 1)
	hash := rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "hash")
	existed := p.reference.Users(t.Context(), []storage.UserID{user.ID})[0].Found

	got := p.store.Register(t.Context(), user, hash)
	want := p.reference.Register(t.Context(), user, hash)
	// A user that exists and asks for somebody else's handle may be told either.
	if !sameError(got, want) && !(existed && errors.Is(got, storage.ErrHandleTaken)) {
		t.Fatalf("register %+v:\ngot  %v\nwant %v", user, got, want)
	}
	p.versions = nil // whether making a user raises the version is left open
}

func (p *pair) profile(t *rapid.T) {
	id := rapid.SampledFrom(p.ids).Draw(t, "id")
	text := rapid.Ptr(rapid.SampledFrom([]string{"", "one", "two"}), true)
	change := storage.ProfileChange{Name: text.Draw(t, "name"), Bio: text.Draw(t, "bio"), AvatarURL: text.Draw(t, "avatar")}
	time := drawTime(t)
	p.compareCounts(t, p.ids)
	got, err := p.store.UpdateProfile(t.Context(), id, change, time)
	want, wantErr := p.reference.UpdateProfile(t.Context(), id, change, time)
	if got != want || !sameError(err, wantErr) {
		t.Fatalf("update %d:\ngot  %+v, %v\nwant %+v, %v", id, got, err, want, wantErr)
	}
	p.compareCounts(t, p.ids)
}

func (p *pair) password(t *rapid.T) {
	id := rapid.SampledFrom(p.ids).Draw(t, "id")
	hash := rapid.SampledFrom([]string{"", "three", "four"}).Draw(t, "hash")
	time := drawTime(t)
	err := p.store.SetPasswordHash(t.Context(), id, hash, time)
	if wantErr := p.reference.SetPasswordHash(t.Context(), id, hash, time); !sameError(err, wantErr) {
		t.Fatalf("set the password of %d:\ngot  %v\nwant %v", id, err, wantErr)
	}
	p.versions = nil // whether a password raises the version is left open
}

// sameError tells whether an error is as the reference's: none, or of the same kind.
func sameError(got, want error) bool {
	for _, kind := range []error{
		storage.ErrHandleTaken, storage.ErrUserExists, storage.ErrUserUnknown, storage.ErrLimitReached,
	} {
		if errors.Is(want, kind) {
			return errors.Is(got, kind)
		}
	}
	return got == nil && want == nil
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
