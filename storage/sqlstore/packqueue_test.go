package sqlstore

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore/internal/packed"
)

var followersOf1 = packed.Name{Side: storage.Inverse, Owner: 1}

// askFollowers asks for the packed list of followers of user 1.
func askFollowers(t *testing.T, s *Store) storage.Result[[]storage.UserID] {
	t.Helper()
	r := storage.PackedLookups[storage.Inverse].Read(t.Context(), s, 1)[0]
	must.OK(t, r.Err)
	return r
}

// A list that is long enough is packed once it has been asked for, and its changes are folded in when
// they have become many. A shorter list is left alone.
func TestListsThatAreAskedForArePacked(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		var tried atomic.Bool // reports an attempt to pack the short list
		s := openPacking(t, location, func(_ context.Context, st Statement) {
			if st.Lookup == "pack.follower" && slices.Equal(st.Args, []any{int64(storage.Inverse), int64(2)}) {
				tried.Store(true)
			}
		})
		s.packed.Sizes.From = 20
		followers(t, s, 1, 30)
		followers(t, s, 2, 10)
		owners := []storage.UserID{1, 2, 1}
		r := storage.PackedLookups[storage.Inverse].Read(t.Context(), s, owners...)
		must.That(t, !r[0].Found && !r[1].Found && !r[2].Found, "found before it was packed: %+v", r)
		must.Soon(t, "the list is packed", func() bool { return askFollowers(t, s).Found })
		samePeers(t, s, owners)
		must.Soon(t, "nothing is left to do", s.packed.Idle)
		check.That(t, !isPacked(t, s, storage.Inverse, 2) && !tried.Load(), "the short list was packed, too, or that was tried")

		follow(t, s, 1, 30, 1)
		n := changesOf1(t, s)
		must.That(t, n > s.packed.Sizes.Changes, "%d changes are kept", n)
		samePeers(t, s, owners[:1])
		must.Soon(t, "the changes are in the chunks", func() bool { return changesOf1(t, s) == 0 })
		sameLists(t, s, owners)
	})
}

func changesOf1(t *testing.T, s *Store) (n int) {
	t.Helper()
	const count = "SELECT COUNT(*) FROM packed_change WHERE owner = 1"
	must.OK(t, s.db.Shard(0).Read.QueryRowContext(t.Context(), count).Scan(&n))
	return n
}

// However many callers ask for a list, it is packed once.
func TestAListIsPackedOnceForAll(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		var begun atomic.Int64
		s := openPacking(t, location, func(_ context.Context, st Statement) {
			if strings.Contains(st.Text, "INSERT INTO packed_list") {
				begun.Add(1)
			}
		})
		followers(t, s, 1, 100)
		var asking sync.WaitGroup
		for range 20 {
			asking.Go(func() {
				for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
					r := storage.PackedLookups[storage.Inverse].Read(t.Context(), s, 1)[0]
					if r.Err != nil || r.Found {
						return
					}
				}
			})
		}
		asking.Wait()
		samePeers(t, s, []storage.UserID{1})
		n := begun.Load()
		check.That(t, n == 1 && askFollowers(t, s).Found, "the list was begun %d times, want 1", n)
	})
}

// A list that cannot be packed is left alone for a while. The callback for statements is given the
// error.
func TestAListThatCannotBePackedRests(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		var failed atomic.Int64
		s := openPacking(t, location, func(_ context.Context, st Statement) {
			if st.Err != nil && st.Lookup == "pack.follower" {
				failed.Add(1)
			}
		})
		followers(t, s, 1, 30)
		s.packed.Sizes.Again = time.Hour
		_, err := s.db.Shard(0).Write.ExecContext(t.Context(), "ALTER TABLE packed_list RENAME TO packed_away")
		must.OK(t, err)
		for range 5 {
			must.That(t, !askFollowers(t, s).Found, "found")
			must.Soon(t, "it has failed", s.packed.Idle)
		}
		once := failed.Load()
		must.That(t, once != 0, "nobody heard of it")
		s.packed.Rest(followersOf1, 0) // the hour is over
		askFollowers(t, s)
		must.Soon(t, "it has failed again", s.packed.Idle)
		check.Equal(t, "statements that failed in two tries", failed.Load(), 2*once)
		_, err = s.db.Shard(0).Write.ExecContext(t.Context(), "ALTER TABLE packed_away RENAME TO packed_list")
		must.OK(t, err)
		s.packed.Rest(followersOf1, 0)
		must.Soon(t, "the list is packed", func() bool { return askFollowers(t, s).Found })
	})
}

// Close interrupts packing, and the next store that is opened starts it again at once.
func TestCloseBreaksPackingOff(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		reached := make(chan struct{})
		s := openPacking(t, location, func(ctx context.Context, st Statement) {
			if strings.Contains(st.Text, "INSERT INTO packed_chunk") {
				close(reached) // with the first slice
				<-ctx.Done()
			}
		})
		followers(t, s, 1, 100)
		askFollowers(t, s)
		select {
		case <-reached:
		case <-time.After(30 * time.Second):
			t.Fatal("packing did not begin")
		}
		must.OK(t, s.Close())
		check.That(t, s.packed.Idle(), "something is running still")

		s = openPacking(t, location, nil)
		must.That(t, !askFollowers(t, s).Found, "the list was packed to its end")
		must.Soon(t, "the list is packed", func() bool { return askFollowers(t, s).Found })
		sameLists(t, s, []storage.UserID{1})
	})
}

// Writers need not wait until a list is packed, even if there is only one connection for writes.
func TestOthersWriteWhileAListIsPacked(t *testing.T) {
	onBothEngines(t, func(t *testing.T, location string) {
		var s *Store
		var slices atomic.Int64
		s = openPacking(t, location, func(ctx context.Context, st Statement) {
			if st.Lookup != "pack.follower" || !strings.Contains(st.Text, "LIMIT ?") || !strings.Contains(st.Text, "type = 1") {
				return // a slice has been read
			}
			n := slices.Add(1)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			e := storage.Edge{From: 7, To: storage.UserID(1000 + n), Type: storage.Following, UpdateTime: 5}
			r := s.Apply(ctx, storage.Inverse, []storage.Edge{e}, storage.IfNewer)[0]
			check.That(t, r.Err == nil, "a write behind slice %d: %v", n, r.Err)
		})
		followers(t, s, 1, 100)
		must.Soon(t, "the list is packed", func() bool { return askFollowers(t, s).Found })
		check.Least(t, "slices were read", slices.Load(), 10)
	})
}
