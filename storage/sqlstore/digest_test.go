package sqlstore

import (
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/shard"
)

// Digests are what the same sums in Go are, of the same groups, on every engine.
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
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			checkDigests(t, s)
		})
	}
}

func checkDigests(t *testing.T, s *Store) {
	r := rand.New(rand.NewPCG(3, 4))
	place := shard.NewMap(3)
	var edges []storage.Edge
	want := [2]map[storage.Group]storage.Digest{{}, {}}
	seen := map[storage.Pair]bool{}
	const lowest, highest = 100, 1 << 62 // of the range that is digested
	for range 3000 {
		e := storage.Edge{
			From: storage.UserID(1 + r.Int64N(400)), To: storage.UserID(1 + r.Int64N(400)),
			Type: storage.EdgeType(r.IntN(3)), UpdateTime: storage.Micros(r.Int64N(3) * 1e15),
		}
		if r.IntN(9) == 0 {
			e.From += highest
		}
		if seen[e.Pair()] {
			continue
		}
		seen[e.Pair()] = true
		edges = append(edges, e)
		group := storage.Group{Bucket: shard.BucketOf(e.From), ToShard: place.Of(e.To)}
		a := fmt.Sprintf("%d,%d,%d,%d", e.From, e.To, e.Type, e.UpdateTime)
		b := fmt.Sprintf("%d,%d,%d,%d", e.UpdateTime, e.Type, e.To, e.From)
		d := storage.Digest{Rows: 1, SumA: uint64(crc32.ChecksumIEEE([]byte(a))), SumB: uint64(crc32.ChecksumIEEE([]byte(b)))}
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			owner := side.Owner(e.Pair())
			if owner > lowest && owner <= highest && (e.Type != storage.None || e.UpdateTime != 0) {
				want[side][group] = want[side][group].Plus(d)
			}
		}
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		for _, a := range s.Apply(t.Context(), side, edges, storage.IfNewer) {
			if a.Err != nil {
				t.Fatal(a.Err)
			}
		}
		got := map[storage.Group]storage.Digest{}
		rows := map[storage.Pair]storage.Edge{}
		for i := range s.Shards() {
			digests, err := s.Digests(t.Context(), side, i, storage.OwnerRange{After: lowest, UpTo: highest})
			if err != nil {
				t.Fatal(err)
			}
			wanted := map[storage.Group]bool{}
			for g, d := range digests {
				home := place.Of(firstOf(edges, g, place, side))
				if home != i {
					t.Errorf("%s: group %v is on shard %d, not %d", side, g, i, home)
				}
				got[g] = got[g].Plus(d)
				wanted[g] = true
			}
			err = s.GroupRows(t.Context(), side, i, storage.OwnerRange{After: lowest, UpTo: highest}, wanted, func(e storage.Edge) { rows[e.Pair()] = e })
			if err != nil {
				t.Fatal(err)
			}
		}
		if !maps.Equal(got, want[side]) {
			t.Errorf("%s: digests differ: %d groups, want %d", side, len(got), len(want[side]))
		}
		n := int64(0)
		for _, d := range want[side] {
			n += d.Rows
		}
		for p, e := range rows {
			if e.Type == storage.None && e.UpdateTime == 0 {
				delete(rows, p) // counts as no row
			}
		}
		if int64(len(rows)) != n {
			t.Errorf("%s: %d rows in the groups, want %d", side, len(rows), n)
		}
	}
}

// firstOf is the owner of any edge of a group.
func firstOf(edges []storage.Edge, g storage.Group, place *shard.Map, side storage.Side) storage.UserID {
	for _, e := range edges {
		if shard.BucketOf(e.From) == g.Bucket && place.Of(e.To) == g.ToShard {
			return side.Owner(e.Pair())
		}
	}
	return 0
}
