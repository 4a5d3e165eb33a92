package storagetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/judge"
)

// manyHistories take some seconds on real servers; -rapid.checks asks for more.
const manyHistories = 30

// histories: whatever is done to a store, in whatever order, it answers like the reference engine
// after the same calls.
type histories struct{ *harness }

func (s histories) AnyHistoryReadsLikeTheReference(t *testing.T) {
	properties.Check(t, manyHistories, func(rt *rapid.T) {
		// One store serves all histories: each has users of its own.
		p := &pair{store: s.store, reference: referenceOf(s.store, rt), ids: s.ids(8)}
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
			"request":    p.request,
			"users":      p.users,
			"counts":     p.counts,
			"edges":      p.edges,
			"pages":      p.pages,
			"neighbours": p.neighbours,
		})
		p.everything(rt)
	})
}

// A pair is a store under test and the reference in lock step. Every method is
// one step: the same call to both, and a comparison of the answers.
type pair struct {
	store     storage.Store
	reference *oracle.Store
	ids       []storage.UserID
	handles   []string
	// The versions that were read last, of the store and of the reference. They need not be the same
	// numbers, but must rise together.
	versions map[storage.UserID][2]int64
	// Where the store's logs ended when the history began, if the store has logs.
	log  logger
	ends []int64
}

// Three users do everything to each other, so that what follows from one act meets what follows
// from another.
func (s histories) AnyRelationsReadLikeTheReference(t *testing.T) {
	properties.Check(t, manyHistories, func(rt *rapid.T) {
		p := &pair{store: s.store, reference: referenceOf(s.store, rt), ids: s.ids(3)}
		p.startLog(rt)
		for _, id := range p.ids {
			for _, store := range []storage.Store{p.store, p.reference} {
				must.OK(rt, store.CreateUsers(rt.Context(), []storage.User{person(id)})[0].Err)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"apply":         p.apply,
			"apply more":    p.apply,
			"change":        p.change,
			"change more":   p.change,
			"request":       p.request,
			"request more":  p.request,
			"request often": p.request,
			"relate":        p.relate,
			"messages":      p.compareMessages,
		})
		p.everything(rt)
	})
}

// referenceOf is a reference in which users are in one database if they are so in the store.
func referenceOf(store storage.Store, t *rapid.T) *oracle.Store {
	shards := storage.NewShardMap(len(store.Ping(t.Context())))
	return oracle.New(oracle.Together(func(a, b storage.UserID) bool { return shards.Of(a) == shards.Of(b) }))
}

// create makes users with any handles, their own or not. It leaves out the case that the contract
// leaves open: which user of a batch gets a handle.
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
	must.That(t, len(got) == n, "create: %d results for %d users", len(got), n)
	existed := storage.UserLookups.Read(t.Context(), p.reference, ids...)
	for i := range users {
		refused := errors.Is(got[i].Err, storage.ErrHandleTaken)
		must.That(t, got[i].Err == nil || refused, "create %+v: %v", users[i], got[i].Err)
		// A user that exists and asks for another user's handle may get either answer.
		open := existed[i].Found && !want[i].Value && existed[i].Value.Handle != users[i].Handle
		must.That(t, got[i].Value == want[i].Value && (refused == (want[i].Err != nil) || open), "create %+v:\ngot  %+v\nwant %+v", users[i], got[i], want[i])
	}
	p.versions = nil // whether making a user raises the version is left open
}

