package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/sides"
	"kith/storage/sqlstore/internal/db"
)

// How many users own edges, how many of those count them right, and how many users count any:
// of one moment, because it is one statement. The hint is for TiDB, which would read the counts of all
// users for a range of owners; the others pass it over. Served by {list} and the primary keys of user_counts and post.
var sqlCountsAgree = db.ForSides(`
SELECT /*+ INL_JOIN(c) */ COUNT(*), COALESCE(SUM(c.{count} = e.n), 0), (
  SELECT COUNT(*)
  FROM user_counts
  WHERE user_id > ? AND user_id <= ? AND {count} <> 0
)
FROM (
  SELECT /*! STRAIGHT_JOIN */ e.{owner} AS owner, COUNT(*) AS n
  FROM {table} e /*! FORCE INDEX ({list}) */{JOIN post}
  WHERE e.{owner} > ? AND e.{owner} <= ? AND e.type = 1
  GROUP BY e.{owner}
) e
LEFT JOIN user_counts c ON c.user_id = e.owner`, db.Counted...)

// Owners of edges whose counts are wrong or missing. The hint is TiDB's, as above. Served by {list} and the primary keys of
// user_counts and post.
var sqlWrongCounts = db.ForSides(`
SELECT /*+ INL_JOIN(c) */ e.owner, COALESCE(c.{count}, 0), e.n
FROM (
  SELECT /*! STRAIGHT_JOIN */ e.{owner} AS owner, COUNT(*) AS n
  FROM {table} e /*! FORCE INDEX ({list}) */{JOIN post}
  WHERE e.{owner} > ? AND e.{owner} <= ? AND e.type = 1
  GROUP BY e.{owner}
) e
LEFT JOIN user_counts c ON c.user_id = e.owner
WHERE c.user_id IS NULL OR c.{count} <> e.n`, db.Counted...)

// Counts of users who own no edge. Served by {list} or idx_favorite_received, and by the primary keys of user_counts and post.
var sqlCountsOfNone = db.ForSides(`
SELECT c.user_id, c.{count}, 0
FROM user_counts c
WHERE c.user_id > ? AND c.user_id <= ? AND c.{count} <> 0
  AND NOT EXISTS (
    SELECT /*+ NO_DECORRELATE() INL_JOIN(p) */ /*! STRAIGHT_JOIN */ 1
    FROM {table} e /*! FORCE INDEX ({list}) */{JOIN post}
    WHERE e.{owner} = c.user_id AND e.type = 1
    LIMIT 1
  )`, db.Counted...)

// Some edges of one owner. Served by the primary keys.
var sqlCountOfPeers = db.Both(`
SELECT /*! STRAIGHT_JOIN */ COUNT(*)
FROM {table} e INDEXED BY sqlite_autoindex_{table}_1{JOIN post}
WHERE e.{owner} = ? AND e.{peer} BETWEEN ? AND ? AND e.type = 1`).ForSides(db.Counted...)

// WrongCounts implements [sides.Comparer]. Mostly no count is wrong, and finding that takes less
// time than finding which are.
func (s *Store) WrongCounts(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) ([]sides.WrongCount, error) {
	if owners.UpTo-owners.After == 1 {
		return s.wrongOfOwner(ctx, side, shard, owners, func() error { return nil })
	}
	agree, err := s.countsAgree(ctx, side, shard, owners)
	if err != nil || agree {
		return nil, err
	}
	return s.wrongIn(ctx, "reconcile.counts", shard, owners, ofUsers, sqlWrongCounts[side], sqlCountsOfNone[side])
}

// wrongOfOwner counts the edges of one owner, who may have a hundred million, in parts, all of one moment. It calls begin before each.
func (s *Store) wrongOfOwner(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange, begin func() error) ([]sides.WrongCount, error) {
	wrong := sides.WrongCount{User: owners.UpTo}
	if !isOf(owners, wrong.User) {
		return nil, nil
	}
	err := s.db.ReadMoment(ctx, shard, func(m *db.Moment) error {
		err := m.Scan(ctx, "reconcile.counts", sqlCounts, []any{int64(wrong.User)}, db.EachEntry(func(id *storage.UserID, n *storage.Counts) []any {
			return append([]any{id}, countColumns(n)...)
		}, func(_ storage.UserID, n storage.Counts) { wrong.Have = n.Of(side) }))
		if err != nil {
			return err
		}
		return s.eachPart(ctx, m.Scan, side, owners, s.sql.Text(sqlCountOfPeers[side]), func(text string, args []any) error {
			if err := begin(); err != nil {
				return err
			}
			return m.Scan(ctx, "reconcile.counts", text, args, db.EachRow(db.OneColumn, func(n int64) { wrong.Are += n }))
		})
	})
	if err != nil || wrong.Have == wrong.Are {
		return nil, err
	}
	return []sides.WrongCount{wrong}, nil
}

