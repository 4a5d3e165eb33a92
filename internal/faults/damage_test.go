package faults_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/reconcile"
	"kith/storage"
)

// A trace names what is wrong: the kind of damage, and the edge or the count.
type trace struct {
	kind reconcile.Kind
	pair storage.Pair
	side storage.Side
	user storage.UserID
}

func (d trace) String() string {
	if d.kind == reconcile.WrongCount {
		return fmt.Sprintf("%s of user %d in %s", d.kind, d.user, d.side)
	}
	return fmt.Sprintf("%s %d → %d", d.kind, d.pair.From, d.pair.To)
}

// exactly fails the test unless all damage was found, each once, and nothing else.
func exactly(t testing.TB, when string, r reconcile.Report, damaged []trace) {
	t.Helper()
	found := make(map[trace]int)
	for _, f := range r.Findings {
		found[trace{f.Kind, f.Pair(), f.Side, f.User}]++
	}
	for _, d := range damaged {
		check.Equal(t, fmt.Sprintf("%s: how often %s was found", when, d), found[d], 1)
		delete(found, d)
	}
	for d, n := range found {
		t.Errorf("%s: %s was found %d times, and is no damage", when, d, n)
	}
	check.That(t, r.Total() == len(damaged) && r.Unsettled == 0, "%s: found %d of %d, %d unsettled", when, r.Total(), len(damaged), r.Unsettled)
}

// vandal damages rows of a graph, each edge once.
type vandal struct {
	*graph
	t      testing.TB
	r      *rand.Rand
	side   storage.Side // of rows
	rows   []storage.Edge
	taken  map[storage.Pair]bool
	counts map[trace]bool
	made   []trace
}

func (g *graph) vandal(t testing.TB, seed uint64, side storage.Side) *vandal {
	return &vandal{
		graph: g, t: t, r: rand.New(rand.NewPCG(seed, 4)), side: side, rows: ofData(g.rows(t, side)),
		taken: map[storage.Pair]bool{}, counts: map[trace]bool{},
	}
}

// damageInverse damages the inverse side and the counts n times. It begins with the first and last
// rows and users of each shard.
func (v *vandal) damageInverse(n int) []trace {
	v.t.Helper()
	ends, users := v.ends()
	for i, e := range ends {
		v.taken[e.Pair()] = true
		v.one(i, e)
	}
	for i, id := range users {
		v.count(storage.Side(i%2), id)
	}
	for i := 0; len(v.made) < n; i++ {
		switch i % 8 {
		case 5:
			v.add()
		case 6:
			v.two(i / 8)
		case 7:
			v.count(storage.Side(v.r.IntN(2)), v.users[v.r.IntN(len(v.users))])
		default:
			v.one(i%8, v.next())
		}
	}
	return v.made
}

// one damages one row in one of several ways.
func (v *vandal) one(way int, e storage.Edge) {
	v.t.Helper()
	d := e
	kind := reconcile.WrongTime
	switch way % 5 {
	case 0:
		kind, d.Type, d.UpdateTime = reconcile.Missing, storage.None, 0
	case 1:
		kind, d.Type = reconcile.WrongType, storage.Blocking
	case 2:
		d.UpdateTime += storage.Micros(1 + v.r.Int64N(1e12)) // newer, possibly in the future
	case 3:
		d.UpdateTime -= storage.Micros(1 + v.r.Int64N(1e12)) // older
	case 4:
		kind, d.Type = reconcile.WrongType, storage.None
	}
	v.write(kind, e, d)
}

// add makes an edge that does not exist.
func (v *vandal) add() {
	v.t.Helper()
	for {
		e := storage.Edge{
			From: v.users[v.r.IntN(len(v.users))], To: v.users[v.r.IntN(len(v.users))],
			Type: storage.EdgeType(v.r.IntN(3)), UpdateTime: storage.Micros(1 + v.r.Int64N(2e15)),
		}
		if e.From == e.To || v.taken[e.Pair()] || storage.EdgeLookups[storage.Forward].Read(v.t.Context(), v, e.Pair())[0].Found {
			continue
		}
		v.taken[e.Pair()] = true
		v.write(reconcile.Extra, storage.Edge{From: e.From, To: e.To}, e)
		return
	}
}

