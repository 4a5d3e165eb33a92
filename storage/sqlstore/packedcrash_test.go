package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore/internal/packed"
)

// somePacking is for lists of some thousand edges.
var somePacking = packed.Sizes{From: 10, Chunk: 50, Slice: 300, Changes: 20, Window: 3, Step: 15}

// A connection that is cut in any statement of packing or of folding leaves the list correct, both for
// readers and for the next packer.
func TestPackingMayBeCutOffAnywhere(t *testing.T) {
	testenv.NotOn(t, "the server that the tests run panics if a connection is killed within a transaction", "tidb")
	server := testenv.SharedMariaDB(t, 1)[0]
	dsn := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]
	var statements, cutAt int
	var armed bool
	var cut func()
	s := openSmall(t, "mysql:"+dsn, func(_ context.Context, st Statement) {
		if armed && strings.HasPrefix(st.Lookup, "pack.") {
			if statements++; statements == cutAt {
				cut()
			}
		}
	})
	s.packed.Sizes = packed.Sizes{From: 10, Chunk: 30, Slice: 100, Changes: 20, Window: 3, Step: 15}
	database := dsn[strings.LastIndex(dsn, "/")+1:]
	database, _, _ = strings.Cut(database, "?")
	cut = func() { server.KillConnections(t, database) }
	cuts, failed := 0, 0
	eachStatement := func(prepare func()) {
		for cutAt = 1; ; cutAt++ {
			prepare()
			statements, armed = 0, true
			err := s.Pack(t.Context(), storage.Inverse, 1)
			armed = false
			if err != nil {
				failed++
			}
			if statements < cutAt {
				break
			}
			cuts++
			s.packed.Doubted.Clear()
			sameLists(t, s, []storage.UserID{1})
			mustPack(t, s, storage.Inverse, 1)
			sameLists(t, s, []storage.UserID{1})
			must.That(t, isPacked(t, s, storage.Inverse, 1), "cut off in statement %d, the list cannot be packed any more", cutAt)
		}
	}
	followers(t, s, 1, 150)
	eachStatement(func() { s.packed.Doubted.Store(followersOf1, "to begin anew") })
	t.Logf("%d cuts, %d failures so far", cuts, failed)
	round := 0
	eachStatement(func() {
		round++
		follow(t, s, 1, 30, round)
	})
	t.Logf("%d cuts, %d failures", cuts, failed)
	check.That(t, cuts >= 25 && failed >= 15, "%d statements were cut off, packing failed %d times", cuts, failed)
}

// follow gives an owner more followers, and ends some follows.
func follow(t testing.TB, s *Store, owner storage.UserID, n, round int) {
	t.Helper()
	edges := make([]storage.Edge, n)
	for i := range edges {
		edges[i] = storage.Edge{From: storage.UserID(10 + i*270 + round%2), To: owner, Type: storage.Following, UpdateTime: storage.Micros(1e6 + round)}
		if i%5 == round%5 {
			edges[i].Type = storage.None
		}
	}
	must.All(t, s.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer))
}

// A program that is killed while it packs leaves nothing wrong behind.
func TestPackingProgramIsKilled(t *testing.T) {
	if location := os.Getenv("KITH_TEST_PACK"); location != "" {
		packUntilKilled(t, location)
		return
	}
	onBothEngines(t, func(t *testing.T, location string) {
		s := openSmall(t, location, nil)
		s.packed.Sizes = somePacking
		followers(t, s, 1, 3000)
		packed := 0
		for round := range 8 {
			before := othersConnected(t, s, location)
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPackingProgramIsKilled$")
			child.Env = append(os.Environ(), "KITH_TEST_PACK="+location)
			out, err := child.StdoutPipe()
			must.OK(t, err)
			must.OK(t, child.Start())
			_, err = out.Read(make([]byte, 1))
			must.OK(t, err) // it has begun
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
			child.Process.Kill()
			child.Wait()
			// The server continues with the statements that it has received, and may still commit.
			for slices.ContainsFunc(othersConnected(t, s, location), func(id int64) bool { return !slices.Contains(before, id) }) {
				time.Sleep(time.Millisecond)
			}
			sameLists(t, s, []storage.UserID{1})
			if isPacked(t, s, storage.Inverse, 1) {
				packed++
			}
			if round == 4 {
				mustPack(t, s, storage.Inverse, 1)
			}
		}
		mustPack(t, s, storage.Inverse, 1)
		sameLists(t, s, []storage.UserID{1})
		check.That(t, isPacked(t, s, storage.Inverse, 1), "after all, the list is not packed; %d times it was", packed)
	})
}

