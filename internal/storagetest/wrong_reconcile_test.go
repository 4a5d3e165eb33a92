package storagetest_test

import (
	"context"
	"slices"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
	"kith/storage/sides"
)

// Mistakes in comparing and repairing.
var reconcileMistakes = []mistake{
	{"digests have every tombstone", func(s *oracle.Store, w *double.Store) {
		w.Instead.Digests = func(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, classes storage.Choice) (map[int]sides.Digest, error) {
			digests, err := s.Digests(ctx, side, shard, owners, cut, classes)
			snapshot := s.Snapshot()
			for _, e := range [][]storage.Edge{snapshot.Forward, snapshot.Inverse, snapshot.Requests, snapshot.Inbox, snapshot.Favorites, snapshot.FavoriteInbox, snapshot.Relations, snapshot.RelationInbox}[side] {
				if e.Type == storage.None && e.UpdateTime == 0 {
					g := cut.Group(e.Pair())
					digests[g] = digests[g].Plus(sides.Digest{Rows: 1, Mixed: e.Mix()})
				}
			}
			return digests, err
		}
	}, "comparer/ATombstoneAtTimeZeroIsNoRow", promiseOnly},
	{"rows are of all groups", func(s *oracle.Store, w *double.Store) {
		w.Instead.GroupRows = func(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, cut sides.Cut, groups storage.Choice, row func(storage.Edge)) error {
			all := make(storage.Choice, len(groups))
			for i := range all {
				all[i] = '1'
			}
			return s.GroupRows(ctx, side, shard, owners, cut, all, row)
		}
	}, "comparer/RowsAreThoseOfTheGroups", promiseOnly},
	{"blocks are forbidden", func(s *oracle.Store, w *double.Store) {
		w.Instead.ForbiddenFollows = func(ctx context.Context, shard int, owners sides.OwnerRange) ([]storage.Pair, error) {
			pairs, err := s.ForbiddenFollows(ctx, shard, owners)
			for _, e := range s.Snapshot().Inverse {
				if e.Type == storage.Blocking {
					pairs = append(pairs, e.Pair())
				}
			}
			return pairs, err
		}
	}, "comparer/NothingIsWrongThatIsRight", promiseOnly},
	{"newer rows are not repaired", repairs(func(_ *oracle.Store, r *sides.Repair) {
		if r.Observed.UpdateTime > r.Want.UpdateTime && r.Want.UpdateTime != 0 {
			r.Want = r.Observed
		}
	}), "repairer/ANewerRowIsWrittenOver", promiseOnly},
	{"any row is repaired", repairs(func(s *oracle.Store, r *sides.Repair) {
		r.Observed = rowOf(context.Background(), s, r.Side.Replica(), r.Pair)
	}), "repairer/ARowThatHasChangedStays", promiseOnly},
	{"what is taken away is newer", repairs(func(_ *oracle.Store, r *sides.Repair) {
		if r.Want.UpdateTime == 0 {
			r.Want.UpdateTime = r.Observed.UpdateTime + 1
		}
	}), "repairer/WhatIsTakenAwayMayComeAgain", promiseOnly},
	{"only follows are repaired", repairs(func(_ *oracle.Store, r *sides.Repair) { r.Side = storage.Inverse }), "repairer/EitherTableNamesTheRelation", promiseOnly},
	{"the first repair decides", func(s *oracle.Store, w *double.Store) {
		w.Instead.RepairInverse = func(ctx context.Context, repairs []sides.Repair) []storage.Result[storage.Changed] {
			results := s.RepairInverse(ctx, repairs)
			for i := range results {
				results[i].Value.Changed = results[i].Value.Changed && results[0].Value.Changed
			}
			return results
		}
	}, "repairer/EachIsJudgedByItself", promiseOnly},
	{"to count again raises versions", func(s *oracle.Store, w *double.Store) {
		// It raises versions even if the counts are right.
		w.Instead.RecountFriends = func(ctx context.Context, users []storage.UserID) []storage.Result[bool] {
			results := s.RecountFriends(ctx, users)
			s.Apply(ctx, storage.Forward, []storage.Edge{{From: users[0], To: users[0] - 1, Type: storage.None, UpdateTime: 1}}, storage.IfNewer)
			return results
		}
	}, "repairer/ToCountAgainLeavesRightCounts", promiseOnly},
}

// repairs changes repairs before they are judged.
func repairs(change func(*oracle.Store, *sides.Repair)) spoil {
	return func(s *oracle.Store, w *double.Store) {
		w.Instead.RepairInverse = func(ctx context.Context, repairs []sides.Repair) []storage.Result[storage.Changed] {
			repairs = slices.Clone(repairs)
			for i := range repairs {
				change(s, &repairs[i])
			}
			return s.RepairInverse(ctx, repairs)
		}
	}
}