func (p *pair) apply(t *rapid.T) {
	side := drawSide(t)
	rule := rapid.SampledFrom([]storage.Rule{storage.IfNewer, storage.IfNewer, storage.IfAbsent}).Draw(t, "rule")
	p.compareCounts(t, p.ids)
	batch := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) storage.Edge {
		ends := p.drawPair(t)
		return storage.Edge{From: ends.From, To: ends.To, Type: drawType(t, side), UpdateTime: drawTimeOf(t, side)}
	}), 1, 12).Draw(t, "edges")
	batch = append(batch, rapid.SliceOfN(rapid.SampledFrom(batch), 0, 3).Draw(t, "given again")...)

	got := p.store.Apply(t.Context(), side, batch, rule)
	want := p.reference.Apply(t.Context(), side, batch, rule)
	must.That(t, len(got) == len(want), "apply: %d results for %d edges", len(got), len(want))
	last := map[storage.Pair]int{}
	for i, e := range batch {
		last[e.Pair()] = i
	}
	for i, e := range batch {
		same := got[i].Value.Changed == want[i].Value.Changed
		if i == last[e.Pair()] { // earlier ones may return either row
			same = same && got[i].Value.Row == want[i].Value.Row
		}
		must.That(t, got[i].Err == nil && same, "apply %v to %s, edge %d:\ngot  %+v\nwant %+v", batch, side, i, got[i], want[i])
	}
	p.compareReported(t, side, batch, got, want)
	p.compareCounts(t, p.ids)
}

// compareReported compares the rows that were reported to follow from a batch. Together they must be all
// that follows from it, as the rows are after the batch. Late edges may return the same row again.
func (p *pair) compareReported(t *rapid.T, side storage.Side, batch []storage.Edge, got, want []storage.Result[storage.Changed]) {
	reported := map[rowKey]storage.Edge{}
	for _, result := range got {
		for _, row := range result.Value.Also {
			where := rowKey{row.Side, row.Edge.Pair()}
			must.That(t, !row.Inverse, "apply %v to %s: the other side of %+v is not its business", batch, side, row)
			if row.Edge.UpdateTime >= reported[where].UpdateTime {
				reported[where] = row.Edge
			}
		}
	}
	for where, row := range reported {
		there := storage.EdgeLookups[where.side].Read(t.Context(), p.reference, where.pair)[0].Value
		must.That(t, row == there, "apply %v to %s:\ngot %+v\nwant %+v", batch, side, row, there)
	}
	for i, result := range want {
		late := !result.Value.Changed && result.Value.Row != batch[i]
		for _, row := range result.Value.Also {
			_, ok := reported[rowKey{row.Side, row.Edge.Pair()}]
			must.That(t, ok || late, "apply %v to %s: edge %d has not returned %+v", batch, side, i, row)
		}
	}
}

func (p *pair) change(t *rapid.T) {
	from := rapid.SampledFrom(p.ids).Draw(t, "from")
	limit := rapid.Int64Range(0, 3).Draw(t, "limit")
	options := storage.ChangeOptions{MaxFollowing: limit, MaxBlocks: limit, Inverse: rapid.Bool().Draw(t, "inverse")}
	batch := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) storage.EdgeChange {
		to := rapid.SampledFrom(p.ids).Filter(func(id storage.UserID) bool { return id != from }).Draw(t, "to")
		ends := rapid.SampledFrom(allTypes).Draw(t, "ends")
		return storage.EdgeChange{To: to, Type: drawType(t, storage.Forward), Ends: ends, At: drawTime(t)}
	}), 1, 8).Draw(t, "changes")
	p.compareCounts(t, p.ids)

	got := p.store.ChangeEdges(t.Context(), storage.Forward, from, batch, options)
	want := p.reference.ChangeEdges(t.Context(), storage.Forward, from, batch, options)
	must.That(t, len(got) == len(want), "change: %d results for %d changes", len(got), len(want))
	for i := range batch {
		g, w := got[i], want[i]
		if !sameChanged(g.Value, w.Value) || g.Found != w.Found || !sameError(g.Err, w.Err) {
			t.Fatalf("change of %d to %+v with %+v, %d:\ngot  %+v\nwant %+v", from, batch, options, i, g, w)
		}
	}
	p.compareCounts(t, p.ids)
}