// othersConnected lists the other connections to the store's database. SQLite has no such list.
func othersConnected(t *testing.T, s *Store, location string) (ids []int64) {
	if strings.HasPrefix(location, "sqlite:") {
		return nil
	}
	err := s.db.Query(t.Context(), "", 0, 1, `
SELECT id
FROM information_schema.processlist
WHERE db = DATABASE() AND id <> CONNECTION_ID()`, nil, func(rows *sql.Rows) error {
		ids = append(ids, 0)
		return rows.Scan(&ids[len(ids)-1])
	})
	must.OK(t, err)
	return ids
}

// packUntilKilled packs, follows, folds, and starts over.
func packUntilKilled(t *testing.T, location string) {
	s := openSmall(t, location, nil)
	s.packed.Sizes = somePacking
	fmt.Println("begun")
	for i := 0; ; i++ {
		must.OK(t, s.Pack(t.Context(), storage.Inverse, 1))
		follow(t, s, 1, 30, i)
		var edges []storage.Edge
		for range 30 {
			from := storage.UserID(rand.IntN(300_000) + 1)
			edges = append(edges, storage.Edge{From: from, To: 1, Type: storage.EdgeType(rand.IntN(2)), UpdateTime: storage.Micros(2e6 + rand.IntN(1e6))})
		}
		s.Apply(t.Context(), storage.Inverse, edges, storage.IfNewer)
		if i%4 == 3 {
			s.packed.Doubted.Store(followersOf1, errors.New("to begin anew"))
		}
	}
}

