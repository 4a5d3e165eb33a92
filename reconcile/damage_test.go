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

	"kith/internal/check"
	"kith/internal/must"
	"kith/reconcile"
	"kith/storage"
	"kith/storage/sqlstore"
)

// A graph is a store with random edges, and a way to write without the store.
type graph struct {
	*sqlstore.Store
	t      testing.TB
	files  []*sql.DB
	shards *storage.ShardMap
	r      *rand.Rand
	users  []storage.UserID

	requests int              // how many there are
	posts    []storage.PostID // every third has been deleted
	apart    []storage.UserID // users without edges
}

// newGraph makes a graph of random users, edges of all types and requests in all states. Both sides of
// both pairs of tables agree, and no user follows a user by whom it is blocked.
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

// newGraphOn makes a graph on some databases, which are opened a second time to write without the
// store.
func newGraphOn(t testing.TB, seed uint64, engine string, addresses, dsns []string, users, edges int) *graph {
	t.Helper()
	g := &graph{t: t, shards: storage.NewShardMap(len(dsns)), r: rand.New(rand.NewPCG(seed, 7))}
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Location: engine + ":" + strings.Join(addresses, ";"), StatementTimeout: 30 * time.Second})
	must.OK(t, err)
	g.Store = s
	t.Cleanup(func() { s.Close() })
	for _, dsn := range dsns {
		db, err := sql.Open(engine, dsn)
		must.OK(t, err)
		t.Cleanup(func() { db.Close() })
		g.files = append(g.files, db)
	}
	var all []storage.User
	for i := range users {
		id := storage.UserID(1 + i + g.r.IntN(2)*1_000_000_000_000)
		g.users = append(g.users, id)
		all = append(all, storage.User{ID: id, Handle: fmt.Sprintf("u%d", id)})
	}
	for i := range 60 {
		id := storage.UserID(5_000_000 + i)
		g.apart = append(g.apart, id)
		all = append(all, storage.User{ID: id, Handle: fmt.Sprintf("u%d", id)})
	}
	must.All(t, s.CreateUsers(t.Context(), all))
	seen := make(map[storage.Pair]storage.EdgeType)
	var rows []storage.Edge
	for len(rows) < edges {
		e := storage.Edge{
			From: g.user(), To: g.user(),
			Type: []storage.EdgeType{1, 1, 1, 1, 2, 0}[g.r.IntN(6)], UpdateTime: storage.Micros(1e15 + g.r.Int64N(1e9)),
		}
		if _, again := seen[e.Pair()]; again || e.From == e.To {
			continue
		}
		if back, there := seen[reversed(e.Pair())]; there && e.Type+back == storage.Following+storage.Blocking {
			e.Type = storage.None // one of the two users blocks the other
		}
		seen[e.Pair()] = e.Type
		rows = append(rows, e)
	}
	requests := g.someRequests(rows, seen)
	g.requests = len(requests)
	favorites := g.someFavorites(edges / 4)
	for _, side := range storage.AllSides {
		made := rows
		switch side.Truth() {
		case storage.Requests:
			made = requests
		case storage.Favorites:
			made = favorites
		case storage.Relations:
			made = nil
			for i, e := range rows[:len(rows)/2] {
				e.Item, e.Type = 101+int64(i%2), min(e.Type, storage.Related)
				made = append(made, e)
			}
		}
		g.write(side, made...)
	}
	must.That(t, slices.Equal(g.rows(storage.Forward), slices.SortedFunc(slices.Values(rows), byPair)), "the edges were not written as they are")
	return g
}

// someRequests returns requests from before all edges. For every third of these it adds a request in the
// other direction, if that pair has none itself, so nothing follows from them any more.
func (g *graph) someRequests(rows []storage.Edge, edges map[storage.Pair]storage.EdgeType) (requests []storage.Edge) {
	made := make(map[storage.Pair]bool)
	for i, e := range rows {
		if i%3 > 0 || made[e.Pair()] {
			continue
		}
		p := reversed(e.Pair())
		kind := storage.Pending + storage.EdgeType(g.r.IntN(5))
		if kind == storage.Pending && (e.Type == storage.Blocking || edges[p] == storage.Blocking) {
			kind = storage.Cancelled
		}
		made[p] = true
		requests = append(requests, storage.Edge{From: p.From, To: p.To, Type: kind, UpdateTime: storage.Micros(5e14 + g.r.Int64N(1e9))})
	}
	return requests
}

// write applies edges to one side.
func (g *graph) write(side storage.Side, edges ...storage.Edge) {
	g.t.Helper()
	must.All(g.t, g.Apply(g.t.Context(), side, edges, storage.IfNewer))
}

// writeBoth applies follows and blocks to both sides.
func (g *graph) writeBoth(edges ...storage.Edge) {
	g.t.Helper()
	g.write(storage.Forward, edges...)
	g.write(storage.Inverse, edges...)
}