// relate makes and ends edges of three kinds, and compares what is there afterwards, on both sides.
func (p *pair) relate(t *rapid.T) {
	from := rapid.SampledFrom(p.ids).Draw(t, "from")
	options := storage.ChangeOptions{MaxItems: rapid.Int64Range(0, 2).Draw(t, "limit"), Peace: rapid.Bool().Draw(t, "peace"), Inverse: rapid.Bool().Draw(t, "inverse")}
	ends := append(slices.Clone(p.ids), storage.Foreign(int64(p.ids[0])))
	batch := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) storage.EdgeChange {
		return storage.EdgeChange{
			To: rapid.SampledFrom(ends).Draw(t, "to"), Item: rapid.Int64Range(101, 103).Draw(t, "kind"), At: drawTime(t),
			Type: rapid.SampledFrom([]storage.EdgeType{storage.None, storage.Related, storage.Related}).Draw(t, "type"), IfDue: rapid.IntRange(0, 5).Draw(t, "due") == 0,
			Detail: storage.DetailChange{EndsAt: rapid.SampledFrom([]storage.Micros{0, at(2), at(4)}).Draw(t, "end"), Attributes: values("a", rapid.SampledFrom([]string{"null", "1"}).Draw(t, "attributes"))},
		}
	}), 1, 6, func(ch storage.EdgeChange) [2]int64 { return [2]int64{int64(ch.To), ch.Item} }).Draw(t, "changes")
	for i := range batch {
		if batch[i].Type == storage.None {
			batch[i].Detail = storage.DetailChange{}
		} else {
			batch[i].IfDue = false
		}
	}
	got := p.store.ChangeEdges(t.Context(), storage.Relations, from, batch, options)
	want := p.reference.ChangeEdges(t.Context(), storage.Relations, from, batch, options)
	var rows []storage.Edge
	for i := range batch {
		g, w := got[i], want[i]
		if g.Value.Row != w.Value.Row || g.Value.Changed != w.Value.Changed || !sameError(g.Err, w.Err) {
			t.Fatalf("relate %d to %+v with %+v, %d:\ngot  %+v\nwant %+v", from, batch, options, i, g, w)
		}
		if g.Value.Changed {
			rows = append(rows, g.Value.Row)
		}
	}
	for i, r := range p.store.Apply(t.Context(), storage.RelationInbox, rows, storage.IfNewer) {
		// Whether the row is there already is left open: an end without counts is written only by this.
		w := p.reference.Apply(t.Context(), storage.RelationInbox, rows[i:i+1], storage.IfNewer)[0]
		must.That(t, r.Err == nil && r.Value.Row == w.Value.Row, "apply %v to the other side:\ngot  %+v\nwant %+v", rows[i], r, w)
	}
	for _, owner := range ends {
		for kind := int64(101); kind <= 103; kind++ {
			of := []storage.OwnerKind{{Owner: owner, Kind: kind}}
			g, w := storage.KindLookups.Read(t.Context(), p.store, of...)[0], storage.KindLookups.Read(t.Context(), p.reference, of...)[0]
			must.That(t, g == w, "counts of kind %d of %d:\ngot  %+v\nwant %+v", kind, owner, g, w)
			for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
				p.comparePages(t, side, []storage.PageQuery{{Owner: owner, Item: kind, Limit: 9}})
			}
			for _, to := range ends {
				pair := []storage.Pair{{From: owner, To: to, Item: kind}}
				g, w := storage.DetailLookups.Read(t.Context(), p.store, pair...)[0], storage.DetailLookups.Read(t.Context(), p.reference, pair...)[0]
				must.That(t, g == w, "detail of %v:\ngot  %+v\nwant %+v", pair, g, w)
			}
		}
	}
	p.versions = nil // a foreign end has none
}

