package exporter

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kith/files/graphfile"
	"kith/files/importer"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

const movedUsers = 80

// onMovingShards runs f for a store of two shards on each engine. In this store each user follows the next two,
// and has marked one of them.
func onMovingShards(t *testing.T, f func(t *testing.T, driver string, s *sqlstore.Store, location func(name string) string)) {
	run := func(t *testing.T, driver string, location func(string) string, first string) {
		s := openStore(t, first)
		var users []storage.User
		for id := storage.UserID(1); id <= movedUsers; id++ {
			users = append(users, storage.User{ID: id, Handle: fmt.Sprintf("user%d", id), Name: "N", CreatedAt: 1, UpdatedAt: 1})
		}
		s.CreateUsers(t.Context(), users)
		for id := storage.UserID(1); id <= movedUsers; id++ {
			for n := range storage.UserID(2) {
				e := storage.Edge{From: id, To: (id+n)%movedUsers + 1, Type: storage.Following, UpdateTime: storage.Micros(100 + id)}
				for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
					must.OK(t, s.Apply(t.Context(), side, []storage.Edge{e}, storage.IfNewer)[0].Err)
				}
			}
			must.OK(t, s.LinkIdentity(t.Context(), storage.Identity{Issuer: "https://id.example.org", Subject: fmt.Sprint("s", id)}, id, 5))
			remark := fmt.Sprint("of ", id)
			_, _, err := s.SetMark(t.Context(), storage.Pair{From: id, To: id%movedUsers + 1}, storage.MarkChange{Remark: &remark})
			must.OK(t, err)
		}
		f(t, driver, s, location)
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		run(t, "sqlite", func(name string) string { return "sqlite:" + filepath.Join(dir, name) },
			"sqlite:"+filepath.Join(dir, "a.db")+";"+filepath.Join(dir, "b.db"))
	})
	t.Run(testenv.Engine(), func(t *testing.T) {
		t.Parallel()
		testenv.NotOn(t, "TiDB spreads itself", "tidb")
		dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 3)
		run(t, "mysql", func(string) string { return "mysql:" + dsns[2] }, "mysql:"+dsns[0]+";"+dsns[1])
	})
}

// moveHalf moves half of the buckets of a shard to the other one.
func moveHalf(t *testing.T, s *sqlstore.Store, from int) {
	t.Helper()
	its := s.ShardsStatus()[from].Buckets
	r := its[len(its)-1]
	plan := sqlstore.Move{Buckets: storage.BucketRange{First: r.First + r.Len()/2, Last: r.Last}, From: from, To: 1 - from}
	_, err := s.Move(context.Background(), plan, sqlstore.MoveConfig{Token: "test", Keep: 10 * time.Millisecond})
	check.That(t, err == nil, "%s: %v", plan, err)
}

// Buckets that move from a shard that has been read to a shard that has not, or the other way, are exported
// once.
func TestBucketsThatMoveAreExportedOnce(t *testing.T) {
	for _, from := range []int{0, 1} {
		t.Run(fmt.Sprint("from shard ", from), func(t *testing.T) {
			onMovingShards(t, func(t *testing.T, driver string, s *sqlstore.Store, location func(string) string) {
				dir, moved := filepath.Join(t.TempDir(), "copy"), false
				report := mustExport(t, s, Config{Dir: dir, Page: 7, OnProgress: func(p Progress) {
					if p.Shard == 1 && !moved {
						moved = true
						moveHalf(t, s, from)
					}
				}})
				for kind, rows := range map[graphfile.Kind]int64{graphfile.Users: movedUsers, "following": 2 * movedUsers, graphfile.Marks: movedUsers} {
					check.Equal(t, fmt.Sprint("rows of ", kind), report.Totals[kind].Rows, rows)
				}
				to := openStore(t, location("to.db"))
				_, err := importer.Run(t.Context(), to, importer.Config{Files: []string{dir}, Strict: true})
				must.OK(t, err)
				for table, text := range peoplesTables {
					want, got := rowsOf(t, driver, s, text), rowsOf(t, driver, to, text)
					check.That(t, slices.Equal(got, want), "%s: %d rows, want %d", table, len(got), len(want))
				}
			})
		})
	}
}

// While buckets move back and forth and others write, each export has every user once, and also the follows
// that nobody changes.
func TestExportsWhileBucketsMove(t *testing.T) {
	onMovingShards(t, func(t *testing.T, _ string, s *sqlstore.Store, _ func(string) string) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{}, 2)
		moves := make(chan int, 100)
		go func() {
			defer func() { done <- struct{}{} }()
			for n := 0; ctx.Err() == nil && n < cap(moves); n++ {
				moveHalf(t, s, n%2)
				moves <- n
			}
		}()
		go func() {
			defer func() { done <- struct{}{} }()
			for n := 0; ctx.Err() == nil; n++ {
				change := storage.EdgeChange{To: storage.UserID(1000 + n%7), Type: []storage.EdgeType{storage.Following, storage.None}[n%2], At: storage.MicrosOf(time.Now())}
				r := s.ChangeEdges(context.Background(), storage.Forward, storage.UserID(1+n%movedUsers), []storage.EdgeChange{change}, storage.ChangeOptions{})[0]
				check.That(t, r.Err == nil, "%v", r.Err)
				time.Sleep(time.Millisecond)
			}
		}()
		for exports := 0; exports < 3 || len(moves) < 2; exports++ {
			dir := t.TempDir()
			report := mustExport(t, s, Config{Dir: dir, Page: 7})
			check.Equal(t, "users", report.Totals[graphfile.Users].Rows, movedUsers)
			check.Equal(t, "marks", report.Totals[graphfile.Marks].Rows, movedUsers)
			check.Least(t, "follows", report.Totals["following"].Rows, 2*movedUsers)
		}
		stop()
		<-done
		<-done
	})
}
