package storagetest_test

import (
	"context"
	"slices"
	"sync"

	"kith/internal/storagetest/double"
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

// A spoil makes a wrong store of a right one: it replaces methods of w, which at first are those of s.
type spoil = func(s *oracle.Store, w *double.Store)

// spoiled is a store with a mistake.
func spoiled(s *oracle.Store, by spoil) storage.Store {
	w := double.Of(s)
	by(s, w)
	return w
}

// reads has some kinds read by a function. The kinds are at the indexes of their sides.
func reads[K, V any](
	read func(context.Context, *oracle.Store, storage.Side, []K) []storage.Result[V], kinds ...*storage.LookupKind[K, V],
) spoil {
	return func(s *oracle.Store, w *double.Store) {
		double.Read(w, func(ctx context.Context, side storage.Side, keys []K) []storage.Result[V] {
			return read(ctx, s, side, keys)
		}, kinds...)
	}
}

// answers changes each answer of some kinds.
func answers[K, V any](change func(*oracle.Store, storage.Side, K, *storage.Result[V]), kinds ...*storage.LookupKind[K, V]) spoil {
	return func(s *oracle.Store, w *double.Store) {
		double.After(w, func(side storage.Side, keys []K, results []storage.Result[V]) {
			for i, key := range keys {
				change(s, side, key, &results[i])
			}
		}, kinds...)
	}
}

// asks changes what some kinds are asked for.
func asks[K, V any](change func(*K), kinds ...*storage.LookupKind[K, V]) spoil {
	return reads(func(ctx context.Context, s *oracle.Store, side storage.Side, keys []K) []storage.Result[V] {
		keys = slices.Clone(keys)
		for i := range keys {
			change(&keys[i])
		}
		return kinds[side].Read(ctx, s, keys...)
	}, kinds...)
}

// shortens returns no answers for the end of large batches.
func shortens[K, V any](from int, kinds ...*storage.LookupKind[K, V]) spoil {
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
func answersPacked(change func(*oracle.Store, storage.Side, storage.UserID, *storage.Result[[]storage.UserID])) spoil {
	return func(s *oracle.Store, w *double.Store) { answers(change, storage.PackedLookups...)(packing(s), w) }
}

// changes changes edges of some sides otherwise.
func changes(of func(storage.Side) bool, change func(context.Context, *oracle.Store, storage.Side, storage.UserID, edgeChanges, options) changeds) spoil {
	return func(s *oracle.Store, w *double.Store) {
		w.Instead.ChangeEdges = func(ctx context.Context, side storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
			if of(side) {
				return change(ctx, s, side, from, changes, o)
			}
			return s.ChangeEdges(ctx, side, from, changes, o)
		}
	}
}

// items changes edges to items otherwise.
func items(change func(context.Context, *oracle.Store, storage.Side, storage.UserID, edgeChanges, options) changeds) spoil {
	return changes(storage.Side.HasItem, change)
}

// follows changes follows and blocks otherwise.
func follows(change func(context.Context, *oracle.Store, storage.UserID, edgeChanges, options) changeds) spoil {
	return changes(func(side storage.Side) bool { return side == storage.Forward },
		func(ctx context.Context, s *oracle.Store, _ storage.Side, from storage.UserID, changes edgeChanges, o options) changeds {
			return change(ctx, s, from, changes, o)
		})
}

// requests changes requests otherwise, of which there is one in each call.
func requests(change func(context.Context, *oracle.Store, storage.Pair, storage.EdgeChange, options) (storage.Changed, error)) spoil {
	return changes(func(side storage.Side) bool { return side == storage.Requests },
		func(ctx context.Context, s *oracle.Store, _ storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
			got, err := change(ctx, s, storage.Pair{From: user, To: changes[0].To}, changes[0], o)
			return changeds{{Value: got, Found: err == nil, Err: err}}
		})
}

// applies applies edges otherwise.
func applies(apply func(context.Context, *oracle.Store, storage.Side, []storage.Edge, storage.Rule) applieds) spoil {
	return func(s *oracle.Store, w *double.Store) {
		w.Instead.Apply = func(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) applieds {
			return apply(ctx, s, side, edges, rule)
		}
	}
}

// adding has one of the counts be wrong by what is added.
func adding(w *double.Store, of func(*storage.Counts) *int64) (add func(storage.UserID, int64)) {
	var mu sync.Mutex
	extra := map[storage.UserID]int64{}
	answers(func(_ *oracle.Store, _ storage.Side, id storage.UserID, r *storage.Result[storage.Counts]) {
		mu.Lock()
		defer mu.Unlock()
		*of(&r.Value) += extra[id]
	}, storage.CountLookups)(w.Store, w)
	return func(user storage.UserID, n int64) {
		mu.Lock()
		defer mu.Unlock()
		extra[user] += n
	}
}

func version(c *storage.Counts) *int64 { return &c.Version }

func postsOf(c *storage.Counts) *int64 { return &c.Posts }

func favorited(c *storage.Counts) *int64 { return &c.Favorited }

func followings(c *storage.Counts) *int64 { return &c.Following }

func followers(c *storage.Counts) *int64 { return &c.Follower }

func friends(c *storage.Counts) *int64 { return &c.Friend }

// memory is what a wrong store knows beside the right one.
type memory[K comparable, V any] struct{ known sync.Map }

func (m *memory[K, V]) set(key K, value V) { m.known.Store(key, value) }

func (m *memory[K, V]) get(key K) (value V, known bool) {
	v, known := m.known.Load(key)
	value, _ = v.(V)
	return value, known
}

// remembered answers with what is known, whatever the right store says.
func (m *memory[K, V]) remembered(_ *oracle.Store, _ storage.Side, key K, r *storage.Result[V]) {
	if value, known := m.get(key); known && r.Err == nil {
		*r = storage.Result[V]{Value: value, Found: true}
	}
}

// rowOf reads one row of a store.
func rowOf(ctx context.Context, s *oracle.Store, side storage.Side, pair storage.Pair) storage.Edge {
	return storage.EdgeLookups[side].Read(ctx, s, pair)[0].Value
}

// overwrite replaces the present row, whatever its time is.
func overwrite(ctx context.Context, s *oracle.Store, side storage.Side, pair storage.Pair, kind storage.EdgeType) storage.Edge {
	row := pair.Edge(kind, rowOf(ctx, s, side, pair).UpdateTime+1)
	s.Apply(ctx, side, []storage.Edge{row}, storage.IfNewer)
	return row
}

// backOf is what the owner of an edge does towards its peer.
func backOf(side storage.Side, e storage.Edge) storage.Pair {
	return storage.Pair{From: side.Owner(e.Pair()), To: side.Peer(e.Pair())}
}