// The columns of statements that find wrong counts.
func ofUsers(w *sides.WrongCount) []any { return []any{&w.User, &w.Have, &w.Are} }
func ofItems(w *sides.WrongCount) []any { return []any{&w.User, &w.Item, &w.Have, &w.Are} }

// wrongIn runs statements that find wrong counts of a range of owners.
func (s *Store) wrongIn(ctx context.Context, what string, shard int, owners sides.OwnerRange, columns func(*sides.WrongCount) []any, texts ...string) ([]sides.WrongCount, error) {
	wrong := make(map[storage.PostID]sides.WrongCount)
	for _, text := range texts {
		err := s.db.Scan(ctx, what, shard, text, []any{int64(owners.After), int64(owners.UpTo)}, db.EachRow(columns, func(w sides.WrongCount) {
			if isOf(owners, w.User) {
				wrong[storage.PostID{Author: w.User, Number: w.Item}] = w // the last edge may end between the statements
			}
		}))
		if err != nil {
			return nil, err
		}
	}
	return sortedCounts(wrong), nil
}

func sortedCounts(wrong map[storage.PostID]sides.WrongCount) []sides.WrongCount {
	return slices.SortedFunc(maps.Values(wrong), func(a, b sides.WrongCount) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Item, b.Item))
	})
}

func (s *Store) countsAgree(ctx context.Context, side storage.Side, shard int, owners sides.OwnerRange) (bool, error) {
	after, upTo := int64(owners.After), int64(owners.UpTo)
	var own, right, count int64
	err := s.db.Scan(ctx, "reconcile.counts", shard, sqlCountsAgree[side], []any{after, upTo, after, upTo}, func(rows *sql.Rows) error {
		return rows.Scan(&own, &right, &count)
	})
	return own == right && own == count, err
}

// Blocks are few: it is cheaper to look for those of each user than to look through
// the follows. Served by the primary keys of user_counts and following, and by idx_follower_list.
const sqlForbiddenFollows = `
SELECT /*! STRAIGHT_JOIN */ f.from_user_id, f.to_user_id
FROM user_counts c
CROSS JOIN follower b ON b.to_user_id = c.user_id AND b.type = 2
CROSS JOIN following f ON f.from_user_id = b.to_user_id AND f.to_user_id = b.from_user_id AND f.type IN (1, 3)
WHERE c.user_id > ? AND c.user_id <= ?`

// Of one user, whom millions may block. Served by the primary keys.
var sqlForbiddenToOne = db.Both(`
SELECT /*! STRAIGHT_JOIN */ f.from_user_id, f.to_user_id
FROM follower b INDEXED BY sqlite_autoindex_follower_1
CROSS JOIN following f ON f.from_user_id = b.to_user_id AND f.to_user_id = b.from_user_id AND f.type IN (1, 3)
WHERE b.to_user_id = ? AND b.from_user_id BETWEEN ? AND ? AND b.type = 2`)

// Users with the ids of deleted ones or of things were made by hand. Served by the primary keys.
const sqlForbiddenUsers = `
SELECT /*! STRAIGHT_JOIN */ u.user_id, u.user_id
FROM user_states s
CROSS JOIN users u ON u.user_id = s.user_id
WHERE s.user_id > ? AND s.user_id <= ? AND s.state = 3
UNION ALL
SELECT u.user_id, u.user_id
FROM users u
WHERE u.user_id > ? AND u.user_id <= ?`

// ForbiddenFollows implements [sides.Comparer].
func (s *Store) ForbiddenFollows(ctx context.Context, shard int, owners sides.OwnerRange) ([]storage.Pair, error) {
	var follows []storage.Pair
	run := func(text string, args []any) error {
		return s.db.Scan(ctx, "reconcile.forbidden", shard, text, args, db.EachEntry(db.TwoColumns, func(from, to storage.UserID) {
			if isOf(owners, from) {
				follows = append(follows, storage.Pair{From: from, To: to})
			}
		}))
	}
	text, after, upTo := sqlForbiddenFollows, int64(owners.After), int64(owners.UpTo)
	if upTo-after == 1 {
		text = s.sql.Text(sqlForbiddenToOne)
	}
	err := s.eachPart(ctx, s.scan(shard), storage.Inverse, owners, text, run)
	if err == nil {
		err = run(sqlForbiddenUsers, []any{after, upTo, max(after, int64(storage.MaxUserID)), upTo})
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(follows, storage.Forward.Compare)
	return follows, nil
}
