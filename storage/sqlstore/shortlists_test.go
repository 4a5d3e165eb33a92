package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore/internal/packed"
)

// openShorts opens a store that packs short lists from 5 to 50 as they are read.
func openShorts(t *testing.T, location string, onStatement func(context.Context, Statement)) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Location: location, StatementTimeout: time.Minute, OnStatement: onStatement, PackShort: true})
	must.OK(t, err)
	t.Cleanup(func() { s.Close() })
	if s.db.Dialect.ScansSubqueries {
		t.Skip("lists are read row by row")
	}
	s.packed.Sizes.ShortFrom, s.packed.Sizes.ShortTo, s.packed.Sizes.ShortIdle = 5, 50, 0
	return s
}

func readList(t *testing.T, s *Store, owner storage.UserID) []storage.Edge {
	t.Helper()
	r := storage.SnapshotLookups[storage.Inverse].Read(t.Context(), s, storage.ListQuery{Owner: owner, Longest: 1000, EndedSince: storage.MicrosOf(time.Now())})[0]
	must.That(t, r.Err == nil && r.Found, "%+v", r)
	return r.Value.Edges
}

func readNeighbours(t *testing.T, s *Store, owner storage.UserID) []storage.UserID {
	t.Helper()
	r := storage.NeighbourLookups[storage.Inverse].Read(t.Context(), s, owner)[0]
	must.OK(t, r.Err)
	return r.Value
}

func (s *Store) execute(t *testing.T, text string) {
	t.Helper()
	_, err := s.db.Shard(0).Write.ExecContext(t.Context(), text)
	must.That(t, err == nil, "%s: %v", text, err)
}

// ownersPacked lists the owners of the packed lists that exist.
func ownersPacked(t *testing.T, s *Store) (owners []storage.UserID) {
	t.Helper()
	rows, err := s.db.Shard(0).Read.QueryContext(t.Context(), "SELECT owner FROM packed_short ORDER BY owner")
	must.OK(t, err)
	defer rows.Close()
	for rows.Next() {
		var id storage.UserID
		must.OK(t, rows.Scan(&id))
		owners = append(owners, id)
	}
	must.OK(t, rows.Err())
	return owners
}

// A list of some length that has been read is read as one value from then on: rows that are removed behind the
// store's back stay in the answers. A change ends that, and so does anything that raises the version.
func TestShortListsArePackedOnceTheyAreRead(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		s := openShorts(t, location, nil)
		read := map[storage.UserID]func() int{
			1: func() int { return len(readList(t, s, 1)) },
			2: func() int { return len(readNeighbours(t, s, 2)) },
		}
		for owner, read := range read {
			followers(t, s, owner, 20)
			must.Equal(t, fmt.Sprint("followers of ", owner), read(), 20)
		}
		must.Soon(t, "the lists are packed", func() bool { return slices.Equal(ownersPacked(t, s), []storage.UserID{1, 2}) })
		s.execute(t, "DELETE FROM follower WHERE to_user_id IN (1, 2) AND from_user_id > 1000")
		for owner, read := range read {
			check.Equal(t, fmt.Sprint("followers that are read of ", owner), read(), 20)
		}
		for owner := range read {
			follow(t, s, owner, 1, 0)
		}
		for owner, read := range read {
			check.Most(t, fmt.Sprint("followers that are read of ", owner), read(), 12)
		}
	})
}

