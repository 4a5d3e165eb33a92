package sqlstore_test

import (
	"context"
	"sync/atomic"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/opened"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// If an EndEdges is cut off after any of its statements, the next one ends the remaining rows, and
// the counts are exact.
func TestEndEdgesContinuesAfterACrash(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) { endWithCrashes(t, sqlite(t, 2)) })
	t.Run("MariaDB", func(t *testing.T) { endWithCrashes(t, mysql(testenv.SharedMariaDB(t, 2).FreshDatabases(t, 1))) })
}

func endWithCrashes(t *testing.T, location string) {
	var ran atomic.Int64 // statements of several shards run at once
	var stopBehind int64
	var crash context.CancelFunc
	store := counting(t, location, func() {
		if ran.Add(1) == stopBehind {
			crash()
		}
	})
	peers := []storage.UserID{1, 2, 3, 4, 5}
	for n := int64(1); ; n++ {
		user := storage.UserID(100 + n)
		tie(t, store, user, peers)
		var ctx context.Context
		ctx, crash = context.WithCancel(t.Context())
		ran.Store(0)
		stopBehind = n
		store.EndEdges(ctx, user, rowsOfUser(t, store, user), 10)
		whole := ran.Load() < n
		crash()
		stopBehind = 0
		for _, r := range store.EndEdges(t.Context(), user, rowsOfUser(t, store, user), 20) {
			must.That(t, r.Err == nil && r.Found, "again, behind statement %d: %+v", n, r)
		}
		for _, id := range append(peers, user) {
			for _, row := range rowsOfUser(t, store, id) {
				check.That(t, row.Edge.From != user && row.Edge.To != user, "behind statement %d user %s has %+v", n, id, row)
			}
			c := storage.CountLookups.Read(t.Context(), store, id)[0].Value
			check.That(t, c.Following+c.Follower+c.Friend+c.Favorites == 0, "behind statement %d the counts of user %s are %+v", n, id, c)
		}
		if whole {
			must.That(t, n >= 10, "only %d statements were cut off", n)
			return
		}
	}
}

// The number of statements of a deletion does not grow with the user's followings and followers.
func TestADeletionTakesFewStatements(t *testing.T) {
	var ran atomic.Int64
	store := counting(t, sqlite(t, 1), func() { ran.Add(1) })
	statements := func(user storage.UserID, peers int) int64 {
		for id := user; id <= user+storage.UserID(peers); id++ {
			must.OK(t, store.CreateUsers(t.Context(), []storage.User{{ID: id, Handle: "h" + id.String(), Name: "N"}})[0].Err)
		}
		for id := user + 1; id <= user+storage.UserID(peers); id++ {
			for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
				for _, pair := range []storage.Pair{{From: user, To: id}, {From: id, To: user}} {
					store.Apply(t.Context(), side, []storage.Edge{pair.Edge(storage.Following, 1)}, storage.IfNewer)
				}
			}
		}
		ran.Store(0)
		_, err := store.SetState(t.Context(), user, storage.Deleting, 2)
		must.OK(t, err)
		for rows := rowsOfUser(t, store, user); len(rows) > 0; rows = rowsOfUser(t, store, user) {
			store.EndEdges(t.Context(), user, rows, 2)
		}
		must.OK(t, store.Erase(t.Context(), user, 3))
		return ran.Load()
	}
	few, many := statements(1000, 2), statements(2000, 40)
	t.Logf("%d statements with 2 friends, %d with 40", few, many)
	check.That(t, many <= few && many <= 30, "a deletion takes %d statements with 2 friends and %d with 40", few, many)
}

// counting opens a store that calls ran after each statement.
func counting(t *testing.T, location string, ran func()) *sqlstore.Store {
	t.Helper()
	return opened.Store(t, sqlstore.Config{
		Location: location, StatementTimeout: generous, OnStatement: func(context.Context, sqlstore.Statement) { ran() },
	})
}

