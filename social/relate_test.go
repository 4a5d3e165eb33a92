package social_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"kith/graph/declared"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/opened"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/social"
	"kith/storage"
	"kith/storage/sqlstore"
)

// few is a kind of which a user keeps the newest three edges, for an hour.
var few = declared.Kind{Number: 300, Max: 3, Lasts: time.Hour, KeepsNewest: true}

// keeper is a user 1 who relates to others by the clock of its test.
type keeper struct {
	*social.Relations
	store storage.Store
	now   time.Time
}

func newKeeper(t *testing.T, store storage.Store, under storage.Store) *keeper {
	t.Helper()
	var users []storage.User
	for id := range storage.UserID(1000) {
		users = append(users, storage.User{ID: id + 1, Handle: (id + 1).ImportedHandle()})
	}
	must.All(t, store.CreateUsers(t.Context(), users))
	k := &keeper{store: store, now: time.UnixMilli(1_800_000_000_000)}
	k.Relations = social.NewRelations(social.Relations{
		Store: under, Redundancy: &post{store: store, inline: true, seen: map[storage.Row]bool{}}, Now: func() time.Time { return k.now },
	})
	return k
}

func (k *keeper) relate(t *testing.T, ends ...storage.UserID) (errs []error) {
	t.Helper()
	results, _ := k.Relate(t.Context(), k.store, 1, few, ends, storage.DetailChange{})
	for _, r := range results {
		errs = append(errs, r.Err)
	}
	return errs
}

func (k *keeper) wants(t *testing.T, what string, want ...storage.UserID) []storage.Edge {
	t.Helper()
	page := storage.PageLookups[storage.Relations].Read(t.Context(), k.store, storage.PageQuery{Owner: 1, Item: few.Number, Limit: 100})[0]
	got := storage.Each(page.Value, func(e storage.Edge) storage.UserID { return e.To })
	check.That(t, page.Err == nil && slices.Equal(got, want), "%s: %v, %v, want %v", what, got, page.Err, want)
	counts := storage.KindLookups.Read(t.Context(), k.store, storage.OwnerKind{Owner: 1, Kind: few.Number})[0].Value
	check.Equal(t, what+": edges that are counted", counts.Outgoing, int64(len(got)))
	return page.Value
}

// One edge more ends the oldest one, on both sides. An edge that is made again keeps its place, and stands for longer.
func TestTheNewestEdgesAreKept(t *testing.T) {
	dsns := testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)
	for name, open := range map[string]func() storage.Store{
		"memory": func() storage.Store { return oracle.New() },
		"SQLite": func() storage.Store { return sqlOpen(t, "sqlite:"+filepath.Join(t.TempDir(), "kith.db")) },
		"server": func() storage.Store { return sqlOpen(t, "mysql:"+dsns[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			store := open()
			k := newKeeper(t, store, store)
			for id := storage.UserID(2); id <= 6; id++ {
				k.now = k.now.Add(time.Minute)
				must.OK(t, errors.Join(k.relate(t, id)...))
			}
			k.wants(t, "one after another", 6, 5, 4)
			e := storage.EdgeLookups[storage.RelationInbox].Read(t.Context(), store, few.Pair(1, 2))[0]
			check.That(t, e.Value.Type == storage.None && e.Err == nil, "the other side of what has ended is %+v", e)
			k.now = k.now.Add(time.Minute)
			must.OK(t, errors.Join(k.relate(t, 4, 7)...))
			for _, e := range k.wants(t, "one again", 7, 6, 5) {
				check.Equal(t, e, storage.DetailLookups.Read(t.Context(), store, e.Pair())[0].Value.EndsAt, e.UpdateTime+3_600_000_000)
			}
			must.OK(t, errors.Join(k.relate(t, 6)...))
			k.wants(t, "one again that stays", 7, 6, 5)
			check.Equal(t, "its end", storage.DetailLookups.Read(t.Context(), store, few.Pair(1, 6))[0].Value.EndsAt, storage.MicrosOf(k.now.Add(few.Lasts)))
			k.now = k.now.Add(time.Minute)
			errs := k.relate(t, 1, 10, 11, 12, 13, 9999)
			err := errors.Join(errs[1:5]...)
			check.That(t, err == nil && errors.Is(errs[0], social.ErrSelf) && errors.Is(errs[5], storage.ErrUserUnknown), "%v", errs)
			k.wants(t, "four at once", 13, 12, 11)

			many := declared.Kind{Number: 301, Max: 400, KeepsNewest: true} // room for four at a time
			k.Relate(t.Context(), store, 1, many, users(2, 401), storage.DetailChange{})
			var group sync.WaitGroup
			for n := range 4 {
				group.Go(func() {
					for _, id := range users(402+20*n, 421+20*n) {
						r, _ := k.Relate(t.Context(), store, 1, many, []storage.UserID{id}, storage.DetailChange{})
						check.Is(t, "one of many at once", r[0].Err, nil)
					}
				})
			}
			group.Wait()
			page := storage.PageLookups[storage.Relations].Read(t.Context(), store, storage.PageQuery{Owner: 1, Item: many.Number, Limit: 1000})[0]
			check.That(t, len(page.Value) >= 390 && len(page.Value) <= 400, "after many at once there are %d", len(page.Value))
		})
	}
}