// While some goroutines write, others pack, and others read. If two answers are of one version, they are
// the same, whichever way they were read, and at the end nothing is missing.
func TestPackingWhileOthersWrite(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		longOnSQLite(t, location)
		gateways := []*Store{openSmall(t, location, nil), openSmall(t, location, nil)}
		for _, s := range gateways {
			s.packed.Sizes = somePacking
			s.packed.Sizes.Stale = 10_000_000 // otherwise each would take the list over from the other
		}
		s := gateways[0]
		followers(t, s, 1, 2000)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // or until enough has been compared
		began := time.Now()
		defer cancel()
		var running sync.WaitGroup
		each := func(n int, do func(i int, s *Store) error) {
			for i := range n {
				running.Go(func() {
					for ctx.Err() == nil {
						if err := do(i, gateways[i%2]); err != nil && ctx.Err() == nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		var compared int
		var doubted atomic.Int64 // the time of the last doubt, since the beginning
		var writing sync.RWMutex // sometimes held by a reader, so that nothing changes between two answers
		const fewest = 20        // answers that are compared, and rows that each writer writes
		written := make([]map[storage.UserID]storage.Edge, 3)
		var rows [3]atomic.Int64
		enough := func() bool {
			return compared >= fewest && time.Since(began) > 1200*time.Millisecond && // it has been doubted twice
				rows[0].Load() >= fewest && rows[1].Load() >= fewest && rows[2].Load() >= fewest
		}
		each(3, func(i int, s *Store) error { // each writer has peers of its own
			if written[i] == nil {
				written[i] = make(map[storage.UserID]storage.Edge)
			}
			from := storage.UserID(rand.IntN(40_000)*5 + i)
			e := storage.Edge{From: from, To: 1, Type: storage.EdgeType(rand.IntN(3)), UpdateTime: storage.Micros(1e6 + len(written[i])*10 + rand.IntN(10))}
			if from == 1 || from == 0 || written[i][from].UpdateTime >= e.UpdateTime {
				return nil
			}
			written[i][from] = e
			rows[i].Store(int64(len(written[i])))
			time.Sleep(time.Millisecond) // a pace at which packing can finish
			writing.RLock()
			defer writing.RUnlock()
			return s.Apply(t.Context(), storage.Inverse, []storage.Edge{e}, storage.IfNewer)[0].Err
		})
		each(2, func(_ int, s *Store) error {
			// From time to time the list has to be packed again, which takes longer than to find out that another
			// packer is packing it.
			if last := doubted.Load(); time.Since(began) > time.Duration(last)+500*time.Millisecond && doubted.CompareAndSwap(last, int64(time.Since(began))) {
				s.packed.Doubted.Store(followersOf1, "")
			}
			time.Sleep(2 * time.Millisecond) // mostly it finds another at work
			return s.Pack(ctx, storage.Inverse, 1)
		})
		each(1, func(_ int, s *Store) error {
			if rand.IntN(2) == 0 {
				writing.Lock()
				defer writing.Unlock()
			}
			q := storage.ListQuery{Owner: 1, Longest: 1e6}
			p, ok, err := s.packed.List(ctx, storage.Inverse, 0, q)
			if why, _ := s.packed.Doubted.Load(followersOf1); err == nil && !ok {
				err, _ = why.(error)
			}
			if err != nil || !ok {
				return err
			}
			got := p.Edges
			want := listsOfRows(t, s, storage.Inverse, []storage.ListQuery{q})[0]
			if want.Version == p.Version {
				if compared++; enough() {
					cancel()
				}
				want.Edges = slices.DeleteFunc(want.Edges, func(e storage.Edge) bool { return e.Type == storage.None })
				got = slices.DeleteFunc(got, func(e storage.Edge) bool { return e.Type == storage.None })
				if !slices.Equal(got, want.Edges) {
					return fmt.Errorf("at version %d:\n%v\n%v", p.Version, got, want.Edges)
				}
			}
			return nil
		})
		running.Wait()
		for _, s := range gateways {
			s.packed.Doubted.Clear()
			s.packed.Sizes.Stale = 0 // the last packer was interrupted
			mustPack(t, s, storage.Inverse, 1)
		}
		sameLists(t, s, []storage.UserID{1})
		check.That(t, isPacked(t, s, storage.Inverse, 1), "after all, the list is not packed")
		have := make(map[storage.UserID]storage.Edge)
		list := storage.SnapshotLookups[storage.Inverse].Read(t.Context(), s, storage.ListQuery{Owner: 1, Longest: 1e6})[0].Value
		for _, e := range list.Edges {
			have[e.From] = e
		}
		for _, all := range written {
			for from, e := range all {
				must.That(t, e.Type == storage.None || have[from] == e, "user %d has %+v, want %+v", from, have[from], e)
			}
			check.That(t, len(all) >= fewest, "a writer wrote only %d rows", len(all))
		}
		check.That(t, compared != 0, "no two answers were of one version")
		t.Logf("%d answers compared", compared)
	})
}

// A packer that finds a list begun by another packer leaves it alone, until the beginning is so long ago
// that the other packer must have died. If the other one was only slow, it has lost the list by then.
func TestPackingIsLeftToThePackerThatBegan(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		other := openSmall(t, location, nil)
		var begun, wrote bool
		first := openSmall(t, location, func(_ context.Context, st Statement) {
			wrote = wrote || strings.Contains(st.Text, "INSERT INTO packed_chunk")
			if begun || st.Lookup != "pack.follower" || !strings.Contains(st.Text, "type = 1") {
				return // packing has begun once it reads rows
			}
			begun = true
			mustPack(t, other, storage.Inverse, 1)
			must.That(t, !isPacked(t, other, storage.Inverse, 1), "packed by two")
			other.packed.Sizes.Stale = 0
			mustPack(t, other, storage.Inverse, 1)
			must.That(t, isPacked(t, other, storage.Inverse, 1), "not packed again")
		})
		followers(t, first, 1, 30)
		mustPack(t, first, storage.Inverse, 1)
		must.That(t, begun && !wrote, "the first one has begun: %v, and goes on: %v", begun, wrote)
		sameLists(t, other, []storage.UserID{1})
	})
}
