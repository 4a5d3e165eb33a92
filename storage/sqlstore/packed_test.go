package sqlstore

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/properties"
	"kith/internal/storagetest"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore/internal/packed"
)

// smallPacking packs everything, in chunks and steps so small that a few edges count as many.
var smallPacking = packed.Sizes{From: 1, Chunk: 4, Slice: 8, Changes: 3, Window: 2, Step: 6, Stale: 600_000_000}

// openSmall opens a store that packs nothing in the background.
func openSmall(t testing.TB, location string, onStatement func(context.Context, Statement)) *Store {
	t.Helper()
	s := openPacking(t, location, onStatement)
	s.packed.Close()
	return s
}

// openPacking opens a store that packs every list that is asked for.
func openPacking(t testing.TB, location string, onStatement func(context.Context, Statement)) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Location: location, StatementTimeout: time.Minute, OnStatement: onStatement})
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	s.packed.Sizes = smallPacking
	return s
}

// onBothEngines runs a test on a new store of each engine.
func onBothEngines(t *testing.T, test func(t *testing.T, location string)) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db"))
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		test(t, "mysql:"+testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0])
	})
}

// longOnSQLite leaves a test of packing on SQLite to the long tests: TestConformancePacked runs those statements there. What is proven
// besides is about what packs, which does not know the engine, and less happens at once on SQLite than on MariaDB.
func longOnSQLite(t *testing.T, location string) {
	if strings.HasPrefix(location, "sqlite:") {
		testenv.Long(t)
	}
}

// packedLists are the sides that can be packed.
var packedSides = []storage.Side{storage.Forward, storage.Inverse}

// fataler is a test or a property test.
type fataler interface {
	Helper()
	Fatalf(string, ...any)
	Context() context.Context
}

// listsOfRows returns lists as read from their rows.
func listsOfRows(t fataler, s *Store, side storage.Side, queries []storage.ListQuery) []storage.List {
	t.Helper()
	all := make([]storage.List, len(queries))
	for i, q := range queries {
		err := s.listRow(t.Context(), side, 0, q, func(_ storage.ListQuery, l storage.List) { all[i] = l })
		must.That(t, err == nil, "read rows of %s: %v", side, err)
	}
	return all
}

// sameLists compares lists as they are read with their rows, and checks that no packed list was found
// to be wrong.
func sameLists(t fataler, s *Store, owners []storage.UserID, since ...storage.Micros) {
	t.Helper()
	var queries []storage.ListQuery
	for _, owner := range owners {
		queries = append(queries, storage.ListQuery{Owner: owner, Longest: 2})
		for _, since := range append(since, 0, 1<<62) {
			queries = append(queries, storage.ListQuery{Owner: owner, Longest: 1_000_000, EndedSince: since})
		}
	}
	for _, side := range packedSides {
		want := listsOfRows(t, s, side, queries)
		for i, got := range storage.SnapshotLookups[side].Read(t.Context(), s, queries...) {
			if got.Err != nil || !got.Found || got.Value.Version != want[i].Version || got.Value.Long != want[i].Long || !slices.Equal(got.Value.Edges, want[i].Edges) {
				t.Fatalf("%s, %+v:\ngot  %+v\nwant %+v", side, queries[i], got, want[i])
			}
		}
	}
	samePeers(t, s, owners)
	s.packed.Doubted.Range(func(list, why any) bool {
		t.Fatalf("the packed list %+v was wrong: %v", list, why)
		return false
	})
}

// samePeers compares the peers of packed lists with their rows. Only packed lists may be Found.
func samePeers(t fataler, s *Store, owners []storage.UserID) {
	t.Helper()
	queries := make([]storage.ListQuery, len(owners))
	for i, owner := range owners {
		queries[i] = storage.ListQuery{Owner: owner, Longest: 1_000_000, EndedSince: 1 << 62}
	}
	for _, side := range packedSides {
		rows := listsOfRows(t, s, side, queries)
		for i, got := range storage.PackedLookups[side].Read(t.Context(), s, owners...) {
			packed := isPacked(t, s, side, owners[i])
			must.That(t, got.Err == nil && got.Found == packed, "%s of %s: found %v, %v; it is packed: %v", side, owners[i], got.Found, got.Err, packed)
			var want []storage.UserID
			for _, e := range rows[i].Edges {
				if e.Type == storage.Following {
					want = append(want, side.Peer(e.Pair()))
				}
			}
			must.That(t, !got.Found || slices.Equal(got.Value, want), "%s of %s:\ngot  %v\nwant %v", side, owners[i], got.Value, want)
			got := storage.NeighbourLookups[side].Read(t.Context(), s, owners[i:i+1]...)[0]
			must.That(t, got.Err == nil && slices.Equal(got.Value, want), "neighbours %s of %s:\ngot  %+v\nwant %v", side, owners[i], got, want)
		}
	}
}