// tie makes edges of all kinds between a user and others, on both sides.
func tie(t *testing.T, store *sqlstore.Store, user storage.UserID, peers []storage.UserID) {
	t.Helper()
	for i, peer := range peers {
		edges := map[storage.Side][]storage.Edge{
			storage.Forward:   {{From: user, To: peer, Type: storage.Following, UpdateTime: 1}, {From: peer, To: user, Type: storage.Following, UpdateTime: 1}},
			storage.Favorites: {{From: user, To: peer, Item: 7, Type: storage.Favorited, UpdateTime: 1}},
		}
		if i == 0 {
			edges[storage.Requests] = []storage.Edge{{From: user, To: peer, Type: storage.Declined, UpdateTime: 1}}
		}
		for side, list := range edges {
			for _, s := range []storage.Side{side, side.Replica()} {
				must.All(t, store.Apply(t.Context(), s, list, storage.IfNewer))
			}
		}
	}
}

// rowsOfUser lists the remaining rows of a user in all tables.
func rowsOfUser(t *testing.T, store *sqlstore.Store, user storage.UserID) (rows []storage.Row) {
	t.Helper()
	var queries []storage.RowsQuery
	for _, side := range storage.AllSides {
		queries = append(queries, storage.RowsQuery{Side: side, Owner: user, Limit: 100})
	}
	for i, r := range storage.RowLookups.Read(t.Context(), store, queries...) {
		must.OK(t, r.Err)
		for _, e := range r.Value {
			rows = append(rows, storage.Row{Side: queries[i].Side, Edge: e})
		}
	}
	return rows
}

// Both users of an edge are being deleted, and one deletion is given up between the shards, while the other ends the edge or after that. Both
// sides have one tombstone, because nobody lists the edge again.
func TestADeletionIsGivenUpBesideAnother(t *testing.T) {
	var at [2]func() // called at the first statement of an EndEdges on a shard
	store := opened.Store(t, sqlstore.Config{
		Location: sqlite(t, 2), StatementTimeout: generous, OnStatement: func(_ context.Context, s sqlstore.Statement) {
			if f := at[s.Shard]; s.Lookup == "end" && f != nil {
				at[s.Shard] = nil
				f()
			}
		},
	})
	var users [2]storage.UserID // of the shards
	next := func(shard int) storage.UserID {
		for users[shard]++; store.ShardOf(users[shard]) != shard; {
			users[shard]++
		}
		return users[shard]
	}
	for name, ends := range map[string]func(user, other storage.UserID, row, otherRow storage.Row){
		"while": func(user, _ storage.UserID, row, _ storage.Row) {
			at[1] = func() {
				must.OK(t, store.Apply(t.Context(), row.Side, []storage.Edge{row.Edge.Pair().Edge(storage.None, 30)}, storage.IfNewer)[0].Err)
			}
			r := store.EndEdges(t.Context(), user, []storage.Row{row}, 20)[0]
			check.That(t, r.Err == nil && r.Found && r.Value.UpdateTime == 30, "%+v", r)
		},
		"after": func(user, other storage.UserID, row, otherRow storage.Row) {
			must.OK(t, store.EndEdges(t.Context(), user, []storage.Row{row}, 20)[0].Err)
			ctx, giveUp := context.WithCancel(t.Context())
			at[1] = giveUp
			r := store.EndEdges(ctx, other, []storage.Row{otherRow}, 30)[0]
			check.That(t, r.Err != nil, "%+v", r)
		},
	} {
		for _, side := range []storage.Side{storage.Forward, storage.Inverse, storage.Requests, storage.FavoriteInbox} {
			user, other := next(0), next(1)
			pair := storage.Pair{From: user, To: other}
			if side.IsInverse() {
				pair.From, pair.To = other, user
			}
			if side.HasItem() {
				pair.Item = 7
			}
			e := pair.Edge(1, 10)
			for _, of := range []storage.Side{side, side.Other()} {
				must.OK(t, store.Apply(t.Context(), of, []storage.Edge{e}, storage.IfNewer)[0].Err)
			}
			ends(user, other, storage.Row{Side: side, Edge: e}, storage.Row{Side: side.Other(), Edge: e})
			is, otherIs := storage.EdgeLookups[side].Read(t.Context(), store, pair)[0].Value, storage.EdgeLookups[side.Other()].Read(t.Context(), store, pair)[0].Value
			check.That(t, is == otherIs && is.Type == storage.None, "%s, %s: %+v and %+v", name, side, is, otherIs)
		}
	}
}