// two damages two rows of one group so that sums or exclusive ors of simple checksums do not
// change: the rows swap their times, or get the same bits flipped.
func (v *vandal) two(way int) {
	v.t.Helper()
	for {
		a := v.next()
		for _, b := range v.rows {
			if a.From != b.From || v.taken[b.Pair()] || v.shardMap.Of(a.To) != v.shardMap.Of(b.To) || a.UpdateTime == b.UpdateTime {
				continue
			}
			v.taken[b.Pair()] = true
			kind, c, d := reconcile.WrongTime, a, b
			if c.UpdateTime, d.UpdateTime = b.UpdateTime, a.UpdateTime; way%2 == 1 {
				kind, c, d = reconcile.WrongType, a, b
				c.Type, d.Type = storage.Blocking, storage.Blocking
			}
			v.write(kind, a, c)
			v.write(kind, b, d)
			return
		}
	}
}

// count makes a count wrong.
func (v *vandal) count(side storage.Side, id storage.UserID) {
	v.t.Helper()
	d := trace{kind: reconcile.WrongCount, side: side, user: id}
	if v.counts[d] {
		return
	}
	v.counts[d] = true
	by := 100 + v.r.IntN(900)
	if v.r.IntN(2) == 0 {
		by = -by
	}
	v.exec(v.t, id, fmt.Sprintf("UPDATE user_counts SET %[1]s_count = %[1]s_count + ? WHERE user_id = ?", side), by, int64(id))
	v.made = append(v.made, d)
}

// write puts a damaged row into the inverse side. For every second user it also changes the count,
// because that must not make a difference.
func (v *vandal) write(kind reconcile.Kind, old, row storage.Edge) {
	v.t.Helper()
	v.put(v.t, storage.Inverse, row)
	v.made = append(v.made, trace{kind: kind, pair: row.Pair()})
	by := 0
	if old.Type == storage.Following {
		by--
	}
	if row.Type == storage.Following {
		by++
	}
	if by != 0 && row.To%2 == 0 {
		v.exec(v.t, row.To, "UPDATE user_counts SET follower_count = follower_count + ? WHERE user_id = ?", by, int64(row.To))
	}
}

// next draws a row that is not damaged.
func (v *vandal) next() storage.Edge {
	for {
		e := v.rows[v.r.IntN(len(v.rows))]
		if !v.taken[e.Pair()] {
			v.taken[e.Pair()] = true
			return e
		}
	}
}

// ends returns the first and last rows of each shard, in the order of its key, and the first and last users.
func (v *vandal) ends() (rows []storage.Edge, users []storage.UserID) {
	for i := range v.past {
		var first, last storage.Edge
		key := func(e storage.Edge) [2]storage.UserID {
			return [2]storage.UserID{v.side.Owner(e.Pair()), v.side.Peer(e.Pair())}
		}
		less := func(a, b storage.Edge) bool {
			x, y := key(a), key(b)
			return slices.Compare(x[:], y[:]) < 0
		}
		for _, e := range v.rows {
			if v.shardMap.Of(v.side.Owner(e.Pair())) != i {
				continue
			}
			if first == (storage.Edge{}) || less(e, first) {
				first = e
			}
			if less(last, e) {
				last = e
			}
		}
		rows = append(rows, first, last)
		here := slices.DeleteFunc(slices.Clone(v.users), func(id storage.UserID) bool { return v.shardMap.Of(id) != i })
		users = append(users, here[0], here[len(here)-1])
	}
	return rows, users
}

// damageForward damages n rows of the forward side.
func (v *vandal) damageForward(n int) {
	v.t.Helper()
	for i := range n {
		e := v.next()
		switch i % 4 {
		case 0:
			e.Type, e.UpdateTime = storage.None, 0
		case 1:
			e.Type = storage.Blocking
		case 2:
			e.UpdateTime += 1e12
		case 3:
			e.UpdateTime -= 1e9
		}
		v.put(v.t, storage.Forward, e)
	}
}

// allowed returns the rows that are not tombstones, except follows that a block in the other
// direction forbids, because those end.
func allowed(rows []storage.Edge) []storage.Edge {
	blocks := map[storage.Pair]bool{}
	for _, e := range rows {
		if e.Type == storage.Blocking {
			blocks[storage.Pair{From: e.To, To: e.From}] = true
		}
	}
	return slices.DeleteFunc(rows, func(e storage.Edge) bool {
		return e.Type == storage.None || e.Type == storage.Following && blocks[e.Pair()]
	})
}
