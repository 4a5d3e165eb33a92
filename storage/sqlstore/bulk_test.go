package sqlstore_test

import (
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
)

// bulk is enough edges on two shards for each to be written as a large batch.
const bulk = 600

func eachEngine(t *testing.T, test func(*testing.T, storage.Store)) {
	t.Run("SQLite", func(t *testing.T) { test(t, open(t, sqlite(t, 2))) })
	t.Run("MariaDB", func(t *testing.T) { test(t, open(t, mysql(testenv.SharedMariaDB(t, 1).FreshDatabases(t, 2)))) })
}

// An import that writes the other half of follows counts the friends, whichever side comes last.
func TestBulkWritesCountFriends(t *testing.T) {
	const user = 7
	for _, first := range []storage.Side{storage.Forward, storage.Inverse} {
		t.Run(first.String()+" first", func(t *testing.T) {
			eachEngine(t, func(t *testing.T, s storage.Store) {
				there := make(map[storage.Side][]storage.Edge)
				for i := range storage.UserID(bulk) {
					mine, theirs := edge(user, 1000+i, storage.Following, 5), edge(1000+i, user, storage.Following, 6)
					there[storage.Forward] = append(there[storage.Forward], mine)
					if i%3 == 0 {
						there[storage.Inverse] = append(there[storage.Inverse], theirs)
					}
				}
				write(t, s, first, there[first]...)
				wantFriends(t, s, user, 0)
				write(t, s, first^storage.Inverse, there[first^storage.Inverse]...)
				wantFriends(t, s, user, bulk/3)
				write(t, s, first, there[first]...)
				wantFriends(t, s, user, bulk/3)
			})
		})
	}
}

// Whether much or little of the other side is asked, it counts the same friends.
func TestBulkWritesCountFriendsOfLongAndShortLists(t *testing.T) {
	const user = 7
	eachEngine(t, func(t *testing.T, s storage.Store) {
		var followers []storage.Edge
		for i := range storage.UserID(bulk) {
			followers = append(followers, edge(1000+i, user, storage.Following, 5))
		}
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			write(t, s, side, followers...)
		}
		follow := func(from, to storage.UserID) {
			var follows []storage.Edge
			for id := from; id < to; id++ {
				follows = append(follows, edge(user, id, storage.Following, 6))
			}
			write(t, s, storage.Forward, follows...)
		}
		follow(1500, 1700) // of 600 followers, a third is asked about: half of them follow back
		wantFriends(t, s, user, 100)
		follow(990, 1080) // less than a seventh: all but ten follow back
		wantFriends(t, s, user, 180)
		follow(1080, 1500)
		wantFriends(t, s, user, bulk)
	})
}

func wantFriends(t *testing.T, s storage.Store, id storage.UserID, want int64) {
	t.Helper()
	r := storage.CountLookups.Read(t.Context(), s, id)[0]
	check.That(t, r.Err == nil && r.Value.Friend == want, "counts of user %d: %+v, want %d friends", id, r, want)
}

// An import leaves out a follow if the followed user blocks the follower, and writes the others of the batch.
func TestBulkWritesLeaveTheBlockedOut(t *testing.T) {
	const user, blocker = 7, 1003
	eachEngine(t, func(t *testing.T, s storage.Store) {
		write(t, s, storage.Inverse, edge(blocker, user, storage.Blocking, 9))
		var follows []storage.Edge
		for i := range storage.UserID(bulk) {
			follows = append(follows, edge(user, 1000+i, storage.Following, 5))
		}
		for i, r := range s.Apply(t.Context(), storage.Forward, follows, storage.IfAbsent) {
			blocked := follows[i].To == blocker
			must.That(t, r.Err == nil && r.Value.Changed != blocked && (!blocked || r.Value.Row.Type == storage.None), "follow of %d: %+v", follows[i].To, r)
		}
		wantCounts(t, s, user, bulk-1, 0, 0)
	})
}
