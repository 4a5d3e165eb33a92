package reconcile_test

import (
	"cmp"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kith/reconcile"
	"kith/storage"
	"kith/storage/shard"
	"kith/storage/sqlstore"
)

// A graph is a store with random edges, and a way past it.
type graph struct {
	*sqlstore.Store
	t     testing.TB
	files []*sql.DB
	place *shard.Map
	r     *rand.Rand
	users []storage.UserID
}

// newGraph makes a graph of random users and edges of all types. Both sides agree.
func newGraph(t testing.TB, seed uint64, shards, users, edges int) *graph {
	t.Helper()
	dir := t.TempDir()
	var paths, dsns []string
	for i := range shards {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.db", i)))
		dsns = append(dsns, "file:"+paths[i]+"?_pragma=busy_timeout(30000)&_txlock=immediate")
	}
	return newGraphOn(t, seed, "sqlite", paths, dsns, users, edges)
}

// newGraphOn makes a graph on some databases, which are opened a second time to get
// past the store.
func newGraphOn(t testing.TB, seed uint64, engine string, addresses, dsns []string, users, edges int) *graph {
	t.Helper()
	g := &graph{t: t, place: shard.NewMap(len(dsns)), r: rand.New(rand.NewPCG(seed, 7))}
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: engine + ":" + strings.Join(addresses, ";"), StatementTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	g.Store = s
	t.Cleanup(func() { s.Close() })
	for _, dsn := range dsns {
		db, err := sql.Open(engine, dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		g.files = append(g.files, db)
	}
	var all []storage.User
	for i := range users {
		id := storage.UserID(1 + i + g.r.IntN(2)*1_000_000_000_000)
		g.users = append(g.users, id)
		all = append(all, storage.User{ID: id, Handle: fmt.Sprintf("u%d", id)})
	}
	for _, made := range s.CreateUsers(t.Context(), all) {
		if made.Err != nil {
			t.Fatal(made.Err)
		}
	}
	seen := make(map[storage.Pair]bool)
	var rows []storage.Edge
	for len(rows) < edges {
		e := storage.Edge{
			From: g.user(), To: g.user(),
			Type: []storage.EdgeType{1, 1, 1, 1, 2, 0}[g.r.IntN(6)], UpdateTime: storage.Micros(1e15 + g.r.Int64N(1e9)),
		}
		if e.From != e.To && !seen[e.Pair()] {
			seen[e.Pair()] = true
			rows = append(rows, e)
		}
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for _, a := range s.Apply(t.Context(), side, rows, storage.IfNewer) {
			if a.Err != nil {
				t.Fatal(a.Err)
			}
		}
	}
	return g
}

func (g *graph) user() storage.UserID { return g.users[g.r.IntN(len(g.users))] }

// exec writes past the store, on the shard of a user.
func (g *graph) exec(owner storage.UserID, text string, args ...any) {
	g.t.Helper()
	if _, err := g.files[g.place.Of(owner)].Exec(text, args...); err != nil {
		g.t.Fatal(err)
	}
}

// put writes the row of an edge past the store.
func (g *graph) put(side storage.Side, e storage.Edge) {
	g.t.Helper()
	g.exec(side.Owner(e.Pair()), "REPLACE INTO "+side.String()+" (from_user_id, to_user_id, type, update_time) VALUES (?, ?, ?, ?)",
		int64(e.From), int64(e.To), int64(e.Type), int64(e.UpdateTime))
}

func (g *graph) remove(side storage.Side, p storage.Pair) {
	g.t.Helper()
	g.exec(side.Owner(p), "DELETE FROM "+side.String()+" WHERE from_user_id = ? AND to_user_id = ?", int64(p.From), int64(p.To))
}

// rows reads all rows of a side past the store, in key order. Tombstones at time 0,
// which are as good as no row, are left out.
func (g *graph) rows(side storage.Side) []storage.Edge {
	g.t.Helper()
	var all []storage.Edge
	for _, db := range g.files {
		rows, err := db.Query("SELECT from_user_id, to_user_id, type, update_time FROM " + side.String())
		if err != nil {
			g.t.Fatal(err)
		}
		for rows.Next() {
			var e storage.Edge
			if err := rows.Scan(&e.From, &e.To, &e.Type, &e.UpdateTime); err != nil {
				g.t.Fatal(err)
			}
			if e.Type != storage.None || e.UpdateTime != 0 {
				all = append(all, e)
			}
		}
		if err := rows.Err(); err != nil {
			g.t.Fatal(err)
		}
	}
	slices.SortFunc(all, func(a, b storage.Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return all
}

// whole fails the test unless both sides are equal and all counts right.
func (g *graph) whole() {
	g.t.Helper()
	forward, inverse := g.rows(storage.Forward), g.rows(storage.Inverse)
	if !slices.Equal(forward, inverse) {
		g.t.Errorf("the sides differ: %d rows, %d rows", len(forward), len(inverse))
	}
	want := make(map[storage.UserID]storage.Counts)
	for _, e := range forward {
		if e.Type == storage.Following {
			from, to := want[e.From], want[e.To]
			from.Following++
			want[e.From] = from
			to = want[e.To]
			to.Follower++
			want[e.To] = to
		}
	}
	for i, c := range g.Counts(g.t.Context(), g.users) {
		id := g.users[i]
		if c.Err != nil || c.Value.Following != want[id].Following || c.Value.Follower != want[id].Follower {
			g.t.Errorf("counts of %d: %+v, want %+v", id, c, want[id])
		}
	}
}

// A trace names what is wrong: the kind, and the edge or the count.
type trace struct {
	kind reconcile.Kind
	pair storage.Pair
	side storage.Side
	user storage.UserID
}

func tracesOf(found []reconcile.Finding) []trace {
	var all []trace
	for _, f := range found {
		all = append(all, trace{f.Kind, f.Pair(), f.Side, f.User})
	}
	return all
}

func compareTraces(a, b trace) int {
	return cmp.Or(strings.Compare(string(a.kind), string(b.kind)), cmp.Compare(a.pair.From, b.pair.From),
		cmp.Compare(a.pair.To, b.pair.To), cmp.Compare(a.side, b.side), cmp.Compare(a.user, b.user))
}

// sameTraces fails the test unless exactly what was damaged was found, once each.
func sameTraces(t testing.TB, found []reconcile.Finding, damaged []trace) {
	t.Helper()
	got := tracesOf(found)
	slices.SortFunc(got, compareTraces)
	want := slices.SortedFunc(slices.Values(damaged), compareTraces)
	for _, g := range got {
		if _, known := slices.BinarySearchFunc(want, g, compareTraces); !known {
			t.Errorf("found %+v, which is no damage", g)
		}
	}
	for _, w := range want {
		if _, known := slices.BinarySearchFunc(got, w, compareTraces); !known {
			t.Errorf("did not find %+v", w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("found %d, damaged %d", len(got), len(want))
	}
}

// damage does so many things of every kind to the inverse side and the counts, each
// edge once, in the first and last rows of each shard too.
func (g *graph) damage(times int) []trace {
	g.t.Helper()
	rows := g.rows(storage.Inverse)
	g.r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	rows = g.endsFirst(rows)
	var made []trace
	edge := func(kind reconcile.Kind, p storage.Pair) { made = append(made, trace{kind: kind, pair: p}) }
	taken := make(map[storage.Pair]bool)
	for _, e := range g.rows(storage.Forward) {
		taken[e.Pair()] = true
	}
	next := func() storage.Edge {
		e := rows[0]
		rows = rows[1:]
		return e
	}
	for n := range times {
		e := next()
		g.remove(storage.Inverse, e.Pair())
		g.keepCount(e, storage.Edge{})
		edge(reconcile.Missing, e.Pair())

		e = next()
		flipped := e
		flipped.Type = (e.Type + 1 + storage.EdgeType(g.r.IntN(2))) % 3
		g.put(storage.Inverse, flipped)
		g.keepCount(e, flipped)
		edge(reconcile.WrongType, e.Pair())

		e = next()
		e.UpdateTime += storage.Micros(1 + g.r.Int64N(1e12)) // newer
		g.put(storage.Inverse, e)
		edge(reconcile.WrongTime, e.Pair())

		e = next()
		e.UpdateTime -= storage.Micros(1 + g.r.Int64N(1e9)) // older
		g.put(storage.Inverse, e)
		edge(reconcile.WrongTime, e.Pair())

		for { // an edge too many
			e = storage.Edge{From: g.user(), To: g.user(), Type: storage.EdgeType(g.r.IntN(3)), UpdateTime: 5}
			if e.From != e.To && !taken[e.Pair()] {
				break
			}
		}
		taken[e.Pair()] = true
		g.put(storage.Inverse, e)
		g.keepCount(storage.Edge{}, e)
		edge(reconcile.Extra, e.Pair())

		// Two rows of one owner, or of two, swap their times; or all but their keys.
		a, b := next(), next()
		oldA, oldB := a, b
		a.UpdateTime, b.UpdateTime = b.UpdateTime, a.UpdateTime
		kind := reconcile.WrongTime
		if a.Type != b.Type && n%2 == 0 {
			a.Type, b.Type = b.Type, a.Type
			kind = reconcile.WrongType
		}
		g.put(storage.Inverse, a)
		g.put(storage.Inverse, b)
		g.keepCount(oldA, a)
		g.keepCount(oldB, b)
		edge(kind, a.Pair())
		edge(kind, b.Pair())

		side := storage.Side(n % 2)
		user := g.users[(n*13)%len(g.users)]
		g.exec(user, fmt.Sprintf("UPDATE user_counts SET %s_count = %s_count + 100 WHERE user_id = ?", side, side), int64(user))
		made = append(made, trace{kind: reconcile.WrongCount, side: side, user: user})
	}
	return made
}

// keepCount makes every other user's count what a damaged row makes of it.
func (g *graph) keepCount(before, after storage.Edge) {
	g.t.Helper()
	diff := 0
	if before.Type == storage.Following {
		diff--
	}
	if after.Type == storage.Following {
		diff++
	}
	if owner := max(before.To, after.To); diff != 0 && owner%2 == 0 {
		g.exec(owner, "UPDATE user_counts SET follower_count = follower_count + ? WHERE user_id = ?", diff, int64(owner))
	}
}

// endsFirst brings the first and last rows of every shard to the front.
func (g *graph) endsFirst(rows []storage.Edge) []storage.Edge {
	var ends []storage.Edge
	for i := range g.files {
		var here []storage.Edge
		for _, e := range rows {
			if g.place.Of(e.To) == i {
				here = append(here, e)
			}
		}
		byKey := func(a, b storage.Edge) int { return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From)) }
		ends = append(ends, slices.MinFunc(here, byKey), slices.MaxFunc(here, byKey))
	}
	rows = slices.DeleteFunc(rows, func(e storage.Edge) bool { return slices.Contains(ends, e) })
	return append(ends, rows...)
}
