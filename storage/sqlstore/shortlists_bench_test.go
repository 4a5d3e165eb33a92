package sqlstore

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore/internal/packed"
)

// BenchmarkShortLists reads 2 and 40 lists of 64 from their rows, and then as they are packed: their ids alone, as gateways without a
// cache do, and with types and times, as caches do. "pack" packs 64 of them.
func BenchmarkShortLists(b *testing.B) {
	for engine, location := range map[string]string{
		"SQLite":  "sqlite:" + filepath.Join(b.TempDir(), "kith.db"),
		"MariaDB": "mysql:" + testenv.SharedMariaDB(b, 1).FreshDatabases(b, 1)[0],
	} {
		s, err := Open(b.Context(), Config{Location: location, StatementTimeout: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		const owners, length = 2000, 64
		var edges []storage.Edge
		for owner := range storage.UserID(owners) {
			for i := range storage.UserID(length) {
				edges = append(edges, storage.Edge{
					From: owner + 1, To: 1 + i*1000 + rand.N[storage.UserID](1000), Type: storage.Following, UpdateTime: 1_700_000_000_000_000 + rand.N[storage.Micros](1e13),
				})
			}
		}
		for at := 0; at < len(edges); at += 10_000 {
			s.Apply(b.Context(), storage.Forward, edges[at:min(at+10_000, len(edges))], storage.IfNewer)
		}
		read := func(b *testing.B, lists int, whole bool) {
			since := storage.MicrosOf(time.Now())
			ids, queries := make([]storage.UserID, lists), make([]storage.ListQuery, lists)
			for b.Loop() {
				for i := range ids {
					ids[i] = 1 + rand.N[storage.UserID](owners)
					queries[i] = storage.ListQuery{Owner: ids[i], Longest: 1000, EndedSince: since}
				}
				n := 0
				if whole {
					n = len(storage.SnapshotLookups[storage.Forward].Read(b.Context(), s, queries...)[0].Value.Edges)
				} else {
					n = len(storage.NeighbourLookups[storage.Forward].Read(b.Context(), s, ids...)[0].Value)
				}
				if n != length {
					b.Fatalf("a list of %d", n)
				}
			}
		}
		readAll := func(form string) {
			for _, lists := range []int{2, 40} {
				b.Run(fmt.Sprintf("%s/ids of %d lists/%s", engine, lists, form), func(b *testing.B) { read(b, lists, false) })
				b.Run(fmt.Sprintf("%s/edges of %d lists/%s", engine, lists, form), func(b *testing.B) { read(b, lists, true) })
			}
		}
		readAll("rows")
		names := make([]packed.Name, owners)
		for i := range names {
			names[i] = packed.Name{Side: storage.Forward, Owner: storage.UserID(i + 1)}
		}
		began := time.Now()
		for at := 0; at < owners; at += shortsAtOnce {
			if left := s.packShorts(b.Context(), names[at:min(at+shortsAtOnce, owners)]); len(left) > 0 {
				b.Fatalf("%d lists were not packed", len(left))
			}
		}
		b.Logf("%s: packing takes %s a list", engine, time.Since(began)/owners)
		readAll("packed")
	}
}
