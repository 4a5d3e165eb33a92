package sqlstore

import (
	"context"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// RepairInverse implements [storage.Repairer], in the lock order of [Store.Apply].
func (s *Store) RepairInverse(ctx context.Context, repairs []storage.Repair) []storage.Result[storage.Changed] {
	shardOf := func(r storage.Repair) int { return s.shards.Of(r.Pair.To) }
	return byShard(ctx, s, repairs, s.sql.MaxRows, shardOf, func(p db.Part, repairs []storage.Repair, results []storage.Result[storage.Changed]) {
		share := storage.Chosen(repairs, p.At)
		var repaired []storage.Changed
		err := s.truthsAdmitted(ctx, share)
		if err == nil {
			repaired, err = transactOf(ctx, s, "repair", p.Shard, func(w *writer) ([]storage.Changed, error) { return w.repair(share) })
		}
		settle(results, p.At, repaired, err)
	})
}

// truthsAdmitted returns an error if forward rows are missing because their shard is being restored, or may be: they were
// read before.
func (s *Store) truthsAdmitted(ctx context.Context, repairs []storage.Repair) error {
	asked := make(map[int]bool)
	for _, r := range repairs {
		shard := s.shards.Of(r.Pair.From)
		if asked[shard] {
			continue
		}
		asked[shard] = true
		if err := s.db.Admitted(ctx, shard); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) repair(repairs []storage.Repair) ([]storage.Changed, error) {
	j := w.store.judge()
	rows := storage.Each(repairs, func(r storage.Repair) storage.Row {
		return storage.Row{Side: r.Side.Replica(), Edge: r.Pair.Edge(storage.None, 0)}
	})
	if err := w.lockAndLook(j, rows, storage.Sides[:]...); err != nil {
		return nil, err
	}
	repaired := storage.Each(repairs, j.Repair)
	if err := w.packed.Unpack(w.Tx, storage.Inverse, ownersOf(storage.Inverse, j.Changed(storage.Inverse))); err != nil {
		return nil, err
	}
	return repaired, w.save(j)
}

// Served by {list} or idx_favorite_received and the primary key of post.
var sqlCountEdges = db.ForSides(`
SELECT /*! STRAIGHT_JOIN */ e.{owner}, COUNT(*)
FROM {table} e /*! FORCE INDEX ({list}) */{JOIN post}
WHERE e.type = 1 AND e.{owner} IN (?)
GROUP BY e.{owner}`, db.Counted...)

// Recount implements [storage.Repairer].
func (s *Store) Recount(ctx context.Context, side storage.Side, users []storage.UserID) []storage.Result[bool] {
	return s.recountUsers(ctx, "recount", users, func(w *writer, users []storage.UserID) error { return w.recount(side, users) })
}

// recountUsers runs a recount of users, those of a shard in one transaction.
func (s *Store) recountUsers(ctx context.Context, what string, users []storage.UserID, recount func(*writer, []storage.UserID) error) []storage.Result[bool] {
	return recountByShard(ctx, s, users, s.shards.Of, func(shard int, users []storage.UserID) error {
		return s.transactOn(ctx, what, shard, func(w *writer) error { return recount(w, users) })
	})
}

// recountByShard runs a recount on each shard that has what is to be recounted.
func recountByShard[K comparable](ctx context.Context, s *Store, all []K, shardOf func(K) int, recount func(shard int, some []K) error) []storage.Result[bool] {
	return db.ReroutedAll(ctx, s.db, len(all), func(at []int) []storage.Result[bool] {
		return db.LookUp(s.db, storage.Chosen(all, at), s.sql.MaxKeys, shardOf, func(shard int, some []K, found func(K, bool)) error {
			for _, one := range some {
				found(one, true)
			}
			return recount(shard, some)
		})
	})
}

func (w *writer) recount(side storage.Side, users []storage.UserID) error {
	users = slices.Sorted(slices.Values(users))
	if err := w.lockCounts(users); err != nil {
		return err
	}
	wrong := make(map[storage.UserID]int64, len(users))
	err := w.Read(len(users), db.Listed(sqlCounts, len(users)), db.Arguments(users), db.EachEntry(func(id *storage.UserID, n *storage.Counts) []any {
		return append([]any{id}, countColumns(n)...)
	}, func(id storage.UserID, n storage.Counts) { wrong[id] = -n.Of(side) }))
	if err != nil {
		return err
	}
	err = w.Read(len(users), db.Listed(sqlCountEdges[side], len(users)), db.Arguments(users), db.EachEntry(db.TwoColumns, func(id storage.UserID, n int64) { wrong[id] += n }))
	if err != nil {
		return err
	}
	diffs := make(judge.Diffs)
	for id, n := range wrong {
		switch {
		case n == 0:
		case side == storage.Inverse:
			diffs[id] = judge.Diff{Follower: n}
		case side == storage.Favorites:
			diffs[id] = judge.Diff{Favorites: n}
		case side == storage.FavoriteInbox:
			diffs[id] = judge.Diff{Favorited: n}
		default:
			diffs[id] = judge.Diff{Following: n}
		}
	}
	if side.Truth() == storage.Forward {
		if err := w.packed.Unpack(w.Tx, side, slices.Collect(maps.Keys(diffs))); err != nil {
			return err
		}
	}
	return w.addCounts(diffs)
}
