package sqlstore

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sides"
)

// Digests equal the sums that Go computes of the same groups, on every engine.
func TestDigestsAreTheSumsOfTheRows(t *testing.T) {
	for name, location := range map[string]func() string{
		"SQLite": func() string {
			dir := t.TempDir()
			return "sqlite:" + filepath.Join(dir, "a.db") + ";" + filepath.Join(dir, "b.db") + ";" + filepath.Join(dir, "c.db")
		},
		"MariaDB": func() string {
			dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 3)
			return "mysql:" + dsns[0] + ";" + dsns[1] + ";" + dsns[2]
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), Config{Location: location()})
			must.OK(t, err)
			defer s.Close()
			checkDigests(t, s)
			checkWrongCounts(t, s)
		})
	}
}

func checkDigests(t *testing.T, s *Store) {
	r := rand.New(rand.NewPCG(3, 4))
	edges := someEdges(r)
	odd := sides.Choose(sides.Classes, oddNumbers(sides.Classes))
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		must.All(t, s.Apply(t.Context(), side, edges, storage.IfNewer))
		// No API writes such a row.
		unusual := storage.Edge{From: -7, To: -9, Type: 255, UpdateTime: -3}
		if side == storage.Forward {
			unusual.From = 150
		} else {
			unusual.To = 150
		}
		all := append(edges[:len(edges):len(edges)], unusual)
		p := unusual.Pair()
		_, err := s.db.Shard(0).Write.ExecContext(t.Context(), s.sql.Text(sqlInsertEdges[side]), int64(side.Owner(p)), int64(side.Peer(p)), 255, -3)
		must.OK(t, err)
		for _, cut := range []sides.Cut{{Parts: 1}, {Parts: 7}} {
			for _, classes := range []storage.Choice{nil, odd} {
				compareDigests(t, s, side, all, cut, classes)
			}
			compareRows(t, s, side, all, cut)
		}
	}
}

// checkWrongCounts makes one count wrong at a time, of users with edges and of users without, because
// different statements look for these.
func checkWrongCounts(t *testing.T, s *Store) {
	t.Helper()
	const column = "following_count"
	all := sides.OwnerRange{UpTo: 1<<63 - 1}
	for shard := range s.Shards() {
		set := func(id storage.UserID, text string, args ...any) {
			t.Helper()
			_, err := s.db.Shard(shard).Write.ExecContext(t.Context(), text, append(args, int64(id))...)
			must.OK(t, err)
		}
		wrong := func(want ...sides.WrongCount) {
			t.Helper()
			got, err := s.WrongCounts(t.Context(), storage.Forward, shard, all)
			check.That(t, err == nil && slices.Equal(got, want), "shard %d: wrong are %v, %v; want %v", shard, got, err, want)
		}
		wrong()
		var owner storage.UserID
		var n int64
		must.OK(t, s.db.Shard(shard).Read.QueryRowContext(t.Context(), "SELECT user_id, "+column+" FROM user_counts WHERE "+column+" > 1 ORDER BY user_id LIMIT 1").Scan(&owner, &n))
		set(owner, "UPDATE user_counts SET "+column+" = ? WHERE user_id = ?", n+1)
		wrong(sides.WrongCount{User: owner, Have: n + 1, Are: n})
		set(owner, "UPDATE user_counts SET "+column+" = ? WHERE user_id = ?", n)
		wrong()
		const nobody = 1 << 61
		set(nobody, "INSERT INTO user_counts ("+column+", user_id) VALUES (?, ?)", 3)
		wrong(sides.WrongCount{User: nobody, Have: 3, Are: 0})
		set(nobody, "DELETE FROM user_counts WHERE user_id = ?")
		set(owner, "DELETE FROM user_counts WHERE user_id = ?")
		wrong(sides.WrongCount{User: owner, Have: 0, Are: n})
	}
}

// someEdges are edges of few users, except for some with large ids, and many at time 0.
func someEdges(r *rand.Rand) []storage.Edge {
	var edges []storage.Edge
	seen := map[storage.Pair]bool{}
	for range 3000 {
		e := storage.Edge{
			From: storage.UserID(1 + r.Int64N(400)), To: storage.UserID(1 + r.Int64N(400)),
			Type: storage.EdgeType(r.IntN(3)), UpdateTime: storage.Micros(r.Int64N(3) * 1e15),
		}
		switch r.IntN(9) {
		case 0:
			e.From += highest
		case 1:
			e.To += highest
		}
		if !seen[e.Pair()] {
			seen[e.Pair()] = true
			edges = append(edges, e)
		}
	}
	return edges
}

// The bounds of the range whose owners are digested.
const lowest, highest = 100, 1<<63 - 1 - 400 - 200

func inRange(side storage.Side, e storage.Edge) bool {
	owner := side.Owner(e.Pair())
	return owner > lowest && owner <= highest+200
}

func isRow(e storage.Edge) bool { return e.Type != storage.None || e.UpdateTime != 0 }

func oddNumbers(n int) (odd []int) {
	for i := 1; i < n; i += 2 {
		odd = append(odd, i)
	}
	return odd
}

func compareDigests(t *testing.T, s *Store, side storage.Side, edges []storage.Edge, cut sides.Cut, classes storage.Choice) {
	t.Helper()
	want, got := map[int]sides.Digest{}, map[int]sides.Digest{}
	for _, e := range edges {
		g := cut.Group(e.Pair())
		if inRange(side, e) && isRow(e) && (classes == nil || classes.Has(g/cut.Parts)) {
			want[g] = want[g].Plus(sides.Digest{Rows: 1, Mixed: e.Mix()})
		}
	}
	for shard := range s.Shards() {
		digests, err := s.Digests(t.Context(), side, shard, sides.OwnerRange{After: lowest, UpTo: highest + 200}, cut, classes)
		must.OK(t, err)
		for g, d := range digests {
			got[g] = got[g].Plus(d)
		}
	}
	check.That(t, maps.Equal(got, want), "%s, %d parts: digests differ: %d groups, want %d", side, cut.Parts, len(got), len(want))
}

func compareRows(t *testing.T, s *Store, side storage.Side, edges []storage.Edge, cut sides.Cut) {
	t.Helper()
	groups := sides.Choose(cut.Groups(), oddNumbers(cut.Groups()))
	want, got := map[storage.Edge]bool{}, map[storage.Edge]bool{}
	for _, e := range edges {
		if inRange(side, e) && isRow(e) && groups.Has(cut.Group(e.Pair())) {
			want[e] = true
		}
	}
	for shard := range s.Shards() {
		err := s.GroupRows(t.Context(), side, shard, sides.OwnerRange{After: lowest, UpTo: highest + 200}, cut, groups, func(e storage.Edge) {
			if isRow(e) {
				got[e] = true
			}
		})
		must.OK(t, err)
	}
	check.That(t, maps.Equal(got, want), "%s, %d parts: %d rows in the groups, want %d", side, cut.Parts, len(got), len(want))
}
