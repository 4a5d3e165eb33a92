package oracle_test

import (
	"testing"

	"kith/internal/check"
	"kith/internal/storagetest"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// The engine is tested as wrong stores are made of it, so that these differ in their mistake alone.
func TestConformance(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return double.Of(oracle.New()) })
}

func TestSnapshotIsCompleteAndInOrder(t *testing.T) {
	ctx := t.Context()
	store := oracle.New()
	store.CreateUsers(ctx, []storage.User{{ID: 9, Handle: "nine"}, {ID: 2, Handle: "two"}})
	store.Apply(ctx, storage.Forward, []storage.Edge{
		{From: 9, To: 2, Type: storage.Following, UpdateTime: 5},
		{From: 2, To: 9, Type: storage.None, UpdateTime: 6},
		{From: 2, To: 7, Type: storage.Following, UpdateTime: 7},
	}, storage.IfNewer)
	store.Apply(ctx, storage.Inverse, []storage.Edge{
		{From: 9, To: 2, Type: storage.Following, UpdateTime: 5},
		{From: 1, To: 2, Type: storage.Blocking, UpdateTime: 8},
	}, storage.IfNewer)
	store.Apply(ctx, storage.Requests, []storage.Edge{{From: 2, To: 7, Type: storage.Declined, UpdateTime: 3}}, storage.IfNewer)
	store.Apply(ctx, storage.Inbox, []storage.Edge{{From: 7, To: 9, Type: storage.Pending, UpdateTime: 4}}, storage.IfNewer)

	want := oracle.Snapshot{
		Users: []storage.User{{ID: 2, Handle: "two"}, {ID: 9, Handle: "nine"}},
		Counts: []oracle.UserCounts{
			{ID: 2, Counts: storage.Counts{Following: 1, Follower: 1, Version: 3}},
			{ID: 9, Counts: storage.Counts{Following: 1, Version: 2}},
		},
		Forward: []storage.Edge{
			{From: 2, To: 7, Type: storage.Following, UpdateTime: 7},
			{From: 2, To: 9, Type: storage.None, UpdateTime: 6},
			{From: 9, To: 2, Type: storage.Following, UpdateTime: 5},
		},
		Inverse: []storage.Edge{
			{From: 1, To: 2, Type: storage.Blocking, UpdateTime: 8},
			{From: 9, To: 2, Type: storage.Following, UpdateTime: 5},
		},
		Requests: []storage.Edge{{From: 2, To: 7, Type: storage.Declined, UpdateTime: 3}},
		Inbox:    []storage.Edge{{From: 7, To: 9, Type: storage.Pending, UpdateTime: 4}},
	}
	check.Equal(t, "the store", store.Snapshot(), want)
}
