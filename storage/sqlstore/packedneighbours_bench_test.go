package sqlstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore"
)

// benchFamous is how many followers a famous user has.
const benchFamous = 1_000_000

// Reading all followers of one user from MariaDB over TCP, from rows (as one text, or a row each if the
// text is too long) and from the packed list.
//
//	go test ./storage/sqlstore -run '^$' -bench PackedNeighbours -benchmem -timeout 30m
func BenchmarkPackedNeighbours(b *testing.B) {
	eachBenchEngine(b, func(b *testing.B, s *sqlstore.Store, logged func() int64) {
		if logged == nil {
			b.Skip("MariaDB is what is measured")
		}
		for name, id := range map[string]func(int64) storage.UserID{"dense": denseID, "Sonyflake": sonyflakeID} {
			for i, n := range []int64{30_000, benchFamous} {
				owner := id(2_000_000 + int64(i))
				edges := make([]storage.Edge, n)
				for i := range edges {
					edges[i] = storage.Edge{From: id(int64(i)), To: owner, Type: storage.Following, UpdateTime: storage.Micros(1.7e15 + rand.Int64N(1e14))}
				}
				benchApply(b, s, storage.Inverse, edges)
				must.OK(b, s.Pack(b.Context(), storage.Inverse, owner))
				b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) { benchPackedNeighbours(b, s, owner) })
			}
		}
	})
}

func benchPackedNeighbours(b *testing.B, s *sqlstore.Store, owner storage.UserID) {
	owners := []storage.UserID{owner}
	rows := storage.NeighbourLookups[storage.Inverse].Read(b.Context(), s, owners...)
	packed := storage.PackedLookups[storage.Inverse].Read(b.Context(), s, owners...)
	benchFound(b, packed)
	must.That(b, slices.Equal(rows[0].Value, packed[0].Value), "%d followers packed, %d by rows", len(packed[0].Value), len(rows[0].Value))
	b.Run("rows", func(b *testing.B) {
		for b.Loop() {
			benchFound(b, storage.NeighbourLookups[storage.Inverse].Read(b.Context(), s, owners...))
		}
	})
	b.Run("packed", func(b *testing.B) {
		for b.Loop() {
			benchFound(b, storage.PackedLookups[storage.Inverse].Read(b.Context(), s, owners...))
		}
	})
}

func benchApply(b *testing.B, s *sqlstore.Store, side storage.Side, edges []storage.Edge) {
	for chunk := range slices.Chunk(edges, 20_000) {
		benchFound(b, s.Apply(b.Context(), side, chunk, storage.IfNewer))
	}
}

func benchFound[V any](b *testing.B, results []storage.Result[V]) {
	for i, r := range results {
		must.That(b, r.Err == nil && r.Found, "key %d of %d: %+v", i, len(results), r.Err)
	}
}
