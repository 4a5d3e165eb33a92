package storagetest_test

import (
	"context"
	"slices"
	"sync"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about relations of declared kinds.

var relationMistakes = []mistake{
	{"a detail is not changed", items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		for _, ch := range changes {
			pair := []storage.Pair{{From: user, To: ch.To, Item: ch.Item}}
			if r := storage.EdgeLookups[side].Read(ctx, s, pair...)[0]; side == storage.Relations && r.Value.Type == ch.Type && !ch.IfDue {
				return []storage.Result[storage.Changed]{{Value: storage.Changed{Row: r.Value, Side: side}, Found: true}}
			}
		}
		return s.ChangeEdges(ctx, side, user, changes, o)
	}), "relations/ItIsMadeChangedAndEnded", promiseOnly},
	{"kinds are bounded together", func(s *oracle.Store) storage.Store { return &oneBound{Store: s, n: map[storage.UserID]int64{}} }, "relations/KindsAreCountedAndBounded", promiseOnly},
	{"relations lead to users only", answers(func(_ *oracle.Store, _ storage.Side, k storage.OwnerKind, r *storage.Result[storage.KindCount]) {
		if k.Owner == storage.Foreign(7) {
			r.Value = storage.KindCount{}
		}
	}, storage.KindLookups), "relations/TheyLeadAnywhere", promiseOnly},
	{"blocks do not end relations", items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		o.Peace = o.Peace && side != storage.Relations
		return s.ChangeEdges(ctx, side, user, changes, o)
	}), "relations/ABlockForbidsThoseOfPeace", promiseOnly},
	{"pages are of all kinds", answers(func(s *oracle.Store, side storage.Side, q storage.PageQuery, r *storage.Result[[]storage.Edge]) {
		if side == storage.Relations && q.Item == 101 {
			q.Item = 102
			*r = storage.PageLookups[side].Read(context.Background(), s, q)[0]
		}
	}, storage.PageLookups...), "relations/PagesAreOfOneKind", promiseOnly},
	{"relations end that have been prolonged", items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		all := storage.Each(changes, func(ch storage.EdgeChange) storage.EdgeChange {
			ch.IfDue = false
			return ch
		})
		return s.ChangeEdges(ctx, side, user, all, o)
	}), "relations/TheyEndByThemselves", promiseOnly},
	{"changes do not go together", items(func(ctx context.Context, s *oracle.Store, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
		changes = slices.Clone(changes)
		for i := range changes {
			changes[i].With = false
		}
		return s.ChangeEdges(ctx, side, user, changes, o)
	}), "relations/AChangeGoesWithTheOneBefore", promiseOnly},
	{"details are restored again", func(s *oracle.Store) storage.Store { return restoresAgain{s} }, "relations/DetailsAreRestoredOnce", promiseOnly},
	{"kinds are counted without a lock", func(s *oracle.Store) storage.Store {
		return &unlockedKinds{Store: s, extra: map[storage.UserID]int64{}}
	}, "relations/CountsAreExactWhereManyWrite", lostRace},
	{"repairs forget the kind", func(s *oracle.Store) storage.Store { return kindlessRepairs{s} }, "relations/RepairsAreCounted", promiseOnly},
}

type oneBound struct {
	*oracle.Store
	n map[storage.UserID]int64
}

func (s *oneBound) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	if o.MaxItems > 0 {
		o.MaxItems -= s.n[user]
		s.n[user]++
	}
	return s.Store.ChangeEdges(ctx, side, user, changes, o)
}

type restoresAgain struct{ *oracle.Store }

func (s restoresAgain) Restore(ctx context.Context, r storage.Restored) []storage.Result[bool] {
	results := s.Store.Restore(ctx, r)
	for i := range results {
		results[i].Value = results[i].Found && (len(r.Details) > 0 || results[i].Value)
	}
	return results
}

// unlockedKinds finds counts wrong when two writers have met.
type unlockedKinds struct {
	*oracle.Store
	mu    sync.Mutex
	extra map[storage.UserID]int64
	busy  int
}

func (s *unlockedKinds) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	s.mu.Lock()
	if s.busy++; s.busy > 1 && side == storage.Relations {
		s.extra[user]++
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy--
	}()
	return s.Store.ChangeEdges(ctx, side, user, changes, o)
}

func (s *unlockedKinds) WrongItemCounts(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange) ([]storage.WrongCount, error) {
	wrong, err := s.Store.WrongItemCounts(ctx, side, shard, owners)
	s.mu.Lock()
	defer s.mu.Unlock()
	for user, n := range s.extra {
		if side == storage.Relations {
			wrong = append(wrong, storage.WrongCount{User: user, Have: n})
		}
	}
	return wrong, err
}

type kindlessRepairs struct{ *oracle.Store }

func (s kindlessRepairs) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Changed] {
	all := storage.Each(repairs, func(r storage.Repair) storage.Repair {
		if r.Side == storage.Relations {
			r.Side = storage.Favorites
		}
		return r
	})
	return s.Store.RepairInverse(ctx, all)
}
