package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"kith/storage"
)

// How many users own edges, how many of those count them right, and how many users count any:
// of one moment, because it is one statement. The hint is for TiDB, which would read the counts of all
// users for a range of owners; the others pass it over.
var sqlCountsAgree = map[storage.Side]string{
	// Served by idx_following_list and the primary key of user_counts.
	storage.Forward: `
SELECT /*+ INL_JOIN(c) */ COUNT(*), COALESCE(SUM(c.following_count = e.n), 0), (
  SELECT COUNT(*)
  FROM user_counts
  WHERE user_id > ? AND user_id <= ? AND following_count <> 0
)
FROM (
  SELECT from_user_id AS owner, COUNT(*) AS n
  FROM following
  WHERE from_user_id > ? AND from_user_id <= ? AND type = 1
  GROUP BY from_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner`,
	// Served by idx_follower_list and the primary key of user_counts.
	storage.Inverse: `
SELECT /*+ INL_JOIN(c) */ COUNT(*), COALESCE(SUM(c.follower_count = e.n), 0), (
  SELECT COUNT(*)
  FROM user_counts
  WHERE user_id > ? AND user_id <= ? AND follower_count <> 0
)
FROM (
  SELECT to_user_id AS owner, COUNT(*) AS n
  FROM follower
  WHERE to_user_id > ? AND to_user_id <= ? AND type = 1
  GROUP BY to_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner`,
	// Served by idx_favorite_list and the primary key of user_counts.
	storage.Favorites: `
SELECT /*+ INL_JOIN(c) */ COUNT(*), COALESCE(SUM(c.favorite_count = e.n), 0), (
  SELECT COUNT(*)
  FROM user_counts
  WHERE user_id > ? AND user_id <= ? AND favorite_count <> 0
)
FROM (
  SELECT from_user_id AS owner, COUNT(*) AS n
  FROM favorite
  WHERE from_user_id > ? AND from_user_id <= ? AND type = 1
  GROUP BY from_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner`,
	// Served by idx_favorite_inbox_list and the primary keys of post and user_counts.
	storage.FavoriteInbox: `
SELECT /*+ INL_JOIN(c) */ COUNT(*), COALESCE(SUM(c.total_favorited = e.n), 0), (
  SELECT COUNT(*)
  FROM user_counts
  WHERE user_id > ? AND user_id <= ? AND total_favorited <> 0
)
FROM (
  SELECT /*! STRAIGHT_JOIN */ f.to_user_id AS owner, COUNT(*) AS n
  FROM favorite_inbox f /*! FORCE INDEX (idx_favorite_inbox_list) */
  CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = f.to_user_id AND p.post_id = f.post_id AND p.state = 0
  WHERE f.to_user_id > ? AND f.to_user_id <= ? AND f.type = 1
  GROUP BY f.to_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner`,
}

// Owners of edges whose counts are wrong or missing. The hint is TiDB's, as above.
var sqlWrongCounts = map[storage.Side]string{
	// Served by idx_following_list and the primary key of user_counts.
	storage.Forward: `
SELECT /*+ INL_JOIN(c) */ e.owner, COALESCE(c.following_count, 0), e.n
FROM (
  SELECT from_user_id AS owner, COUNT(*) AS n
  FROM following
  WHERE from_user_id > ? AND from_user_id <= ? AND type = 1
  GROUP BY from_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner
WHERE c.user_id IS NULL OR c.following_count <> e.n`,
	// Served by idx_follower_list and the primary key of user_counts.
	storage.Inverse: `
SELECT /*+ INL_JOIN(c) */ e.owner, COALESCE(c.follower_count, 0), e.n
FROM (
  SELECT to_user_id AS owner, COUNT(*) AS n
  FROM follower
  WHERE to_user_id > ? AND to_user_id <= ? AND type = 1
  GROUP BY to_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner
WHERE c.user_id IS NULL OR c.follower_count <> e.n`,
	// Served by idx_favorite_list and the primary key of user_counts.
	storage.Favorites: `
SELECT /*+ INL_JOIN(c) */ e.owner, COALESCE(c.favorite_count, 0), e.n
FROM (
  SELECT from_user_id AS owner, COUNT(*) AS n
  FROM favorite
  WHERE from_user_id > ? AND from_user_id <= ? AND type = 1
  GROUP BY from_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner
WHERE c.user_id IS NULL OR c.favorite_count <> e.n`,
	// Served by idx_favorite_inbox_list and the primary keys of post and user_counts.
	storage.FavoriteInbox: `
SELECT /*+ INL_JOIN(c) */ e.owner, COALESCE(c.total_favorited, 0), e.n
FROM (
  SELECT /*! STRAIGHT_JOIN */ f.to_user_id AS owner, COUNT(*) AS n
  FROM favorite_inbox f /*! FORCE INDEX (idx_favorite_inbox_list) */
  CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = f.to_user_id AND p.post_id = f.post_id AND p.state = 0
  WHERE f.to_user_id > ? AND f.to_user_id <= ? AND f.type = 1
  GROUP BY f.to_user_id
) e
LEFT JOIN user_counts c ON c.user_id = e.owner
WHERE c.user_id IS NULL OR c.total_favorited <> e.n`,
}