// isPacked reports whether a list is read from its packed form.
func isPacked(t fataler, s *Store, side storage.Side, owner storage.UserID) bool {
	t.Helper()
	_, is, err := s.packed.List(t.Context(), side, s.shards.Of(owner), storage.ListQuery{Owner: owner, Longest: 1e6})
	must.That(t, err == nil, "read the packed list %s of %s: %v", side, owner, err)
	return is
}

func mustPack(t fataler, s *Store, side storage.Side, owner storage.UserID) {
	t.Helper()
	must.OK(t, s.Pack(t.Context(), side, owner))
}

// Whatever is written, in whatever way, a packed list equals its rows after every step.
func TestPackedListsAreTheirRows(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		longOnSQLite(t, location)
		packed := 0
		s := openSmall(t, location, func(_ context.Context, st Statement) {
			if st.Lookup == "packed.following" || st.Lookup == "packed.follower" {
				packed++
			}
		})
		s.packed.Sizes.ShortTo, s.packed.Sizes.ShortQuiet, s.packed.Sizes.ShortEnded = 1000, -1<<60, 1<<60
		round := storage.UserID(0)
		properties.Check(t, 30, func(t *rapid.T) {
			round++
			w := newPackedWorld(t, s, round)
			t.Repeat(map[string]func(*rapid.T){
				"apply":      w.apply,
				"apply many": w.applyMany,
				"change":     w.change,
				"request":    w.request,
				"repair":     w.repair,
				"recount":    w.recount,
				"profile":    w.profile,
				"pack":       w.pack,
				"pack again": w.pack,
				"pack short": w.packShort,
				"by hand":    w.byHand,
				"erase":      w.erase,
				"":           func(t *rapid.T) { sameLists(t, s, w.ids, storage.Micros(5)) },
			})
		})
		check.That(t, packed >= 100, "%d lists were read packed", packed)
	})
}

// packedWorld is the users of one run of the property test.
type packedWorld struct {
	store    *Store
	ids      []storage.UserID
	erasures int
}

func newPackedWorld(t *rapid.T, s *Store, round storage.UserID) *packedWorld {
	w := &packedWorld{store: s}
	var users []storage.User
	for i := range storage.UserID(6) {
		id := round*1000 + i*i*i
		if i%2 == 1 {
			id += 1 << 58
		}
		w.ids = append(w.ids, id)
		users = append(users, storage.User{ID: id, Handle: "u" + id.String(), Name: "U"})
	}
	must.All(t, s.CreateUsers(t.Context(), users))
	return w
}

func (w *packedWorld) id(t *rapid.T) storage.UserID { return rapid.SampledFrom(w.ids).Draw(t, "id") }

func (w *packedWorld) side(t *rapid.T) storage.Side {
	return rapid.SampledFrom(packedSides).Draw(t, "side")
}

func (w *packedWorld) pair(t *rapid.T) storage.Pair {
	i := rapid.IntRange(0, len(w.ids)-1).Draw(t, "from")
	j := rapid.IntRange(1, len(w.ids)-1).Draw(t, "to")
	return storage.Pair{From: w.ids[i], To: w.ids[(i+j)%len(w.ids)]}
}

func (w *packedWorld) edge(t *rapid.T) storage.Edge {
	p := w.pair(t)
	return storage.Edge{
		From: p.From, To: p.To,
		Type:       rapid.SampledFrom([]storage.EdgeType{0, 1, 1, 1, 2}).Draw(t, "type"),
		UpdateTime: storage.Micros(rapid.IntRange(1, 20).Draw(t, "time")),
	}
}

func (w *packedWorld) applied(t *rapid.T, side storage.Side, edges []storage.Edge) {
	must.All(t, w.store.Apply(t.Context(), side, edges, storage.IfNewer))
}

func (w *packedWorld) apply(t *rapid.T) {
	side := rapid.SampledFrom(storage.Sides[:]).Draw(t, "side")
	edges := rapid.SliceOfN(rapid.Custom(w.edge), 1, 6).Draw(t, "edges")
	w.staysPacked(t, func(storage.UserID) { w.applied(t, side, edges) })
}

