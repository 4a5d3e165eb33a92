package storagetest_test

import (
	"context"
	"slices"
	"sync"

	"kith/internal/storagetest"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// What ChangeEdges and Apply take and return, as short names.
type (
	edgeChanges = []storage.EdgeChange
	options     = storage.ChangeOptions
	changeds    = []storage.Result[storage.Changed]
	applieds    = []storage.Result[storage.Changed]
)

// opener makes a wrong store of the reference engine.
type opener = func(*oracle.Store) storage.Store

// bundling answers some kinds otherwise.
type bundling struct {
	*oracle.Store
	instead func(context.Context, *storage.Bundle)
}

func (s bundling) Bundle(ctx context.Context, b *storage.Bundle) {
	s.instead(ctx, b)
	s.Store.Bundle(ctx, b)
}

// reads has some kinds read by a function. The kinds are at the indexes of their sides.
func reads[K, V any](
	read func(context.Context, *oracle.Store, storage.Side, []K) []storage.Result[V], kinds ...*storage.LookupKind[K, V],
) opener {
	return func(s *oracle.Store) storage.Store {
		return bundling{s, func(ctx context.Context, b *storage.Bundle) {
			storage.SideLookups[K, V](kinds).Instead(ctx, b, func(ctx context.Context, side storage.Side, keys []K) []storage.Result[V] {
				return read(ctx, s, side, keys)
			})
		}}
	}
}

// answers changes each answer of some kinds.
func answers[K, V any](change func(*oracle.Store, storage.Side, K, *storage.Result[V]), kinds ...*storage.LookupKind[K, V]) opener {
	return reads(func(ctx context.Context, s *oracle.Store, side storage.Side, keys []K) []storage.Result[V] {
		results := kinds[side].Read(ctx, s, keys...)
		for i, key := range keys {
			change(s, side, key, &results[i])
		}
		return results
	}, kinds...)
}

// asks changes what some kinds are asked for.
func asks[K, V any](change func(*K), kinds ...*storage.LookupKind[K, V]) opener {
	return reads(func(ctx context.Context, s *oracle.Store, side storage.Side, keys []K) []storage.Result[V] {
		keys = slices.Clone(keys)
		for i := range keys {
			change(&keys[i])
		}
		return kinds[side].Read(ctx, s, keys...)
	}, kinds...)
}

type changer = func(context.Context, *oracle.Store, storage.Side, storage.UserID, edgeChanges, options) changeds

// changing changes edges of some sides otherwise.
type changing struct {
	*oracle.Store
	of     func(storage.Side) bool
	change changer
}

func (s changing) ChangeEdges(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
	if s.of(side) {
		return s.change(ctx, s.Store, side, from, changes, o)
	}
	return s.Store.ChangeEdges(ctx, side, from, changes, o)
}

// items changes edges to items otherwise.
func items(change changer) opener {
	return func(s *oracle.Store) storage.Store { return changing{s, storage.Side.HasItem, change} }
}

// follows changes follows and blocks otherwise.
func follows(change func(context.Context, *oracle.Store, storage.UserID, edgeChanges, options) changeds) opener {
	return func(s *oracle.Store) storage.Store {
		return changing{s, func(side storage.Side) bool { return side == storage.Forward },
			func(ctx context.Context, s *oracle.Store, _ storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
				return change(ctx, s, from, changes, o)
			}}
	}
}

// request is how a store changes one request.
type request = func(context.Context, *oracle.Store, storage.Pair, storage.EdgeChange, options) (storage.Changed, error)

// requests changes requests otherwise, of which there is one in each call.
func requests(change request) opener {
	return func(s *oracle.Store) storage.Store {
		return changing{s, func(side storage.Side) bool { return side == storage.Requests },
			func(ctx context.Context, s *oracle.Store, _ storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
				got, err := change(ctx, s, storage.Pair{From: user, To: changes[0].To}, changes[0], o)
				return changeds{{Value: got, Found: err == nil, Err: err}}
			}}
	}
}

// acts has requests changed with other options.
func acts(with func(*options)) opener {
	return requests(func(ctx context.Context, s *oracle.Store, request storage.Pair, change storage.EdgeChange, o options) (storage.Changed, error) {
		with(&o)
		return storagetest.Request(ctx, s, request, change, o)
	})
}

// applying applies edges otherwise.
type applying struct {
	*oracle.Store
	apply func(context.Context, *oracle.Store, storage.Side, []storage.Edge, storage.Rule) applieds
}

func (s applying) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
	return s.apply(ctx, s.Store, side, edges, rule)
}

func applies(apply func(context.Context, *oracle.Store, storage.Side, []storage.Edge, storage.Rule) applieds) opener {
	return func(s *oracle.Store) storage.Store { return applying{s, apply} }
}

// shortens returns no answers for the end of large batches.
func shortens[K, V any](from int, kinds ...*storage.LookupKind[K, V]) opener {
	return reads(func(ctx context.Context, s *oracle.Store, side storage.Side, keys []K) []storage.Result[V] {
		results := kinds[side].Read(ctx, s, keys...)
		clear(results[min(from, len(results)):])
		return results
	}, kinds...)
}

// packing has all lists packed, which the reference engine has not.
func packing(s *oracle.Store) *oracle.Store {
	storage.PackedLookups.AnsweredBy(&s.Answering, func(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
		return storage.Each(storage.NeighbourLookups[side].Read(ctx, s, owners...), func(r storage.Result[[]storage.UserID]) storage.Result[[]storage.UserID] {
			if side.Truth() != storage.Forward || len(r.Value) == 0 {
				return storage.Result[[]storage.UserID]{Err: r.Err}
			}
			return r
		})
	})
	return s
}

// answersPacked changes each packed list.
func answersPacked(change func(*oracle.Store, storage.Side, storage.UserID, *storage.Result[[]storage.UserID])) opener {
	return func(s *oracle.Store) storage.Store { return answers(change, storage.PackedLookups...)(packing(s)) }
}

// counting answers counts with what a wrong store has added.
type counting struct {
	*oracle.Store
	of func(*storage.Counts) *int64 // which count

	mu    sync.Mutex
	extra map[storage.UserID]int64
}

func newCounting(s *oracle.Store, of func(*storage.Counts) *int64) *counting {
	return &counting{Store: s, of: of, extra: map[storage.UserID]int64{}}
}

func (s *counting) add(user storage.UserID, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extra[user] += n
}

func (s *counting) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.CountLookups.Instead(ctx, b, func(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
		results := storage.CountLookups.Read(ctx, s.Store, ids...)
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, id := range ids {
			*s.of(&results[i].Value) += s.extra[id]
		}
		return results
	})
	s.Store.Bundle(ctx, b)
}

func version(c *storage.Counts) *int64 { return &c.Version }

func postsOf(c *storage.Counts) *int64 { return &c.Posts }

func favorited(c *storage.Counts) *int64 { return &c.Favorited }

func friends(c *storage.Counts) *int64 { return &c.Friend }
