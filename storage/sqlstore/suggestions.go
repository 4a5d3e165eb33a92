package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Served by idx_dismissed_at or the primary key: both begin with the user.
	sqlDismissals = `
SELECT ? AS query, dismissed_id
FROM suggestion_dismissals
WHERE user_id = ? AND at >= ?`

	// Served by idx_dismissed_at or the primary key: both begin with the user.
	sqlForgetOld = `
DELETE FROM suggestion_dismissals
WHERE user_id = ? AND at < ?`

	// Served by idx_dismissed_at or the primary key: both begin with the user.
	sqlEndDismissal = `
DELETE FROM suggestion_dismissals
WHERE user_id = ? AND dismissed_id = ?`

	// The newest that is one too many. Served by idx_dismissed_at.
	sqlFirstBeyond = `
SELECT at, dismissed_id
FROM suggestion_dismissals
WHERE user_id = ?
ORDER BY at DESC, dismissed_id DESC LIMIT 1 OFFSET ?`

	// Served by idx_dismissed_at or the primary key: both begin with the user.
	sqlForgetFrom = `
DELETE FROM suggestion_dismissals
WHERE user_id = ? AND at <= ? AND (at < ? OR dismissed_id <= ?)`

	// Served by idx_popular and the primary keys. idx_popular has the users in order of the classes of their counts of followers; the
	// counts themselves come by the primary key. 100 is the class of no follower. Only the
	// sample is sorted. LEFT JOIN keeps the order of the look-ups. The hint is for
	// TiDB, which would read all counts and hash them; the others pass it over.
	sqlPopular = `
SELECT /*+ INL_JOIN(counts) */ counts.user_id, counts.follower_count
FROM (
  SELECT /*! STRAIGHT_JOIN */ user_counts.user_id
  FROM user_counts /*! FORCE INDEX (idx_popular) */
  CROSS JOIN users ON users.user_id = user_counts.user_id
  WHERE user_counts.follower_class > 100 AND user_counts.active_day >= ?
  ORDER BY user_counts.follower_class DESC, user_counts.active_day DESC, user_counts.user_id DESC LIMIT ?
) AS famous
LEFT JOIN user_counts AS counts ON counts.user_id = famous.user_id
ORDER BY counts.follower_count DESC, counts.user_id LIMIT ?`

	// Most users have been marked by another gateway, or by what they have done. Served by the
	// primary key.
	sqlNotActive = `
SELECT user_id
FROM user_counts
WHERE active_day < ? AND user_id IN (?)`

	// Served by the primary key.
	sqlMarkActive = `
UPDATE user_counts
SET active_day = ?
WHERE active_day < ? AND user_id IN (?)`
)

var sqlDismiss = db.Both(`
INSERT INTO suggestion_dismissals (user_id, dismissed_id, at)
VALUES (?, ?, ?)
ON CONFLICT (user_id, dismissed_id) DO UPDATE SET at = CASE WHEN at < excluded.at THEN excluded.at ELSE at END`)

// Dismissals implements [storage.RelationReader].
func (s *Store) Dismissals(ctx context.Context, queries []storage.DismissalQuery) []storage.Result[[]storage.UserID] {
	return eachPage(ctx, s, "dismissals", queries, pagesOf[storage.DismissalQuery, storage.UserID]{
		owner: func(q storage.DismissalQuery) storage.UserID { return q.User },
		text: func(q storage.DismissalQuery, args []any) (string, []any) {
			return sqlDismissals, append(args, int64(q.User), int64(q.Since))
		},
		scan: func(rows *sql.Rows, _ []storage.DismissalQuery) (i int, dismissed storage.UserID, err error) {
			err = rows.Scan(&i, &dismissed)
			return i, dismissed, err
		},
		order: func(_ storage.DismissalQuery, list []storage.UserID) { slices.Sort(list) },
	})
}

// Dismiss implements [storage.SuggestionStore]. The lock keeps two calls from leaving
// one dismissal too many.
func (s *Store) Dismiss(ctx context.Context, user, dismissed storage.UserID, at, forget storage.Micros) error {
	return s.transact(ctx, "dismiss", s.ownerOf(user), func(w *writer) error {
		if err := w.lockUser(user); err != nil {
			return err
		}
		w.Touch(db.MovedRow{Kind: db.Dismissals, Owner: user})
		if _, err := w.Exec(1, s.sql.Text(sqlDismiss), int64(user), int64(dismissed), int64(at)); err != nil {
			return err
		}
		if _, err := w.Exec(1, sqlForgetOld, int64(user), int64(forget)); err != nil {
			return err
		}
		if err := w.forgetBeyond(user); err != nil {
			return err
		}
		return w.raiseVersion(user)
	})
}