// Counts of users who own no edge.
var sqlCountsOfNone = map[storage.Side]string{
	// Served by the primary key of user_counts and idx_following_list.
	storage.Forward: `
SELECT c.user_id, c.following_count, 0
FROM user_counts c
WHERE c.user_id > ? AND c.user_id <= ? AND c.following_count <> 0
  AND NOT EXISTS (SELECT 1 FROM following e WHERE e.from_user_id = c.user_id AND e.type = 1)`,
	// Served by the primary key of user_counts and idx_follower_list.
	storage.Inverse: `
SELECT c.user_id, c.follower_count, 0
FROM user_counts c
WHERE c.user_id > ? AND c.user_id <= ? AND c.follower_count <> 0
  AND NOT EXISTS (SELECT 1 FROM follower e WHERE e.to_user_id = c.user_id AND e.type = 1)`,
	// Served by the primary key of user_counts and idx_favorite_list.
	storage.Favorites: `
SELECT c.user_id, c.favorite_count, 0
FROM user_counts c
WHERE c.user_id > ? AND c.user_id <= ? AND c.favorite_count <> 0
  AND NOT EXISTS (SELECT /*+ NO_DECORRELATE() */ 1 FROM favorite e WHERE e.from_user_id = c.user_id AND e.type = 1)`,
	// Served by the primary key of user_counts, idx_favorite_inbox_list and the primary key of post.
	storage.FavoriteInbox: `
SELECT c.user_id, c.total_favorited, 0
FROM user_counts c
WHERE c.user_id > ? AND c.user_id <= ? AND c.total_favorited <> 0
  AND NOT EXISTS (
    SELECT /*+ NO_DECORRELATE() INL_JOIN(p) */ /*! STRAIGHT_JOIN */ 1
    FROM favorite_inbox e /*! FORCE INDEX (idx_favorite_inbox_list) */
    CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = e.to_user_id AND p.post_id = e.post_id AND p.state = 0
    WHERE e.to_user_id = c.user_id AND e.type = 1
    LIMIT 1
  )`,
}

// WrongCounts implements [storage.Comparer]. Mostly no count is wrong, and finding that takes less
// time than finding which are.
func (s *Store) WrongCounts(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange) ([]storage.WrongCount, error) {
	agree, err := s.countsAgree(ctx, side, shard, owners)
	if err != nil || agree {
		return nil, err
	}
	wrong := make(map[storage.UserID]storage.WrongCount)
	each := func(rows *sql.Rows) error {
		var w storage.WrongCount
		err := rows.Scan(&w.User, &w.Have, &w.Are)
		wrong[w.User] = w // the last edge may end between the statements
		return err
	}
	args := []any{int64(owners.After), int64(owners.UpTo)}
	for _, text := range []string{sqlWrongCounts[side], sqlCountsOfNone[side]} {
		if err := s.db.Scan(ctx, "reconcile.counts", shard, text, args, each); err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(wrong, func(user storage.UserID, _ storage.WrongCount) bool { return !isOf(owners, user) })
	return slices.SortedFunc(maps.Values(wrong), func(a, b storage.WrongCount) int { return cmp.Compare(a.User, b.User) }), nil
}

func (s *Store) countsAgree(ctx context.Context, side storage.Side, shard int, owners storage.OwnerRange) (bool, error) {
	after, upTo := int64(owners.After), int64(owners.UpTo)
	var own, right, count int64
	err := s.db.Scan(ctx, "reconcile.counts", shard, sqlCountsAgree[side], []any{after, upTo, after, upTo}, func(rows *sql.Rows) error {
		return rows.Scan(&own, &right, &count)
	})
	return own == right && own == count, err
}
