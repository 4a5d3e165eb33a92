package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

const viral = storage.UserID(1)

// storesWithUsers runs a test on stores of one shard with users 1 … n.
func storesWithUsers(t *testing.T, n int, test func(*testing.T, *sqlstore.Store)) {
	t.Run("SQLite", func(t *testing.T) { test(t, peopled(t, sqlite(t, 1), n)) })
	t.Run("MariaDB", func(t *testing.T) { test(t, peopled(t, mysql(testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)), n)) })
}

func peopled(t *testing.T, location string, n int) *sqlstore.Store {
	t.Helper()
	store := open(t, location)
	people(t, store, n)
	return store
}

// people makes users 1 … n.
func people(t *testing.T, store *sqlstore.Store, n int) {
	t.Helper()
	users := make([]storage.User, n)
	for i := range users {
		id := storage.UserID(i + 1)
		users[i] = storage.User{ID: id, Handle: "u" + id.String(), Name: "u", CreatedAt: 1, UpdatedAt: 1}
	}
	must.All(t, store.CreateUsers(t.Context(), users))
}

func changeEdge(ctx context.Context, store *sqlstore.Store, from, to storage.UserID, kind storage.EdgeType, most int64) storage.Result[storage.Changed] {
	change := storage.EdgeChange{To: to, Type: kind, At: storage.MicrosOf(time.Now())}
	return store.ChangeEdges(ctx, storage.Forward, from, []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: true, MaxFollowing: most})[0]
}

func mustCount(t *testing.T, store *sqlstore.Store, id storage.UserID) storage.Counts {
	t.Helper()
	r := storage.CountLookups.Read(t.Context(), store, id)[0]
	must.OK(t, r.Err)
	return r.Value
}

// Followers who come while another follower is being written are written together, and each gets
// the outcome of its own follow.
func TestFollowersOfOneUserAreWrittenTogether(t *testing.T) {
	storesWithUsers(t, 60, func(t *testing.T, store *sqlstore.Store) {
		const blocked, full, leaving, nobody, friend = 41, 42, 43, 999, 44
		for _, first := range []struct {
			from, to storage.UserID
			kind     storage.EdgeType
		}{
			{viral, blocked, storage.Blocking}, {full, 50, storage.Following}, {full, 51, storage.Following},
			{leaving, viral, storage.Following}, {viral, friend, storage.Following},
		} {
			must.OK(t, changeEdge(t.Context(), store, first.from, first.to, first.kind, 0).Err)
		}
		before := mustCount(t, store, viral)
		release, err := store.HoldWrites(t.Context())
		must.OK(t, err)
		var writing sync.WaitGroup
		results := make(map[storage.UserID]storage.Result[storage.Changed])
		var mu sync.Mutex
		begin := func(from storage.UserID, kind storage.EdgeType) {
			writing.Go(func() {
				r := changeEdge(context.Background(), store, from, viral, kind, 2)
				mu.Lock()
				defer mu.Unlock()
				results[from] = r
			})
		}
		waiting := func(n int) func() bool { return func() bool { return store.Waiting() == n } }
		const ordinary = 30
		for from := storage.UserID(2); from < 2+ordinary; from++ {
			begin(from, storage.Following)
		}
		must.Soon(t, "all but the first wait", waiting(ordinary-1))
		for from, kind := range map[storage.UserID]storage.EdgeType{
			blocked: storage.Following, full: storage.Following, leaving: storage.None, nobody: storage.Following, friend: storage.Following,
		} {
			begin(from, kind)
		}
		must.Soon(t, "all others wait", waiting(ordinary+4))
		release()
		writing.Wait()

		for from := storage.UserID(2); from < 2+ordinary; from++ {
			r := results[from]
			check.That(t, r.Err == nil && r.Value.Changed && r.Value.Inverse && r.Value.Row.From == from, "the follow of %d: %+v", from, r)
		}
		for from, want := range map[storage.UserID]error{
			blocked: storage.ErrForbidden, full: storage.ErrLimitReached, leaving: nil, nobody: storage.ErrUserUnknown, friend: nil,
		} {
			r := results[from]
			check.That(t, errors.Is(r.Err, want) && r.Value.Changed == (want == nil), "the change of %d: %+v, want %v", from, r, want)
		}
		after := mustCount(t, store, viral)
		want := before.Follower + ordinary + 1 - 1
		check.That(t, after.Follower == want && after.Friend == 1, "%+v, want %d followers and 1 friend", after, want)
		check.Equal(t, "transactions, that of the first and that of all others", after.Version-before.Version, 2)
		for from, want := range map[storage.UserID]storage.Counts{2: {Following: 1}, full: {Following: 2}, leaving: {}, friend: {Following: 1, Follower: 1, Friend: 1}} {
			if got := mustCount(t, store, from); got.Following != want.Following || got.Follower != want.Follower || got.Friend != want.Friend {
				t.Errorf("the counts of %d are %+v, want %+v", from, got, want)
			}
		}
		followers := storage.NeighbourLookups[storage.Inverse].Read(t.Context(), store, viral)[0]
		check.That(t, int64(len(followers.Value)) == after.Follower, "%d rows of followers, %d counted", len(followers.Value), after.Follower)
	})
}