func reversed(p storage.Pair) storage.Pair { return storage.Pair{From: p.To, To: p.From} }

func byPair(a, b storage.Edge) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Item, b.Item))
}

func (g *graph) user() storage.UserID { return g.users[g.r.IntN(len(g.users))] }

// exec writes without the store, on the shard of a user.
func (g *graph) exec(owner storage.UserID, text string, args ...any) {
	g.t.Helper()
	_, err := g.files[g.shards.Of(owner)].Exec(text, args...)
	must.OK(g.t, err)
}

// put writes the row of an edge without the store.
func (g *graph) put(side storage.Side, e storage.Edge) {
	g.t.Helper()
	if side.HasItem() {
		columns, values := "", ""
		if side == storage.Relations {
			columns, values = ", attributes", ", ''"
		}
		g.exec(side.Owner(e.Pair()), "REPLACE INTO "+side.String()+" (from_user_id, to_user_id, "+side.Item()+", type, update_time"+columns+") VALUES (?, ?, ?, ?, ?"+values+")",
			int64(e.From), int64(e.To), e.Item, int64(e.Type), int64(e.UpdateTime))
		return
	}
	g.exec(side.Owner(e.Pair()), "REPLACE INTO "+side.String()+" (from_user_id, to_user_id, type, update_time) VALUES (?, ?, ?, ?)",
		int64(e.From), int64(e.To), int64(e.Type), int64(e.UpdateTime))
}

func (g *graph) remove(side storage.Side, p storage.Pair) {
	g.t.Helper()
	text, args := "DELETE FROM "+side.String()+" WHERE from_user_id = ? AND to_user_id = ?", []any{int64(p.From), int64(p.To)}
	if side.HasItem() {
		text, args = text+" AND "+side.Item()+" = ?", append(args, p.Item)
	}
	g.exec(side.Owner(p), text, args...)
}

// rows reads all rows of a side without the store, in key order. Tombstones at time 0, which count as
// no rows, are left out.
func (g *graph) rows(side storage.Side) []storage.Edge {
	g.t.Helper()
	var all []storage.Edge
	post := "0"
	if side.HasItem() {
		post = side.Item()
	}
	for _, db := range g.files {
		rows, err := db.Query("SELECT from_user_id, to_user_id, type, update_time, " + post + " FROM " + side.String())
		must.OK(g.t, err)
		for rows.Next() {
			var e storage.Edge
			must.OK(g.t, rows.Scan(&e.From, &e.To, &e.Type, &e.UpdateTime, &e.Item))
			if e.Type != storage.None || e.UpdateTime != 0 {
				all = append(all, e)
			}
		}
		must.OK(g.t, rows.Err())
	}
	slices.SortFunc(all, byPair)
	return all
}

// whole fails the test unless both sides are equal in both pairs of tables, all counts are right, and no
// forbidden follows exist.
func (g *graph) whole() {
	g.t.Helper()
	for _, side := range storage.Truths {
		forward, inverse := g.rows(side), g.rows(side.Replica())
		check.That(g.t, slices.Equal(forward, inverse), "the sides of %s differ: %d rows, %d rows", side, len(forward), len(inverse))
	}
	edges := make(map[storage.Pair]storage.EdgeType)
	for _, e := range g.rows(storage.Forward) {
		edges[e.Pair()] = e.Type
	}
	want := make(map[storage.UserID]storage.Counts)
	for p, kind := range edges {
		if kind != storage.Following {
			continue
		}
		from, to := want[p.From], want[p.To]
		from.Following++
		to.Follower++
		switch edges[reversed(p)] {
		case storage.Following:
			from.Friend++
		case storage.Blocking:
			g.t.Errorf("%d follows %d, who blocks", p.From, p.To)
		}
		want[p.From], want[p.To] = from, to
	}
	g.wantFavorites(want)
	users := slices.Concat(g.users, g.apart)
	for i, c := range storage.CountLookups.Read(g.t.Context(), g, users...) {
		have, should := c.Value, want[users[i]]
		have.Version = 0
		check.That(g.t, c.Err == nil && have == should, "counts of %d: %+v, want %+v", users[i], c, should)
	}
}

// A trace names what is wrong: the kind, and the edge or the count.
type trace struct {
	kind reconcile.Kind
	pair storage.Pair
	side storage.Side
	user storage.UserID
	post int64

	friends bool
}

func tracesOf(found []reconcile.Finding) []trace {
	var all []trace
	for _, f := range found {
		all = append(all, trace{f.Kind, f.Pair(), f.Side, f.User, f.Post, f.Friends})
	}
	return all
}