func (p *pair) request(t *rapid.T) {
	request := p.drawPair(t)
	acts := []storage.EdgeType{storage.Pending, storage.Accepted, storage.Declined, storage.Cancelled, storage.Removed, storage.Pending, storage.Accepted}
	change := storage.EdgeChange{
		Type:    rapid.SampledFrom(acts).Draw(t, "act"),
		At:      drawTimeOf(t, storage.Requests),
		Message: rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "message"),
	}
	options := storage.ChangeOptions{
		TTL:          rapid.SampledFrom([]time.Duration{storage.DefaultRequestTTL, 4 * time.Microsecond}).Draw(t, "ttl"),
		Pause:        time.Duration(rapid.IntRange(0, 5).Draw(t, "pause")) * time.Microsecond,
		MaxFollowing: rapid.Int64Range(0, 3).Draw(t, "limit"),
		MaxPending:   rapid.IntRange(0, 2).Draw(t, "pending"),
		Inverse:      rapid.Bool().Draw(t, "inverse"),
	}
	p.compareCounts(t, p.ids)
	got, err := Request(t.Context(), p.store, request, change, options)
	want, wantErr := Request(t.Context(), p.reference, request, change, options)
	same := got.Row == want.Row && got.Changed == want.Changed && sameWritten(got.Written(), want.Written())
	if first := got.Written(); len(first) > 0 {
		same = same && first[0].Side == storage.Requests && first[0].Edge.Pair() == request
	}
	must.That(t, same && sameError(err, wantErr), "request %+v, %+v with %+v:\ngot  %+v, %v\nwant %+v, %v", request, change, options, got, err, want, wantErr)
	p.compareCounts(t, p.ids)
}

// register makes a user with any handle. Here no claim is left without a user.
func (p *pair) register(t *rapid.T) {
	user := person(rapid.SampledFrom(p.ids).Draw(t, "id"))
	user.Handle = rapid.SampledFrom(p.handles).Draw(t, "handle")
	user.CreatedAt += storage.Micros(rapid.IntRange(0, 3).Draw(t, "minutes")) * (judge.ClaimTTL + 1)
	hash := rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "hash")
	existed := storage.UserLookups.Read(t.Context(), p.reference, user.ID)[0].Found

	got := p.store.Register(t.Context(), user, hash)
	want := p.reference.Register(t.Context(), user, hash)
	// A user that exists and asks for another user's handle may get either answer.
	must.That(t, sameError(got, want) || existed && errors.Is(got, storage.ErrHandleTaken), "register %+v:\ngot  %v\nwant %v", user, got, want)
	p.versions = nil // whether making a user raises the version is left open
}

func (p *pair) profile(t *rapid.T) {
	id := rapid.SampledFrom(p.ids).Draw(t, "id")
	text := rapid.Ptr(rapid.SampledFrom([]string{"", "one", "two"}), true)
	change := storage.ProfileChange{Name: text.Draw(t, "name"), Bio: text.Draw(t, "bio"), AvatarURL: text.Draw(t, "avatar")}
	time := drawTime(t)
	p.compareCounts(t, p.ids)
	got, _, err := p.store.UpdateProfile(t.Context(), id, change, time)
	want, _, wantErr := p.reference.UpdateProfile(t.Context(), id, change, time)
	must.That(t, got == want && sameError(err, wantErr), "update %d:\ngot  %+v, %v\nwant %+v, %v", id, got, err, want, wantErr)
	p.compareCounts(t, p.ids)
}

func (p *pair) password(t *rapid.T) {
	id := rapid.SampledFrom(p.ids).Draw(t, "id")
	hashes := rapid.SampledFrom([]string{"", "three", "four"})
	change := storage.PasswordChange{
		Old: hashes.Draw(t, "old"), New: hashes.Draw(t, "hash"), At: drawTime(t), EndsTokens: rapid.Bool().Draw(t, "ends tokens"),
	}
	got, err := p.store.SetPassword(t.Context(), id, change)
	want, wantErr := p.reference.SetPassword(t.Context(), id, change)
	must.That(t, sameError(err, wantErr) && got == want, "set the password of %d:\ngot  %+v, %v\nwant %+v, %v", id, got, err, want, wantErr)
	p.versions = nil // whether a password raises the version is left open
}

