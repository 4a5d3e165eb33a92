package sqlstore_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// What a packed list of a million followers costs and saves, on MariaDB over TCP and on SQLite.
// "log" is what MariaDB has written to its redo log.
//
//	go test ./storage/sqlstore -run '^$' -bench 'Packed$' -benchmem -timeout 30m
//
// And what writes cost that do not touch a packed list, to compare them with the version before:
//
//	go test ./storage/sqlstore -run '^$' -bench Writes -benchtime 3s
func BenchmarkPacked(b *testing.B) {
	eachBenchEngine(b, func(b *testing.B, s *sqlstore.Store, logged func() int64) {
		for name, id := range map[string]func(i int64) storage.UserID{"dense": denseID, "Sonyflake": sonyflakeID} {
			b.Run(name, func(b *testing.B) { benchPacked(b, s, logged, id) })
		}
	})
}

func denseID(i int64) storage.UserID { return storage.UserID(1_000_000 + i*5 + i*2654435761%5) }

// sonyflakeID is the id of a user who was created at a random time within two years, on one of four
// machines.
func sonyflakeID(i int64) storage.UserID {
	const twoYears = 2 * 365 * 24 * 3600 * 100 // in 10 ms
	r := rand.New(rand.NewPCG(uint64(i), 1))
	const apart = twoYears / 2_100_000
	at := i*apart + r.Int64N(apart)
	return storage.UserID(at<<24 | r.Int64N(2)<<16 | r.Int64N(4) + 1)
}

func benchPacked(b *testing.B, s *sqlstore.Store, logged func() int64, id func(int64) storage.UserID) {
	owner := id(2_000_000)
	follower := func(i int64) storage.Edge {
		return storage.Edge{From: id(i), To: owner, Type: storage.Following, UpdateTime: storage.Micros(1.7e15 + rand.Int64N(1e14))}
	}
	var edges []storage.Edge
	for i := range int64(benchFamous) {
		edges = append(edges, follower(i))
	}
	benchApply(b, s, storage.Inverse, edges)
	all := []storage.ListQuery{{Owner: owner, Longest: 2 * benchFamous}}
	read := func(b *testing.B) {
		for b.Loop() {
			benchFound(b, storage.SnapshotLookups[storage.Inverse].Read(b.Context(), s, all...))
		}
	}
	next := int64(benchFamous)
	follow := func(b *testing.B) {
		reportLogged(b, logged, func() (n int) {
			for b.Loop() {
				next++
				n++
				benchFound(b, s.Apply(b.Context(), storage.Inverse, []storage.Edge{follower(next)}, storage.IfNewer))
			}
			return n
		})
	}
	pack := func(b *testing.B) { must.OK(b, s.Pack(b.Context(), storage.Inverse, owner)) }
	once := func(name string, do func(b *testing.B)) {
		took := time.Duration(0)
		b.Run(name, func(b *testing.B) {
			reportLogged(b, logged, func() int {
				if began := time.Now(); took == 0 { // it cannot be done twice
					do(b)
					took = time.Since(began)
				}
				return 1
			})
			b.ReportMetric(float64(took.Milliseconds()), "ms")
			b.ReportMetric(0, "ns/op")
		})
	}
	b.Run("read rows", read)
	b.Run("follow/unpacked", follow)
	once("pack", pack)
	b.Run("read packed", read)
	b.Run("follow/packed", follow)
	edges = edges[:0]
	for range 10_001 { // peers from among the others
		edges = append(edges, storage.Edge{From: id(rand.Int64N(benchFamous)) + 1, To: owner, Type: storage.Following, UpdateTime: 1.8e15})
	}
	benchApply(b, s, storage.Inverse, edges)
	b.Run("read packed and 10,000 changes", read)
	once("fold 10,000 changes", pack)
	b.Run("read packed after that", read)
}

func BenchmarkWrites(b *testing.B) {
	eachBenchEngine(b, func(b *testing.B, s *sqlstore.Store, _ func() int64) {
		users := make([]storage.User, 2000)
		for i := range users {
			users[i] = storage.User{ID: storage.UserID(i + 1), Handle: fmt.Sprintf("user_%d", i), Name: "Somebody"}
		}
		benchFound(b, s.CreateUsers(b.Context(), users))
		next := int64(10_000)
		b.Run("one follow", func(b *testing.B) {
			for b.Loop() {
				next++
				changes := []storage.EdgeChange{{To: storage.UserID(next), Type: storage.Following, At: storage.Micros(1.7e15 + next)}}
				benchFound(b, s.ChangeEdges(b.Context(), storage.Forward, storage.UserID(1+next%2000), changes, storage.ChangeOptions{Inverse: true}))
			}
		})
		b.Run("a batch of 1,000", func(b *testing.B) {
			for b.Loop() {
				edges := make([]storage.Edge, 1000)
				for i := range edges {
					next++
					edges[i] = storage.Edge{From: storage.UserID(next), To: storage.UserID(1 + next%2000), Type: storage.Following, UpdateTime: storage.Micros(1.7e15 + next)}
				}
				benchFound(b, s.Apply(b.Context(), storage.Inverse, edges, storage.IfNewer))
			}
		})
	})
}

// eachBenchEngine runs a benchmark on a new store of each engine. logged returns how much the engine
// has written to its redo log so far. It is nil if that is unknown.
func eachBenchEngine(b *testing.B, run func(b *testing.B, s *sqlstore.Store, logged func() int64)) {
	b.Run("SQLite", func(b *testing.B) { run(b, open(b, sqlite(b, 1)), nil) })
	b.Run("MariaDB", func(b *testing.B) {
		dsn := testenv.SharedMariaDB(b, 1).FreshDatabases(b, 1)[0]
		db, err := sql.Open("mysql", dsn)
		must.OK(b, err)
		defer db.Close()
		run(b, open(b, "mysql:"+dsn), func() (n int64) {
			err := db.QueryRowContext(b.Context(), `
SELECT variable_value
FROM information_schema.global_status
WHERE variable_name = 'INNODB_OS_LOG_WRITTEN'`).Scan(&n)
			must.OK(b, err)
			return n
		})
	})
}

// reportLogged runs a function and reports how much each of its repetitions has written.
func reportLogged(b *testing.B, logged func() int64, run func() (times int)) {
	if logged == nil {
		run()
		return
	}
	before := logged()
	n := run()
	if written := logged() - before; written > 0 {
		b.Logf("%d bytes of log, %d each", written, written/int64(n))
	}
}