// Lists that are too short, too long, have just changed or have another length than the counts say are left alone.
func TestListsThatAreNotPackedShort(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		s := openShorts(t, location, nil)
		for owner, n := range map[storage.UserID]int{1: 4, 2: 51, 3: 20, 4: 20, 5: 20} {
			followers(t, s, owner, n)
		}
		fresh := storage.Edge{From: 9, To: 3, Type: storage.Following, UpdateTime: storage.MicrosOf(time.Now())}
		must.OK(t, s.Apply(t.Context(), storage.Inverse, []storage.Edge{fresh}, storage.IfNewer)[0].Err)
		s.execute(t, "UPDATE user_counts SET follower_count = 21 WHERE user_id = 4")
		for owner := range storage.UserID(5) {
			readList(t, s, owner+1)
			readNeighbours(t, s, owner+1)
		}
		must.Soon(t, "the list is packed", func() bool { return len(ownersPacked(t, s)) > 0 })
		must.Soon(t, "nothing is left to do", s.toPack.IsIdle)
		check.Equal(t, "whose lists are packed", ownersPacked(t, s), []storage.UserID{5})
	})
}

// A value that is broken is not believed: the rows are read. It is made again once the owner's version has risen, or if somebody packs it.
func TestBrokenShortListsAreNotBelieved(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		s := openShorts(t, location, nil)
		followers(t, s, 1, 20)
		want := readList(t, s, 1)
		must.Soon(t, "the list is packed", func() bool { return len(ownersPacked(t, s)) == 1 })
		for _, harm := range []string{"data = 'x'", "data = ''"} {
			s.execute(t, "UPDATE packed_short SET "+harm)
			check.Equal(t, harm, readList(t, s, 1), want)
			check.Equal(t, harm, len(readNeighbours(t, s, 1)), 20)
		}
	})
}

// A user who is erased while its list is being packed leaves nothing behind: the lists are stored under the lock that erasing takes.
func TestNothingOfAnErasedUserIsPacked(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		var s *Store
		var erase atomic.Bool
		s = openShorts(t, location, func(ctx context.Context, st Statement) {
			if st.Lookup == packShort && erase.CompareAndSwap(true, false) { // the list has been read and is about to be stored
				ctx := context.WithoutCancel(ctx)
				s.SetState(ctx, 1, storage.Deleting, 30)
				edges := listsOfRows(t, s, storage.Inverse, []storage.ListQuery{{Owner: 1, Longest: 100}})[0].Edges
				for i := range edges {
					edges[i].Type, edges[i].UpdateTime = storage.None, edges[i].UpdateTime+1
				}
				s.Apply(ctx, storage.Inverse, edges, storage.IfNewer)
				err := s.Erase(ctx, 1, 31)
				check.That(t, err == nil, "%v", err)
			}
		})
		must.OK(t, s.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "ada", Name: "Ada", CreatedAt: 1, UpdatedAt: 1}})[0].Err)
		followers(t, s, 1, 20)
		erase.Store(true)
		s.packShorts(t.Context(), []packed.Name{followersOf1})
		must.That(t, !erase.Load(), "the user was not erased")
		check.Equal(t, "lists that are packed", len(ownersPacked(t, s)), 0)
	})
}

// If lists cannot be stored, they are read from their rows, and left alone for a while.
func TestShortListsThatCannotBeStoredRest(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		var failed atomic.Int64
		s := openShorts(t, location, func(_ context.Context, st Statement) {
			if st.Err != nil && st.Lookup == packShort {
				failed.Add(1)
			}
		})
		s.packed.Sizes.Again = time.Hour
		followers(t, s, 1, 20)
		s.packShorts(t.Context(), []packed.Name{followersOf1})
		s.execute(t, "DELETE FROM packed_short")
		if strings.HasPrefix(location, "sqlite:") {
			s.execute(t, "CREATE TRIGGER refuse BEFORE INSERT ON packed_short BEGIN SELECT RAISE(ABORT, 'refused'); END")
		} else {
			s.execute(t, "CREATE TRIGGER refuse BEFORE INSERT ON packed_short FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'")
		}
		for range 5 {
			must.Equal(t, "followers", len(readList(t, s, 1)), 20)
			must.Soon(t, "it has failed", s.toPack.IsIdle)
		}
		n := failed.Load()
		check.That(t, n != 0 && n <= 8, "%d statements have failed", n)
	})
}