func compareTraces(a, b trace) int {
	return cmp.Or(strings.Compare(string(a.kind), string(b.kind)), cmp.Compare(a.pair.From, b.pair.From),
		cmp.Compare(a.pair.To, b.pair.To), cmp.Compare(a.side, b.side), cmp.Compare(a.user, b.user),
		cmp.Compare(a.pair.Item, b.pair.Item), cmp.Compare(a.post, b.post), strings.Compare(fmt.Sprint(a.friends), fmt.Sprint(b.friends)))
}

// sameTraces fails the test unless exactly the damage was found, each of it once.
func sameTraces(t testing.TB, found []reconcile.Finding, damaged []trace) {
	t.Helper()
	got := tracesOf(found)
	slices.SortFunc(got, compareTraces)
	want := slices.SortedFunc(slices.Values(damaged), compareTraces)
	for _, g := range got {
		_, known := slices.BinarySearchFunc(want, g, compareTraces)
		check.That(t, known, "found %+v, which is no damage", g)
	}
	for _, w := range want {
		_, known := slices.BinarySearchFunc(got, w, compareTraces)
		check.That(t, known, "did not find %+v", w)
	}
	check.Equal(t, "how much was found", len(got), len(want))
}

// damage does every kind of damage a number of times to the inverse sides and the counts. It damages each
// edge once, including the first and last rows of each shard, and does a little damage between users who
// have no other edges.
func (g *graph) damage(times int) []trace {
	g.t.Helper()
	made := slices.Concat(g.damageRows(storage.Inverse, times), g.damageRows(storage.Inbox, times), g.damageRows(storage.FavoriteInbox, times), g.damageFavoriteCounts(times))
	columns := []string{"following", "follower", "friend"}
	for n := range times {
		user := g.users[(n*13)%len(g.users)]
		column := columns[n%len(columns)]
		g.exec(user, fmt.Sprintf("UPDATE user_counts SET %[1]s_count = %[1]s_count + 100 WHERE user_id = ?", column), int64(user))
		made = append(made, trace{kind: reconcile.WrongCount, side: storage.Side(n % 3 % 2), user: user, friends: column == "friend"})
	}
	return append(made, g.lostBlock(g.apart[0], g.apart[1]), g.lostAcceptance(g.apart[2], g.apart[3]),
		g.forbiddenFollow(g.apart[4], g.apart[5]), g.falseBlock(g.apart[6], g.apart[7]))
}

func (g *graph) damageRows(side storage.Side, times int) []trace {
	g.t.Helper()
	rows := g.rows(side)
	g.r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	rows = g.endsFirst(rows)
	kinds := 3 // of rows; the kinds of requests are 1 to 5
	first := 0
	switch side {
	case storage.Inbox:
		kinds, first = 5, 1
	case storage.FavoriteInbox:
		kinds = 2
	}
	var made []trace
	edge := func(kind reconcile.Kind, p storage.Pair) {
		made = append(made, trace{kind: kind, pair: p, side: side.Truth()})
	}
	taken := make(map[storage.Pair]bool)
	for _, e := range g.rows(side.Truth()) {
		taken[e.Pair()] = true
	}
	next := func() storage.Edge {
		e := rows[0]
		rows = rows[1:]
		return e
	}
	keepCount := func(before, after storage.Edge) {
		switch side {
		case storage.Inverse:
			g.keepCount(before, after)
		case storage.FavoriteInbox:
			g.keepFavorites(before, after)
		}
	}
	for n := range times {
		e := next()
		g.remove(side, e.Pair())
		keepCount(e, storage.Edge{})
		edge(reconcile.Missing, e.Pair())

		e = next()
		flipped := e
		flipped.Type = storage.EdgeType(first + (int(e.Type)-first+1+g.r.IntN(kinds-1))%kinds)
		g.put(side, flipped)
		keepCount(e, flipped)
		edge(reconcile.WrongType, e.Pair())

		e = next()
		e.UpdateTime += storage.Micros(1 + g.r.Int64N(1e12)) // newer
		g.put(side, e)
		edge(reconcile.WrongTime, e.Pair())

		e = next()
		e.UpdateTime -= storage.Micros(1 + g.r.Int64N(1e9)) // older
		g.put(side, e)
		edge(reconcile.WrongTime, e.Pair())

		for { // an additional edge
			e = storage.Edge{From: g.user(), To: g.user(), Type: storage.EdgeType(first + g.r.IntN(kinds)), UpdateTime: 5}
			if post := g.posts[g.r.IntN(len(g.posts))]; side.HasItem() {
				e.To, e.Item = post.Author, post.Number
			}
			if e.From != e.To && !taken[e.Pair()] {
				break
			}
		}
		taken[e.Pair()] = true
		g.put(side, e)
		keepCount(storage.Edge{}, e)
		edge(reconcile.Extra, e.Pair())

		// Two rows of one owner, or of two owners, swap their times, or everything except their keys.
		a, b := next(), next()
		oldA, oldB := a, b
		a.UpdateTime, b.UpdateTime = b.UpdateTime, a.UpdateTime
		kind := reconcile.WrongTime
		if a.Type != b.Type && n%2 == 0 {
			a.Type, b.Type = b.Type, a.Type
			kind = reconcile.WrongType
		}
		g.put(side, a)
		g.put(side, b)
		keepCount(oldA, a)
		keepCount(oldB, b)
		edge(kind, a.Pair())
		edge(kind, b.Pair())
	}
	return made
}

