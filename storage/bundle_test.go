package storage_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// profiling is a store that notes which users are read together with their counts. User 13 cannot be
// read.
type profiling struct {
	*oracle.Store
	asked [][]storage.UserID
}

func (p *profiling) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	p.asked = append(p.asked, slices.Clone(ids))
	if slices.Contains(ids, 13) {
		panic("no such luck")
	}
	return storage.Each(ids, func(id storage.UserID) storage.Result[storage.Profile] {
		user, counts := storage.UserLookups.Read(ctx, p, id)[0], storage.CountLookups.Read(ctx, p, id)[0]
		return storage.Result[storage.Profile]{Value: storage.Profile{User: user.Value, Exists: user.Found, Counts: counts.Value, Counted: counts.Found}, Found: true}
	})
}

func newProfiling() *profiling {
	p := &profiling{Store: oracle.New()}
	storage.ProfileLookups.AnsweredBy(&p.Answering, p.profiles)
	return p
}

// Every kind is answered as it is alone, and what is already answered is left.
func TestPartsOfABundleAreAnsweredApart(t *testing.T) {
	store := newProfiling()
	ctx := t.Context()
	store.CreateUsers(ctx, []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}})
	pair := storage.Pair{From: 1, To: 2}
	for _, side := range storage.Sides[:2] {
		store.Apply(ctx, side, []storage.Edge{{From: 1, To: 2, Type: storage.Following, UpdateTime: 5}}, storage.IfNewer)
	}
	known := []storage.Result[storage.UserID]{{Value: 77, Found: true}}
	var b storage.Bundle
	storage.UserLookups.Ask(&b, 1, 3)
	storage.CountLookups.Ask(&b, 2)
	storage.HandleLookups.Ask(&b, "b").Results = known
	storage.BlockLookups.Ask(&b, 1)
	storage.SpecialLookups.Ask(&b, 1)
	storage.MarkLookups.Ask(&b, pair)
	storage.MessageLookups.Ask(&b, pair)
	for _, side := range storage.Sides[:2] {
		storage.EdgeLookups[side].Ask(&b, pair)
		storage.PageLookups[side].Ask(&b, storage.PageQuery{Owner: side.Owner(pair), Limit: 3})
		storage.NeighbourLookups[side].Ask(&b, side.Owner(pair), 9)
		storage.PackedLookups[side].Ask(&b, side.Owner(pair))
	}
	store.Bundle(ctx, &b)
	same(t, "users", storage.UserLookups.In(&b), func(ids []storage.UserID) []storage.Result[storage.User] {
		return storage.UserLookups.Read(ctx, store, ids...)
	})
	same(t, "counts", storage.CountLookups.In(&b), func(ids []storage.UserID) []storage.Result[storage.Counts] {
		return storage.CountLookups.Read(ctx, store, ids...)
	})
	same(t, "handles", storage.HandleLookups.In(&b), func([]string) []storage.Result[storage.UserID] { return known })
	same(t, "blocks", storage.BlockLookups.In(&b), func(ids []storage.UserID) []storage.Result[[]storage.UserID] {
		return storage.BlockLookups.Read(ctx, store, ids...)
	})
	same(t, "specials", storage.SpecialLookups.In(&b), func(ids []storage.UserID) []storage.Result[[]storage.UserID] {
		return storage.SpecialLookups.Read(ctx, store, ids...)
	})
	same(t, "marks", storage.MarkLookups.In(&b), func(pairs []storage.Pair) []storage.Result[storage.EdgeMark] {
		return storage.MarkLookups.Read(ctx, store, pairs...)
	})
	same(t, "messages", storage.MessageLookups.In(&b), func(pairs []storage.Pair) []storage.Result[string] {
		return storage.MessageLookups.Read(ctx, store, pairs...)
	})
	for _, side := range storage.Sides[:2] {
		same(t, "edges", storage.EdgeLookups[side].In(&b), func(pairs []storage.Pair) []storage.Result[storage.Edge] {
			return storage.EdgeLookups[side].Read(ctx, store, pairs...)
		})
		same(t, "pages", storage.PageLookups[side].In(&b), func(q []storage.PageQuery) []storage.Result[[]storage.Edge] {
			return storage.PageLookups[side].Read(ctx, store, q...)
		})
		same(t, "neighbours", storage.NeighbourLookups[side].In(&b), func(ids []storage.UserID) []storage.Result[[]storage.UserID] {
			return storage.NeighbourLookups[side].Read(ctx, store, ids...)
		})
		same(t, "packed", storage.PackedLookups[side].In(&b), func(ids []storage.UserID) []storage.Result[[]storage.UserID] {
			return storage.PackedLookups[side].Read(ctx, store, ids...)
		})
	}
	check.Equal(t, "users and counts were read together of", store.asked, [][]storage.UserID{{1, 3, 2}})
}

func same[K, V any](t *testing.T, what string, got *storage.Lookup[K, V], read func([]K) []storage.Result[V]) {
	t.Helper()
	want := read(got.Keys)
	check.That(t, reflect.DeepEqual(got.Results, want), "%s of %v are %+v, want %+v", what, got.Keys, got.Results, want)
}

// A part that panics does not affect the others.
func TestPartThatPanicsHasFailed(t *testing.T) {
	var b storage.Bundle
	users, counts, handles := storage.UserLookups.Ask(&b, 13), storage.CountLookups.Ask(&b, 13), storage.HandleLookups.Ask(&b, "a")
	newProfiling().Bundle(t.Context(), &b)
	for _, err := range []error{users.Results[0].Err, counts.Results[0].Err} {
		check.That(t, err != nil && strings.Contains(err.Error(), "panicked: no such luck"), "got %v, want the panic", err)
	}
	check.That(t, len(handles.Results) == 1 && handles.Results[0].Err == nil, "the handle is %+v", handles.Results)
}