// Edges of followers that are applied one by one, as gateways do in the mode sync, are written
// together as well.
func TestFollowersOfOneUserAreAppliedTogether(t *testing.T) {
	storesWithUsers(t, 40, func(t *testing.T, store *sqlstore.Store) {
		before := mustCount(t, store, viral)
		release, err := store.HoldWrites(t.Context())
		must.OK(t, err)
		const followers = 30
		errs := make(chan error, followers)
		for i := range followers {
			go func() {
				e := storage.Edge{From: storage.UserID(2 + i), To: viral, Type: storage.Following, UpdateTime: storage.Micros(100 + i)}
				r := store.Apply(context.Background(), storage.Inverse, []storage.Edge{e}, storage.IfNewer)[0]
				if r.Err == nil && (r.Value.Row != e || !r.Value.Changed) {
					r.Err = fmt.Errorf("%+v became %+v", e, r.Value)
				}
				errs <- r.Err
			}()
		}
		must.Soon(t, "all but the first wait", func() bool { return store.Waiting() == followers-1 })
		release()
		for range followers {
			err := <-errs
			check.That(t, err == nil, "%v", err)
		}
		after := mustCount(t, store, viral)
		if after.Follower != followers || after.Version-before.Version != 2 {
			t.Errorf("%d followers in %d transactions, want %d in 2", after.Follower, after.Version-before.Version, followers)
		}
	})
}

// Follows, marks and profiles that come while transactions are under way share one, and those that are refused leave the
// others alone.
func TestSmallWritesShareATransaction(t *testing.T) {
	for name, location := range map[string]string{"SQLite": sqlite(t, 1), "MariaDB": mysql(testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1))} {
		t.Run(name, func(t *testing.T) {
			groups := map[string]int{"SQLite": 1, "MariaDB": 3}[name] // at once
			var transactions atomic.Int64
			store := opened.Store(t, sqlstore.Config{
				Location: location, StatementTimeout: generous, OnStatement: func(_ context.Context, st sqlstore.Statement) {
					if st.Lookup != "buckets" && strings.Contains(st.Text, "FROM kith_epoch") {
						transactions.Add(1)
					}
				},
			})
			people(t, store, 40)
			const star, stranger, nobody = 30, 39, 999
			for from := storage.UserID(2); from < 12; from++ {
				must.OK(t, changeEdge(t.Context(), store, from, star, storage.Following, 0).Err)
			}
			release, err := store.HoldWrites(t.Context())
			must.OK(t, err)
			var writing sync.WaitGroup
			begin := func(what string, want error, write func() error) {
				writing.Go(func() { check.Is(t, what, write(), want) })
			}
			follow := func(from storage.UserID, want error) {
				begin("a follow", want, func() error { return changeEdge(t.Context(), store, from, from+1, storage.Following, 0).Err })
			}
			mark := func(from storage.UserID, want error) {
				begin("a mark", want, func() error {
					got, changed, err := store.SetMark(t.Context(), storage.Pair{From: from, To: star}, storage.MarkChange{Remark: new("m" + from.String())})
					if err == nil && (!changed || got.Remark != "m"+from.String()) {
						err = fmt.Errorf("%+v, %t", got, changed)
					}
					return err
				})
			}
			rename := func(id storage.UserID, want error) {
				begin("a name", want, func() error {
					got, _, err := store.UpdateProfile(t.Context(), id, storage.ProfileChange{Name: new("n" + id.String())}, 5)
					if err == nil && (got.ID != id || got.Name != "n"+id.String() || got.UpdatedAt != 5) {
						err = fmt.Errorf("%+v", got)
					}
					return err
				})
			}
			follow(20, nil)
			for n := 1; ; n++ {
				must.Soon(t, "one more is served", func() bool { return store.Serving() == n })
				if n == groups {
					break
				}
				rename(storage.UserID(20+2*n), nil)
			}
			before := transactions.Load()
			for from := storage.UserID(2); from < 12; from++ {
				mark(from, nil)
				rename(from, nil)
			}
			mark(stranger, storage.ErrNoEdge)
			rename(nobody, storage.ErrUserUnknown)
			follow(nobody, storage.ErrUserUnknown)
			must.Soon(t, "all others wait", func() bool { return store.Waiting() == 23 })
			release()
			writing.Wait()

			// Those that were served, and groups of the others as each of them ends.
			check.Most(t, "transactions for 23 writes", transactions.Load()-before, int64(2*groups))
			for from := storage.UserID(2); from < 12; from++ {
				marks := storage.MarkLookups.Read(t.Context(), store, storage.Pair{From: from, To: star})[0]
				users := storage.UserLookups.Read(t.Context(), store, from)[0]
				check.That(t, marks.Value.Remark == "m"+from.String() && users.Value.Name == "n"+from.String(), "user %d has %+v and %+v", from, marks, users)
			}
			r := storage.EdgeLookups[storage.Forward].Read(t.Context(), store, storage.Pair{From: 20, To: 21})[0]
			check.That(t, r.Value.Type == storage.Following, "the first follow: %+v", r)
		})
	}
}