// It is said if there is nothing that could be ended, such as where the count is wrong.
func TestNoRoomCanBeMade(t *testing.T) {
	for _, want := range []error{nil, errDown} {
		store := oracle.New()
		forgetful := double.Of(store) // it has no pages of relations, or cannot read them
		double.Read(forgetful, func(context.Context, storage.Side, []storage.PageQuery) []storage.Result[[]storage.Edge] {
			return []storage.Result[[]storage.Edge]{{Found: true, Err: want}}
		}, storage.PageLookups...)
		k := newKeeper(t, store, forgetful)
		k.relate(t, 2, 3, 4)
		if want == nil {
			want = storage.ErrLimitReached
		}
		check.Is(t, "the error", k.relate(t, 5)[0], want)
		k.wants(t, "nothing has ended", 4, 3, 2)
	}
}

// users are ids, both ends included.
func users(from, upTo int) (ids []storage.UserID) {
	for id := from; id <= upTo; id++ {
		ids = append(ids, storage.UserID(id))
	}
	return ids
}

func sqlOpen(t *testing.T, location string) storage.Store {
	t.Helper()
	return opened.Store(t, sqlstore.Config{Location: location})
}

// Relations of a user who is being deleted cannot end one by one. Those of others on the shard, whose time came later, end all the same.
func TestOneUserHoldsUpNoEndsOfOthers(t *testing.T) {
	for name, location := range map[string]string{"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "kith.db"), "MariaDB": "mysql:" + testenv.SharedMariaDB(t, 1).FreshDatabases(t, 1)[0]} {
		t.Run(name, func(t *testing.T) {
			store := opened.Store(t, sqlstore.Config{Location: location})
			users := make([]storage.User, 600)
			for i := range users {
				id := storage.UserID(i + 1)
				users[i] = storage.User{ID: id, Handle: "u" + id.String()}
			}
			must.All(t, store.CreateUsers(t.Context(), users))
			began := time.Now()
			var many []storage.EdgeChange // of the first one: more than are read at once
			for id := storage.UserID(5); id <= 600; id++ {
				many = append(many, storage.EdgeChange{To: id, Item: declared.Mutes.Number, Type: storage.Related, At: storage.MicrosOf(began), Detail: storage.DetailChange{EndsAt: storage.MicrosOf(began)}})
			}
			must.All(t, store.ChangeEdges(t.Context(), storage.Relations, 1, many, storage.ChangeOptions{Inverse: true}))
			for id := storage.UserID(1); id <= 3; id++ {
				ends := storage.DetailChange{EndsAt: storage.MicrosOf(began.Add(time.Duration(id) * time.Second))} // the first one's are read first
				change := storage.EdgeChange{To: 4, Item: declared.Mutes.Number, Type: storage.Related, At: storage.MicrosOf(began), Detail: ends}
				must.OK(t, store.ChangeEdges(t.Context(), storage.Relations, id, []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: true})[0].Err)
			}
			_, err := store.SetState(t.Context(), 1, storage.Deleting, storage.MicrosOf(began))
			must.OK(t, err)
			relations := social.NewRelations(social.Relations{Store: store, Redundancy: &post{inline: true, seen: map[storage.Row]bool{}}, Now: func() time.Time { return began.Add(time.Minute) }})
			check.Is(t, "the end that was refused", relations.EndDue(t.Context(), 0, func() bool { return true }), storage.ErrUserUnknown)
			for id := storage.UserID(1); id <= 3; id++ {
				for _, side := range []storage.Side{storage.Relations, storage.RelationInbox} {
					row := storage.EdgeLookups[side].Read(t.Context(), store, declared.Mutes.Pair(id, 4))[0]
					check.That(t, row.Err == nil && (row.Value.Type == storage.Related) == (id == 1), "%s of user %s: %+v, %v", side, id, row.Value, row.Err)
				}
			}
			counts := storage.KindLookups.Read(t.Context(), store, storage.OwnerKind{Owner: 4, Kind: declared.Mutes.Number})[0]
			check.Equal(t, "mutes that are counted at their end", counts.Value.Incoming, 1)
		})
	}
}
