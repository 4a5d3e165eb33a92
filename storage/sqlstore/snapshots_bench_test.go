package sqlstore_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// How long it takes to read the keys that a cache misses, on MariaDB over TCP, with 20,000 users on one
// shard.
//
//	go test ./storage/sqlstore -run '^$' -bench 'Profiles|Lists' -benchmem

const (
	benchUsers  = 20_000
	benchList   = 100       // follows of each of the first tenth of the users
	benchFamous = 1_000_000 // followers of famous
	famous      = storage.UserID(benchUsers)
)

func BenchmarkProfiles(b *testing.B) {
	s := benchStore(b)
	for _, n := range []int{1, 20, 100} {
		b.Run(fmt.Sprintf("users and counts/%d", n), func(b *testing.B) {
			for b.Loop() {
				ids := someUsers(n, benchUsers)
				benchFound(b, storage.UserLookups.Read(b.Context(), s, ids...))
				benchFound(b, storage.CountLookups.Read(b.Context(), s, ids...))
			}
		})
		b.Run(fmt.Sprintf("profiles/%d", n), func(b *testing.B) {
			for b.Loop() {
				benchFound(b, storage.ProfileLookups.Read(b.Context(), s, someUsers(n, benchUsers)...))
			}
		})
	}
}

func BenchmarkLists(b *testing.B) {
	s := benchStore(b)
	var edges []storage.Edge
	for owner := storage.UserID(1); owner <= benchUsers/10; owner++ {
		for range benchList {
			edges = append(edges, storage.Edge{From: owner, To: storage.UserID(1e17 + rand.Int64N(1e15)), Type: storage.Following, UpdateTime: storage.Micros(1.7e15 + rand.Int64N(1e12))})
		}
	}
	benchApply(b, s, storage.Forward, edges)
	edges = edges[:0]
	for i := range int64(benchFamous) {
		edges = append(edges, storage.Edge{From: storage.UserID(1e17 + i*997), To: famous, Type: storage.Following, UpdateTime: storage.Micros(1.7e15 + rand.Int64N(1e12))})
	}
	benchApply(b, s, storage.Inverse, edges)

	for _, n := range []int{1, 20, 100} {
		b.Run(fmt.Sprintf("neighbours/%d of %d", n, benchList), func(b *testing.B) {
			for b.Loop() {
				benchFound(b, storage.NeighbourLookups[storage.Forward].Read(b.Context(), s, someUsers(n, benchUsers/10)...))
			}
		})
		b.Run(fmt.Sprintf("lists/%d of %d", n, benchList), func(b *testing.B) {
			for b.Loop() {
				var queries []storage.ListQuery
				for _, id := range someUsers(n, benchUsers/10) {
					queries = append(queries, storage.ListQuery{Owner: id, Longest: benchList})
				}
				benchFound(b, storage.SnapshotLookups[storage.Forward].Read(b.Context(), s, queries...))
			}
		})
	}
	all := []storage.ListQuery{{Owner: famous, Longest: benchFamous}}
	b.Run("neighbours/1 of a million", func(b *testing.B) {
		for b.Loop() {
			benchFound(b, storage.NeighbourLookups[storage.Inverse].Read(b.Context(), s, famous))
		}
	})
	b.Run("lists/1 of a million", func(b *testing.B) {
		for b.Loop() {
			r := storage.SnapshotLookups[storage.Inverse].Read(b.Context(), s, all...)
			benchFound(b, r)
			if len(r[0].Value.Edges) != benchFamous {
				b.Fatalf("%d edges", len(r[0].Value.Edges))
			}
		}
	})
	all[0].Longest--
	b.Run("lists/1 too long", func(b *testing.B) {
		for b.Loop() {
			benchFound(b, storage.SnapshotLookups[storage.Inverse].Read(b.Context(), s, all...))
		}
	})
}

func benchStore(b *testing.B) *sqlstore.Store {
	s := open(b, mysql(testenv.SharedMariaDB(b, 1).FreshDatabases(b, 1)))
	users := make([]storage.User, benchUsers)
	for i := range users {
		users[i] = storage.User{
			ID: storage.UserID(i + 1), Handle: fmt.Sprintf("user_%d", i), Name: "Somebody Somewhere",
			Bio: "Writes about this and that, and mostly about ducks.", AvatarURL: "https://example.org/avatars/1234567.png",
		}
	}
	benchFound(b, s.CreateUsers(b.Context(), users))
	return s
}

func benchApply(b *testing.B, s *sqlstore.Store, side storage.Side, edges []storage.Edge) {
	for chunk := range slices.Chunk(edges, 20_000) {
		benchFound(b, s.Apply(b.Context(), side, chunk, storage.IfNewer))
	}
}

// someUsers draws n of the first `among` users, none twice.
func someUsers(n, among int) []storage.UserID {
	first := rand.IntN(among)
	ids := make([]storage.UserID, n)
	for i := range ids {
		ids[i] = storage.UserID((first+i*7)%among + 1)
	}
	return ids
}

func benchFound[V any](b *testing.B, results []storage.Result[V]) {
	for i, r := range results {
		if r.Err != nil || !r.Found {
			b.Fatalf("key %d of %d: %+v", i, len(results), r.Err)
		}
	}
}