// However many writes wait for the row of one account, other writes continue: the account uses
// at most one connection for writes.
func TestOthersDoNotWaitForACelebrity(t *testing.T) {
	server := testenv.SharedMariaDB(t, 1)
	dsns := server.FreshDatabases(t, 1)
	store := peopled(t, mysql(dsns), 60)
	for name, write := range map[string]func(context.Context, storage.UserID) error{
		"follows": func(ctx context.Context, from storage.UserID) error {
			return changeEdge(ctx, store, from, viral, storage.Following, 0).Err
		},
		"applied followers": func(ctx context.Context, from storage.UserID) error {
			e := storage.Edge{From: from, To: viral, Type: storage.Following, UpdateTime: storage.MicrosOf(time.Now())}
			return store.Apply(ctx, storage.Inverse, []storage.Edge{e}, storage.IfNewer)[0].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := connect(t, dsns[0])
			holder, err := db.Begin()
			must.OK(t, err)
			defer holder.Rollback()
			var version int64
			must.OK(t, holder.QueryRow(`SELECT version FROM user_counts WHERE user_id = ? FOR UPDATE`, viral).Scan(&version))
			const followers = 20 // more than there are connections
			errs := make(chan error, followers)
			for i := range followers {
				go func() { errs <- write(context.Background(), storage.UserID(2+i)) }()
			}
			must.Soon(t, "all but one wait", func() bool { return store.Waiting() == followers-1 })
			ctx, cancel := context.WithTimeout(t.Context(), generous/3)
			defer cancel()
			r := changeEdge(ctx, store, 50, 51, storage.Following, 0)
			check.Is(t, "an unrelated follow waits for the celebrity", r.Err, nil)
			must.OK(t, holder.Rollback())
			for range followers {
				err := <-errs
				check.That(t, err == nil, "%v", err)
			}
		})
	}
}

// A follow that is cancelled while it waits has written nothing.
func TestAFollowGivenUpWhileItWaitsWritesNothing(t *testing.T) {
	storesWithUsers(t, 10, func(t *testing.T, store *sqlstore.Store) {
		release, err := store.HoldWrites(t.Context())
		must.OK(t, err)
		stayed := make(chan error, 1)
		go func() { stayed <- changeEdge(context.Background(), store, 2, viral, storage.Following, 0).Err }()
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		waits := func(n int) func() bool { return func() bool { return store.Waiting() == n } }
		must.Soon(t, "the first one is served", func() bool { return store.Serving() == 1 })
		go func() { left <- changeEdge(ctx, store, 3, viral, storage.Following, 0).Err }()
		must.Soon(t, "the second one waits", waits(1))
		leave()
		check.Is(t, "the follow that was given up gets", <-left, context.Canceled)
		release()
		err = <-stayed
		check.That(t, err == nil, "%v", err)
		check.Equal(t, "followers", mustCount(t, store, viral).Follower, 1)
		check.Equal(t, "the user whose follow was given up follows", mustCount(t, store, 3).Following, 0)
	})
}