// EndDismissal implements [storage.SuggestionStore].
func (s *Store) EndDismissal(ctx context.Context, user, dismissed storage.UserID) (ended bool, err error) {
	err = s.transact(ctx, "end dismissal", s.ownerOf(user), func(w *writer) error {
		if err := w.lockUser(user); err != nil {
			return err
		}
		w.Touch(db.MovedRow{Kind: db.Dismissals, Owner: user})
		n, err := w.Exec(1, sqlEndDismissal, int64(user), int64(dismissed))
		if ended = n > 0; err != nil || !ended {
			return err
		}
		return w.raiseVersion(user)
	})
	return ended, err
}

// forgetBeyond removes the oldest dismissals of a user who has too many.
func (w *writer) forgetBeyond(user storage.UserID) error {
	var at, dismissed int64
	tooMany, err := w.readOne(sqlFirstBeyond, []any{int64(user), storage.MaxDismissals}, &at, &dismissed)
	if err == nil && tooMany {
		_, err = w.Exec(1, sqlForgetFrom, int64(user), at, at, dismissed)
	}
	return err
}

// Popular implements [storage.SuggestionStore].
func (s *Store) Popular(ctx context.Context, since storage.Day, limit int) ([]storage.PopularUser, error) {
	lists := make([][]storage.PopularUser, len(s.db.All()))
	// Day 0 is that of counts whose user has never been active.
	args := []any{int64(max(since, 1)), storage.PopularSample, limit}
	err := db.EveryShard(len(lists), func(i int) error {
		return s.db.Query(ctx, "popular", i, limit, sqlPopular, args, func(rows *sql.Rows) error {
			var p storage.PopularUser
			err := rows.Scan(&p.User, &p.Followers)
			if s.shards.Of(p.User) == i { // not one that is being moved
				lists[i] = append(lists[i], p)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return topOf(lists, limit, func(a, b storage.PopularUser) int {
		return cmp.Or(cmp.Compare(b.Followers, a.Followers), cmp.Compare(a.User, b.User))
	}), nil
}

// MarkActive implements [storage.SuggestionStore].
func (s *Store) MarkActive(ctx context.Context, users []storage.UserID, day storage.Day) error {
	if len(users) == 0 {
		return nil
	}
	users = slices.Sorted(slices.Values(users)) // so that all transactions that lock several users do it in one order
	return s.db.Rerouted(ctx, func() error { return s.markActiveByShard(ctx, users, day) })
}

func (s *Store) markActiveByShard(ctx context.Context, users []storage.UserID, day storage.Day) error {
	parts := s.db.Split(len(users), markedAtOnce, func(i int) int { return s.shards.Of(users[i]) })
	var errs []error
	for _, p := range parts {
		if err := s.markActive(ctx, p.Shard, storage.Chosen(users, p.At), day); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// markedAtOnce is how many users one statement marks, and locks.
const markedAtOnce = 200

func (s *Store) markActive(ctx context.Context, shard int, ids []storage.UserID, day storage.Day) error {
	var idle []storage.UserID
	text, args := db.In(sqlNotActive, ids, int64(day))
	err := s.db.Query(ctx, "active", shard, len(ids), text, args, func(rows *sql.Rows) error {
		var id storage.UserID
		err := rows.Scan(&id)
		idle = append(idle, id)
		return err
	})
	if err != nil || len(idle) == 0 {
		return err
	}
	slices.Sort(idle)
	return s.transactOn(ctx, "active", shard, func(w *writer) error {
		for _, id := range idle {
			w.touchUser(id)
		}
		text, args := db.In(sqlMarkActive, idle, int64(day), int64(day))
		_, err := w.Exec(len(idle), text, args...)
		return err
	})
}

// topOf merges the answers of the shards, at most limit in all.
func topOf[T any](lists [][]T, limit int, compare func(a, b T) int) []T {
	all := slices.Concat(lists...)
	slices.SortFunc(all, compare)
	return all[:min(limit, len(all))]
}
