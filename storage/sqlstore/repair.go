package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sides"
	"kith/storage/sqlstore/internal/db"
)

// RepairInverse implements [sides.Repairer], in the lock order of [Store.Apply].
func (s *Store) RepairInverse(ctx context.Context, repairs []sides.Repair) []storage.Result[storage.Changed] {
	shardOf := func(r sides.Repair) int { return s.shards.Of(r.Pair.To) }
	return byShard(ctx, s, repairs, s.sql.MaxRows, shardOf, func(p db.Part, repairs []sides.Repair, results []storage.Result[storage.Changed]) {
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
func (s *Store) truthsAdmitted(ctx context.Context, repairs []sides.Repair) error {
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

func (w *writer) repair(repairs []sides.Repair) ([]storage.Changed, error) {
	j := w.store.judge()
	rows := storage.Each(repairs, func(r sides.Repair) storage.Row {
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

// Recount implements [sides.Repairer].
func (s *Store) Recount(ctx context.Context, side storage.Side, users []storage.UserID) []storage.Result[bool] {
	return recountByShard(ctx, s, users, s.shards.Of, func(shard int, users []storage.UserID) error {
		var few []storage.UserID
		for _, user := range users {
			many, err := s.hasMany(ctx, side, shard, user)
			if err == nil && many {
				err = s.recountMany(ctx, shard, user, func(renew func() error) ([]sides.WrongCount, error) {
					return s.wrongOfOwner(ctx, side, shard, sides.OwnerRange{After: user - 1, UpTo: user}, renew)
				}, func(w *writer, wrong []sides.WrongCount) error {
					return w.correct(side, map[storage.UserID]int64{user: wrong[0].Are - wrong[0].Have})
				})
			} else {
				few = append(few, user)
			}
			if err != nil {
				return err
			}
		}
		if len(few) == 0 {
			return nil
		}
		return s.transactOn(ctx, "recount", shard, func(w *writer) error { return w.recount(side, few) })
	})
}

// hasMany reports whether an owner has more edges than may be counted while it is locked.
func (s *Store) hasMany(ctx context.Context, side storage.Side, shard int, owner storage.UserID) (many bool, err error) {
	_, many, err = idOfRow(ctx, s.scan(shard), sqlPeerOfRow[side], int64(owner), int64(math.MinInt64), s.rowsOfOwner-1)
	return many, err
}

const (
	// recounting is the lease of the one process that recounts a user with very many edges. It is renewed before each part is counted.
	recounting     = "recount"
	recountingTime = 5 * time.Minute // a statement takes 20 s at most
)

// recountMany recounts a user whose edges take too long to be counted while nobody can follow the user. It adds what counts were
// off at one moment, which find finds: every other write changes edges and counts alike. Two at once would add it twice.
func (s *Store) recountMany(
	ctx context.Context, shard int, user storage.UserID, find func(renew func() error) ([]sides.WrongCount, error), correct func(*writer, []sides.WrongCount) error,
) error {
	token, last := rand.Text(), time.Now()
	renew := func() error {
		now := time.Now()
		if now.Sub(last) > recountingTime*3/4 { // perhaps another process has had it meanwhile
			return fmt.Errorf("%w: it took %s to count some edges of user %s", storage.ErrUnavailable, now.Sub(last), user)
		}
		last = now
		if _, err := s.Lease(ctx, recounting, token, 1, storage.MicrosOf(now), storage.MicrosOf(now.Add(recountingTime))); err != nil {
			return fmt.Errorf("%w: recount user %s: %w", storage.ErrUnavailable, user, err) // a scan waits
		}
		return nil
	}
	if err := renew(); err != nil {
		return err
	}
	defer func() { _ = s.Release(context.WithoutCancel(ctx), recounting, token, 0) }() // otherwise it expires
	wrong, err := find(renew)
	if err != nil || len(wrong) == 0 {
		return err
	}
	if err := renew(); err != nil { // for the write
		return err
	}
	return s.transactOn(ctx, "recount", shard, func(w *writer) error {
		if err := w.lockCounts([]storage.UserID{user}); err != nil {
			return err
		}
		return correct(w, wrong)
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
	return w.correct(side, wrong)
}

// correct adds to counts what they are off.
func (w *writer) correct(side storage.Side, wrong map[storage.UserID]int64) error {
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
