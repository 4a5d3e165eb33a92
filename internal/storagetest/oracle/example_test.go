package oracle_test

import (
	"context"
	"fmt"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// A follow writes the truth. How the replica gets it depends on the redundancy mode. Here both are
// written at once.
func ExampleStore_ChangeEdges() {
	ctx, store := context.Background(), oracle.New()
	store.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "ann"}, {ID: 2, Handle: "ben"}})
	follow := storage.EdgeChange{To: 2, Type: storage.Following, At: 1_700_000_000_000_000}
	done := store.ChangeEdges(ctx, storage.Forward, 1, []storage.EdgeChange{follow}, storage.ChangeOptions{Inverse: true})[0]
	fmt.Println("changed:", done.Value.Changed, done.Err)

	followers := storage.PageLookups[storage.Inverse].Read(ctx, store, storage.PageQuery{Owner: 2, Limit: 10})[0]
	fmt.Println("followers of ben:", followers.Value[0].From)
	fmt.Println("followings of ann:", storage.CountLookups.Read(ctx, store, 1)[0].Value.Following)

	again := store.ChangeEdges(ctx, storage.Forward, 1, []storage.EdgeChange{follow}, storage.ChangeOptions{Inverse: true})[0]
	fmt.Println("again:", again.Value.Changed)
	// Output:
	// changed: true <nil>
	// followers of ben: 1
	// followings of ann: 1
	// again: false
}

// An event that comes late, or twice, changes nothing.
func ExampleStore_Apply() {
	ctx, store := context.Background(), oracle.New()
	edge := func(kind storage.EdgeType, at storage.Micros) []storage.Edge {
		return []storage.Edge{{From: 1, To: 2, Type: kind, UpdateTime: at}}
	}
	for _, edges := range [][]storage.Edge{edge(storage.None, 20), edge(storage.Following, 10), edge(storage.None, 20)} {
		store.Apply(ctx, storage.Inverse, edges, storage.IfNewer)
	}
	fmt.Println("followers:", storage.CountLookups.Read(ctx, store, 2)[0].Value.Follower)
	// Output:
	// followers: 0
}
