package storage_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// profiling is a store that notes which users are read together with their counts. User 13 cannot be
// read.
type profiling struct {
	*oracle.Store
	asked [][]storage.UserID
}

func (p *profiling) Profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	p.asked = append(p.asked, slices.Clone(ids))
	if slices.Contains(ids, 13) {
		panic("no such luck")
	}
	return p.Store.Profiles(ctx, ids)
}

func lookup[V, K any](keys ...K) *storage.Lookup[K, V] { return &storage.Lookup[K, V]{Keys: keys} }

// ReadEach answers every kind like the method of the same name, and leaves the kinds that are already answered.
func TestPartsOfABundleAreAnsweredApart(t *testing.T) {
	store := &profiling{Store: oracle.New()}
	ctx := t.Context()
	store.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}})
	pair := storage.Pair{From: 1, To: 2}
	for _, side := range storage.Sides[:2] {
		store.Apply(ctx, side, []storage.Edge{{From: 1, To: 2, Type: storage.Following, UpdateTime: 5}}, storage.IfNewer)
	}
	known := []storage.Result[storage.UserID]{{Value: 77, Found: true}}
	b := storage.Bundle{
		Users: lookup[storage.User](storage.UserID(1), 3), Counts: lookup[storage.Counts](storage.UserID(2)),
		Handles: &storage.Lookup[string, storage.UserID]{Keys: []string{"b"}, Results: known},
		Blocks:  lookup[[]storage.UserID](storage.UserID(1)), Specials: lookup[[]storage.UserID](storage.UserID(1)),
		Marks: lookup[storage.EdgeMark](pair), Messages: lookup[string](pair),
	}
	for _, side := range storage.Sides[:2] {
		b.Edges[side] = lookup[storage.Edge](pair)
		b.Pages[side] = lookup[[]storage.Edge](storage.PageQuery{Owner: side.Owner(pair), Limit: 3})
		b.Neighbours[side] = lookup[[]storage.UserID](side.Owner(pair), 9)
		b.Packed[side] = lookup[[]storage.UserID](side.Owner(pair))
	}
	b.ReadEach(ctx, store)
	same(t, "users", b.Users, func(ids []storage.UserID) []storage.Result[storage.User] { return store.Users(ctx, ids) })
	same(t, "counts", b.Counts, func(ids []storage.UserID) []storage.Result[storage.Counts] { return store.Counts(ctx, ids) })
	same(t, "handles", b.Handles, func([]string) []storage.Result[storage.UserID] { return known })
	same(t, "blocks", b.Blocks, func(ids []storage.UserID) []storage.Result[[]storage.UserID] { return store.Blocks(ctx, ids) })
	same(t, "specials", b.Specials, func(ids []storage.UserID) []storage.Result[[]storage.UserID] { return store.Specials(ctx, ids) })
	same(t, "marks", b.Marks, func(pairs []storage.Pair) []storage.Result[storage.EdgeMark] { return store.Marks(ctx, pairs) })
	same(t, "messages", b.Messages, func(pairs []storage.Pair) []storage.Result[string] { return store.Messages(ctx, pairs) })
	for _, side := range storage.Sides[:2] {
		same(t, "edges", b.Edges[side], func(pairs []storage.Pair) []storage.Result[storage.Edge] { return store.Edges(ctx, side, pairs) })
		same(t, "pages", b.Pages[side], func(q []storage.PageQuery) []storage.Result[[]storage.Edge] { return store.Pages(ctx, side, q) })
		same(t, "neighbours", b.Neighbours[side], func(ids []storage.UserID) []storage.Result[[]storage.UserID] {
			return store.Neighbours(ctx, side, ids)
		})
		same(t, "packed", b.Packed[side], func(ids []storage.UserID) []storage.Result[[]storage.UserID] {
			return store.PackedNeighbours(ctx, side, ids)
		})
	}
	if !reflect.DeepEqual(store.asked, [][]storage.UserID{{1, 3, 2}}) {
		t.Errorf("users and counts were read together of %v", store.asked)
	}
}

func same[K, V any](t *testing.T, what string, got *storage.Lookup[K, V], read func([]K) []storage.Result[V]) {
	t.Helper()
	if want := read(got.Keys); !reflect.DeepEqual(got.Results, want) {
		t.Errorf("%s of %v are %+v, want %+v", what, got.Keys, got.Results, want)
	}
}

// A part that panics does not affect the others.
func TestPartThatPanicsHasFailed(t *testing.T) {
	b := storage.Bundle{
		Users: lookup[storage.User](storage.UserID(13)), Counts: lookup[storage.Counts](storage.UserID(13)),
		Handles: lookup[storage.UserID]("a"),
	}
	b.ReadEach(t.Context(), &profiling{Store: oracle.New()})
	for _, err := range []error{b.Users.Results[0].Err, b.Counts.Results[0].Err} {
		if err == nil || !strings.Contains(err.Error(), "panicked: no such luck") {
			t.Errorf("got %v, want the panic", err)
		}
	}
	if len(b.Handles.Results) != 1 || b.Handles.Results[0].Err != nil {
		t.Errorf("the handle is %+v", b.Handles.Results)
	}
}