// applyMany writes as an import does, with peers who occur nowhere else.
func (w *packedWorld) applyMany(t *rapid.T) {
	side := w.side(t)
	owner := w.id(t)
	first := storage.UserID(rapid.IntRange(1, 100).Draw(t, "first"))
	blocks := rapid.Bool().Draw(t, "blocks") // if there are any, rows are read one by one
	var edges []storage.Edge
	for i := range storage.UserID(bulkSize + 10) {
		p := side.Pair(owner, owner+first+1000*i)
		kind := storage.Following
		if blocks && i%30 == 7 {
			kind = storage.Blocking
		}
		edges = append(edges, storage.Edge{From: p.From, To: p.To, Type: kind, UpdateTime: 3})
	}
	w.applied(t, side, edges)
}

func (w *packedWorld) change(t *rapid.T) {
	from := w.id(t)
	options := storage.ChangeOptions{Inverse: rapid.Bool().Draw(t, "inverse")}
	changes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) storage.EdgeChange {
		e := w.edge(t)
		to := e.To
		if to == from {
			to = e.From
		}
		return storage.EdgeChange{To: to, Type: e.Type, At: e.UpdateTime}
	}), 1, 4).Draw(t, "changes")
	w.store.ChangeEdges(t.Context(), storage.Forward, from, changes, options) // refused if there is a block
}

func (w *packedWorld) request(t *rapid.T) {
	act := rapid.SampledFrom([]storage.EdgeType{storage.Pending, storage.Accepted, storage.Removed}).Draw(t, "act")
	change := storage.EdgeChange{Type: act, At: storage.Micros(rapid.IntRange(1, 20).Draw(t, "time"))}
	options := storage.ChangeOptions{TTL: time.Hour, Inverse: rapid.Bool().Draw(t, "inverse")}
	storagetest.Request(t.Context(), w.store, w.pair(t), change, options) // refused if there is no request
}

// repair writes a row as reconcile does.
func (w *packedWorld) repair(t *rapid.T) {
	e := w.edge(t)
	row := storage.EdgeLookups[storage.Inverse].Read(t.Context(), w.store, e.Pair())[0].Value
	results := w.store.RepairInverse(t.Context(), []sides.Repair{{
		Pair:     e.Pair(),
		Observed: row,
		Want:     e,
	}})
	must.That(t, results[0].Err == nil && results[0].Value.Changed, "repair: %+v", results[0])
}

// recount removes a follow by hand. A recount finds that.
func (w *packedWorld) recount(t *rapid.T) {
	side, e := w.side(t), w.edge(t)
	w.exec(t, "DELETE FROM "+side.String()+" WHERE from_user_id = ? AND to_user_id = ? AND type = 1", int64(e.From), int64(e.To))
	for _, side := range packedSides {
		must.All(t, w.store.Recount(t.Context(), side, w.ids))
	}
}

func (w *packedWorld) exec(t *rapid.T, text string, args ...any) {
	_, err := w.store.db.Shard(0).Write.ExecContext(t.Context(), text, args...)
	must.That(t, err == nil, "%s: %v", text, err)
}

func (w *packedWorld) profile(t *rapid.T) {
	w.staysPacked(t, func(id storage.UserID) {
		name := "V"
		w.store.UpdateProfile(t.Context(), id, storage.ProfileChange{Name: &name}, 7) // unless the user is erased
	})
	w.staysPacked(t, func(id storage.UserID) {
		w.store.SetPassword(t.Context(), id, storage.PasswordChange{New: "x", At: 7, EndsTokens: true})
	})
	w.staysPacked(t, func(id storage.UserID) { w.store.SetState(t.Context(), id, storage.Deactivated, 8) })
}

// staysPacked checks that after a change of a user the same lists of this user are packed as before.
func (w *packedWorld) staysPacked(t *rapid.T, change func(storage.UserID)) {
	id := w.id(t)
	var was [2]bool
	for i, side := range packedSides {
		was[i] = isPacked(t, w.store, side, id)
	}
	change(id)
	for i, side := range packedSides {
		is := isPacked(t, w.store, side, id)
		must.That(t, is == was[i], "the list %s of %s is packed: %v, before: %v", side, id, is, was[i])
	}
}

func (w *packedWorld) pack(t *rapid.T) {
	side, id := w.side(t), w.id(t)
	mustPack(t, w.store, side, id)
	counts := storage.CountLookups.Read(t.Context(), w.store, id)[0].Value
	must.That(t, counts.Of(side) == 0 || isPacked(t, w.store, side, id), "the list %s of %s is not packed", side, id)
}

// packShort packs lists as one value each, also those that are packed already.
func (w *packedWorld) packShort(t *rapid.T) {
	side := w.side(t)
	if side.Truth() != storage.Forward {
		return
	}
	var lists []packed.Name
	for _, id := range w.ids {
		lists = append(lists, packed.Name{Side: side, Owner: id})
	}
	w.store.packShorts(t.Context(), lists)
}

