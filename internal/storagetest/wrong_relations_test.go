package storagetest_test

import (
	"context"
	"slices"
	"sync"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about relations of declared kinds.

var relationMistakes = []struct {
	mistake string
	open    func(*oracle.Store) storage.Store
	broken  string
	caught  caught
}{
	{"a detail is not changed", func(s *oracle.Store) storage.Store { return firstDetail{s} }, "relations/ItIsMadeChangedAndEnded", promiseOnly},
	{"kinds are bounded together", func(s *oracle.Store) storage.Store { return &oneBound{Store: s, n: map[storage.UserID]int64{}} }, "relations/KindsAreCountedAndBounded", promiseOnly},
	{"relations lead to users only", func(s *oracle.Store) storage.Store { return usersOnly{s} }, "relations/TheyLeadAnywhere", promiseOnly},
	{"blocks do not end relations", func(s *oracle.Store) storage.Store { return warlike{s} }, "relations/ABlockForbidsThoseOfPeace", promiseOnly},
	{"pages are of all kinds", func(s *oracle.Store) storage.Store { return allKinds{s} }, "relations/PagesAreOfOneKind", promiseOnly},
	{"relations end that have been prolonged", func(s *oracle.Store) storage.Store { return alwaysDue{s} }, "relations/TheyEndByThemselves", promiseOnly},
	{"changes do not go together", func(s *oracle.Store) storage.Store { return apart{s} }, "relations/AChangeGoesWithTheOneBefore", promiseOnly},
	{"details are restored again", func(s *oracle.Store) storage.Store { return restoresAgain{s} }, "relations/DetailsAreRestoredOnce", promiseOnly},
	{"kinds are counted without a lock", func(s *oracle.Store) storage.Store {
		return &unlockedKinds{Store: s, extra: map[storage.UserID]int64{}}
	}, "relations/CountsAreExactWhereManyWrite", lostRace},
	{"repairs forget the kind", func(s *oracle.Store) storage.Store { return kindlessRepairs{s} }, "relations/RepairsAreCounted", promiseOnly},
}

func init() { wrongStores = append(wrongStores, relationMistakes...) }

type firstDetail struct{ *oracle.Store }

func (s firstDetail) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	for _, ch := range changes {
		pair := []storage.Pair{{From: user, To: ch.To, Post: ch.Item}}
		if r := storage.EdgeLookups[side].Read(ctx, s, pair...)[0]; side == storage.Relations && r.Value.Type == ch.Type && !ch.IfDue {
			return []storage.Result[storage.Changed]{{Value: storage.Changed{Row: r.Value, Side: side}, Found: true}}
		}
	}
	return s.Store.ChangeEdges(ctx, side, user, changes, o)
}

type apart struct{ *oracle.Store }

func (s apart) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].With = false
	}
	return s.Store.ChangeEdges(ctx, side, user, changes, o)
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

type usersOnly struct{ *oracle.Store }

func (s usersOnly) kindCounts(ctx context.Context, of []storage.OwnerKind) []storage.Result[storage.KindCount] {
	results := storage.KindLookups.Read(ctx, s.Store, of...)
	for i, k := range of {
		if k.Owner == storage.Foreign(7) {
			results[i].Value = storage.KindCount{}
		}
	}
	return results
}

func (s usersOnly) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.KindLookups.Instead(ctx, b, s.kindCounts)
	s.Store.Bundle(ctx, b)
}

type warlike struct{ *oracle.Store }

func (s warlike) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	o.Peace = o.Peace && side != storage.Relations
	return s.Store.ChangeEdges(ctx, side, user, changes, o)
}

type allKinds struct{ *oracle.Store }

func (s allKinds) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	results := storage.PageLookups[side].Read(ctx, s.Store, queries...)
	for i, q := range queries {
		if side == storage.Relations && q.Post == 101 {
			q.Post = 102
			results[i] = storage.PageLookups[side].Read(ctx, s.Store, q)[0]
		}
	}
	return results
}

func (s allKinds) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PageLookups.Instead(ctx, b, s.pages)
	s.Store.Bundle(ctx, b)
}

type alwaysDue struct{ *oracle.Store }

func (s alwaysDue) ChangeEdges(ctx context.Context, side storage.Side, user storage.UserID, changes edgeChanges, o options) changeds {
	if !side.HasItem() {
		return s.Store.ChangeEdges(ctx, side, user, changes, o)
	}
	all := storage.Each(changes, func(ch storage.EdgeChange) storage.EdgeChange {
		ch.IfDue = false
		return ch
	})
	return s.Store.ChangeEdges(ctx, side, user, all, o)
}

type restoresAgain struct{ *oracle.Store }

func (s restoresAgain) AddAnnotations(ctx context.Context, kind storage.AnnotationKind, rows []storage.Annotation) []storage.Result[bool] {
	results := s.Store.AddAnnotations(ctx, kind, rows)
	for i := range results {
		results[i].Value = results[i].Found && (kind == storage.AnnotationDetail || results[i].Value)
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

func (s kindlessRepairs) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Repaired] {
	all := storage.Each(repairs, func(r storage.Repair) storage.Repair {
		if r.Side == storage.Relations {
			r.Side = storage.Favorites
		}
		return r
	})
	return s.Store.RepairInverse(ctx, all)
}