// sameError reports whether an error is like the reference's: both nil, or of the same kind.
func sameError(got, want error) bool {
	for _, kind := range []error{
		storage.ErrHandleTaken, storage.ErrUserExists, storage.ErrUserUnknown, storage.ErrPasswordChanged, storage.ErrLimitReached,
		storage.ErrForbidden, storage.ErrNoEdge,
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
			Type:     rapid.SampledFrom([]storage.EdgeType{0, 0, 1, 2, 3, 4, 5}).Draw(t, "type"),
			Limit:    rapid.IntRange(1, 5).Draw(t, "limit"),
			After:    p.drawPosition(t, side, owner),
			Before:   p.drawPosition(t, side, owner),
			Backward: rapid.Bool().Draw(t, "backward"),
		}
	}), 0, 12).Draw(t, "queries"))
}

func (p *pair) neighbours(t *rapid.T) {
	p.compareNeighbours(t, drawSide(t), rapid.SliceOfN(rapid.SampledFrom(p.ids), 0, 10).Draw(t, "owners"))
}

func drawSide(t *rapid.T) storage.Side {
	return rapid.SampledFrom([]storage.Side{
		storage.Forward, storage.Inverse, storage.Inverse, storage.Requests, storage.Inbox, storage.Inbox,
	}).Draw(t, "side")
}

// drawType draws from the types on a side, most often the type that is listed.
func drawType(t *rapid.T, side storage.Side) storage.EdgeType {
	types := []storage.EdgeType{storage.Following, storage.None, storage.Following, storage.Blocking, storage.Following, storage.Requested, storage.Denied}
	if side.Truth() == storage.Requests {
		types = []storage.EdgeType{
			storage.Pending, storage.Accepted, storage.Removed, storage.Pending, storage.Declined, storage.Cancelled, storage.None,
		}
	}
	return rapid.SampledFrom(types).Draw(t, "type")
}

// drawTime draws from few times, so that many are equal.
func drawTime(t *rapid.T) storage.Micros { return at(rapid.IntRange(0, 9).Draw(t, "time")) }

// drawTimeOf is drawTime, but sometimes requests get a time that is later by about as long as they last.
func drawTimeOf(t *rapid.T, side storage.Side) storage.Micros {
	time := drawTime(t)
	if side.Truth() == storage.Requests && rapid.IntRange(0, 3).Draw(t, "late") == 0 {
		time += storage.Micros(storage.DefaultRequestTTL.Microseconds())
	}
	return time
}

func (p *pair) drawPair(t *rapid.T) storage.Pair {
	owner := rapid.IntRange(0, len(p.ids)-1).Draw(t, "from")
	step := rapid.IntRange(1, len(p.ids)-1).Draw(t, "to")
	return storage.Pair{From: p.ids[owner], To: p.ids[(owner+step)%len(p.ids)]}
}

// drawPeer draws a bound in the order of ids: the start, a peer's or just before it.
func (p *pair) drawPeer(t *rapid.T) storage.UserID {
	peers := []storage.UserID{0}
	for _, id := range p.ids {
		peers = append(peers, id, id-1)
	}
	return rapid.SampledFrom(peers).Draw(t, "peer")
}

// drawPosition draws a bound of an owner's list: none, that of a row, or a position where there
// may be no row.
func (p *pair) drawPosition(t *rapid.T, side storage.Side, owner storage.UserID) storage.Position {
	rows := storage.PageLookups[side].Read(t.Context(), p.reference, storage.PageQuery{Owner: owner, Limit: 100})[0].Value
	switch kind := rapid.IntRange(0, 2).Draw(t, "bound"); {
	case kind == 0:
		return storage.Position{}
	case kind == 1 && len(rows) > 0:
		return side.Position(rapid.SampledFrom(rows).Draw(t, "row"))
	default:
		return storage.Position{UpdateTime: drawTime(t), Peer: p.drawPeer(t)}
	}
}

// printable reports whether a name holds only what names hold.
func printable(name string) bool {
	return !slices.Contains([]rune(name), 0)
}

func repeated(handles []string) bool {
	slices.Sort(handles)
	return len(slices.Compact(handles)) != len(handles)
}