// byHand changes a follow as docs/inside/caching.md says that it can be changed by hand, so that the counts stay the same.
func (w *packedWorld) byHand(t *rapid.T) {
	side, id := w.side(t), w.id(t)
	owner := [...]string{storage.Forward: "from_user_id", storage.Inverse: "to_user_id"}[side]
	w.exec(t, "UPDATE "+side.String()+" SET update_time = update_time + 1 WHERE "+owner+" = ?", int64(id))
	w.exec(t, "UPDATE user_counts SET version = version + 1 WHERE user_id = ?", int64(id))
}

func (w *packedWorld) erase(t *rapid.T) {
	if w.erasures++; w.erasures%4 != 0 {
		t.Skip("not as often as the others")
	}
	id := w.id(t)
	if r := storage.StateLookups.Read(t.Context(), w.store, id)[0]; r.Value.State == storage.Deleted {
		t.Skip("it is done, whatever has come since")
	}
	w.store.SetState(t.Context(), id, storage.Deleting, 30)
	for _, side := range packedSides { // an erasure has ended these before it
		edges := listsOfRows(t, w.store, side, []storage.ListQuery{{Owner: id, Longest: 1_000_000, EndedSince: 1 << 62}})[0].Edges
		for i := range edges {
			edges[i].Type, edges[i].UpdateTime = storage.None, edges[i].UpdateTime+1
		}
		w.applied(t, side, edges)
	}
	err := w.store.Erase(t.Context(), id, 31)
	must.That(t, err == nil, "erase: %v", err)
	for _, table := range []string{"packed_list", "packed_chunk", "packed_change", "packed_short"} {
		var n int
		err := w.store.db.Shard(0).Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE owner = ?", int64(id)).Scan(&n)
		must.That(t, err == nil && n == 0, "%d rows of user %s are left in %s, %v", n, id, table, err)
	}
}

// A chunk that is lost or broken is noticed. The list is read from its rows, and packed again the next
// time.
func TestBrokenPackedListsAreNotBelieved(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		grown := 30
		for name, harm := range map[string]string{
			"lost":      "DELETE FROM packed_chunk WHERE owner = ? AND first_peer = (SELECT f FROM (SELECT MAX(first_peer) AS f FROM packed_chunk) AS last)",
			"broken":    "UPDATE packed_chunk SET data = 'x' WHERE owner = ?",
			"forgotten": "DELETE FROM packed_change WHERE owner = ? AND peer < 1000",
		} {
			t.Run(name, func(t *testing.T) {
				seen := &recorder{}
				s := openSmall(t, location, seen.record)
				s.packed.Sizes.Changes = 100
				followers(t, s, 1, 30)
				mustPack(t, s, storage.Inverse, 1)
				grown += 10 // other followers than before, so that there are changes
				followers(t, s, 1, grown)
				_, err := s.db.Shard(0).Write.ExecContext(t.Context(), harm, 1)
				must.OK(t, err)
				seen.reset()
				for range 2 {
					got := storage.PackedLookups[storage.Inverse].Read(t.Context(), s, 1)[0]
					must.That(t, !got.Found && got.Err == nil, "found %d followers, %v", len(got.Value), got.Err)
				}
				check.Equal(t, "statements, as what is doubted is not read again", len(seen.all()), 1)
				_, doubted := s.packed.Doubted.LoadAndDelete(followersOf1)
				must.That(t, doubted, "it is not doubted")
				q := storage.ListQuery{Owner: 1, Longest: 1000}
				for _, doubted := range []bool{true, false} {
					got := storage.SnapshotLookups[storage.Inverse].Read(t.Context(), s, q)[0]
					want := listsOfRows(t, s, storage.Inverse, []storage.ListQuery{q})[0]
					must.That(t, got.Err == nil && slices.Equal(got.Value.Edges, want.Edges), "got %+v\nwant %+v", got, want)
					_, is := s.packed.Doubted.Load(followersOf1)
					must.Equal(t, "doubted", is, doubted)
					mustPack(t, s, storage.Inverse, 1)
				}
				samePeers(t, s, []storage.UserID{1})
			})
		}
	})
}

// followers gives an owner some followers, at random places.
func followers(t testing.TB, s *Store, owner storage.UserID, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(owner), uint64(n)))
	var edges []storage.Edge
	for i := range n {
		edges = append(edges, storage.Edge{
			From: storage.UserID(10 + i*100 + r.IntN(100)), To: owner, Type: storage.Following, UpdateTime: storage.Micros(1000 + r.IntN(1000)),
		})
	}
	for chunk := range slices.Chunk(edges, 20_000) {
		must.All(t, s.Apply(t.Context(), storage.Inverse, chunk, storage.IfNewer))
	}
}