// friends makes two users follow each other.
func (g *graph) friends(one, other storage.UserID) (there, back storage.Edge) {
	g.t.Helper()
	there = storage.Edge{From: one, To: other, Type: storage.Following, UpdateTime: 1e15}
	back = storage.Edge{From: other, To: one, Type: storage.Following, UpdateTime: 2e15}
	g.writeBoth(there, back)
	return there, back
}

// lostBlock makes friends of two users. One blocks the other, whose shard did not get the block. When
// that is repaired, the other's follow has to end.
func (g *graph) lostBlock(one, other storage.UserID) trace {
	g.t.Helper()
	there, _ := g.friends(one, other)
	g.put(storage.Forward, storage.Edge{From: one, To: other, Type: storage.Blocking, UpdateTime: 1.5e15})
	g.exec(one, "UPDATE user_counts SET following_count = following_count - 1, friend_count = friend_count - 1 WHERE user_id = ?", int64(one))
	return trace{kind: reconcile.WrongType, pair: there.Pair()}
}

// lostAcceptance makes one user follow another who has accepted its request. The accepted request lacks its
// replica. When that is repaired, the follow has to exist.
func (g *graph) lostAcceptance(one, other storage.UserID) trace {
	g.t.Helper()
	e := storage.Edge{From: one, To: other, Type: storage.Following, UpdateTime: 1e15}
	g.writeBoth(e)
	e.Type = storage.Accepted
	g.put(storage.Requests, e)
	return trace{kind: reconcile.Missing, pair: e.Pair(), side: storage.Requests}
}

// forbiddenFollow makes one user follow another who blocks it, on both sides.
func (g *graph) forbiddenFollow(one, other storage.UserID) trace {
	g.t.Helper()
	block := storage.Edge{From: other, To: one, Type: storage.Blocking, UpdateTime: 1e15}
	follow := storage.Edge{From: one, To: other, Type: storage.Following, UpdateTime: 2e15}
	g.writeBoth(block)
	g.put(storage.Forward, follow)
	g.put(storage.Inverse, follow)
	g.exec(one, "UPDATE user_counts SET following_count = following_count + 1 WHERE user_id = ?", int64(one))
	g.exec(other, "UPDATE user_counts SET follower_count = follower_count + 1 WHERE user_id = ?", int64(other))
	return trace{kind: reconcile.Forbidden, pair: follow.Pair()}
}

// falseBlock makes friends of two users, and writes a row on the shard of one as if the other blocked
// it. The row forbids nothing, and ends nothing.
func (g *graph) falseBlock(one, other storage.UserID) trace {
	g.t.Helper()
	_, back := g.friends(one, other)
	back.Type = storage.Blocking
	g.put(storage.Inverse, back)
	return trace{kind: reconcile.WrongType, pair: back.Pair()}
}

// keepCount changes every other user's counts to those that a damaged row of follower implies.
func (g *graph) keepCount(before, after storage.Edge) {
	g.t.Helper()
	diff := 0
	if before.Type == storage.Following {
		diff--
	}
	if after.Type == storage.Following {
		diff++
	}
	p := storage.Pair{From: max(before.From, after.From), To: max(before.To, after.To)}
	if diff == 0 || p.To%2 != 0 {
		return
	}
	g.exec(p.To, `UPDATE user_counts SET follower_count = follower_count + ?,
		friend_count = friend_count + ? * (SELECT COUNT(*) FROM following WHERE from_user_id = ? AND to_user_id = ? AND type = 1)
		WHERE user_id = ?`, diff, diff, int64(p.To), int64(p.From), int64(p.To))
}

// endsFirst moves the first and last rows of every shard to the front.
func (g *graph) endsFirst(rows []storage.Edge) []storage.Edge {
	var ends []storage.Edge
	for i := range g.files {
		var here []storage.Edge
		for _, e := range rows {
			if g.shards.Of(e.To) == i {
				here = append(here, e)
			}
		}
		byKey := func(a, b storage.Edge) int {
			return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From), cmp.Compare(a.Item, b.Item))
		}
		ends = append(ends, slices.MinFunc(here, byKey), slices.MaxFunc(here, byKey))
	}
	rows = slices.DeleteFunc(rows, func(e storage.Edge) bool { return slices.Contains(ends, e) })
	return append(ends, rows...)
}
