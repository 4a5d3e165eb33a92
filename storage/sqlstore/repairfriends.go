package sqlstore

import (
	"context"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sides"
	"kith/storage/sqlstore/internal/db"
)

// Users with their count of friends and the real number. The shorter list, as far as the counts are
// right, is read, and each of its peers is looked up in the other table. The hints are for TiDB,
// which would hash both tables whole; the others pass them over. Served by the primary keys, and by
// idx_following_list and idx_follower_list.
const (
	sqlWrongFriends = `
SELECT *
FROM (
  SELECT c.user_id, c.friend_count, CASE
    WHEN c.following_count <= c.follower_count THEN (
      SELECT /*+ NO_DECORRELATE() INL_JOIN(r) */ /*! STRAIGHT_JOIN */ COUNT(*)
      FROM following f
      CROSS JOIN follower r ON r.to_user_id = f.from_user_id AND r.from_user_id = f.to_user_id AND r.type = 1
      WHERE f.from_user_id = c.user_id AND f.type = 1
    )
    ELSE (
      SELECT /*+ NO_DECORRELATE() INL_JOIN(f) */ /*! STRAIGHT_JOIN */ COUNT(*)
      FROM follower r
      CROSS JOIN following f ON f.from_user_id = r.to_user_id AND f.to_user_id = r.from_user_id AND f.type = 1
      WHERE r.to_user_id = c.user_id AND r.type = 1
    )
  END AS friends
  FROM user_counts c
  WHERE c.user_id > ? AND c.user_id <= ?
) counted
WHERE friend_count <> friends
ORDER BY user_id`

	sqlFriendsOf = `
SELECT c.user_id, c.friend_count, CASE
  WHEN c.following_count <= c.follower_count THEN (
    SELECT /*+ NO_DECORRELATE() INL_JOIN(r) */ /*! STRAIGHT_JOIN */ COUNT(*)
    FROM following f
    CROSS JOIN follower r ON r.to_user_id = f.from_user_id AND r.from_user_id = f.to_user_id AND r.type = 1
    WHERE f.from_user_id = c.user_id AND f.type = 1
  )
  ELSE (
    SELECT /*+ NO_DECORRELATE() INL_JOIN(f) */ /*! STRAIGHT_JOIN */ COUNT(*)
    FROM follower r
    CROSS JOIN following f ON f.from_user_id = r.to_user_id AND f.to_user_id = r.from_user_id AND f.type = 1
    WHERE r.to_user_id = c.user_id AND r.type = 1
  )
END AS friends
FROM user_counts c
WHERE c.user_id IN (?)`
)

// WrongFriends implements [sides.Comparer].
func (s *Store) WrongFriends(ctx context.Context, shard int, owners sides.OwnerRange) ([]sides.WrongCount, error) {
	return s.wrongIn(ctx, "reconcile.friends", shard, owners, ofUsers, sqlWrongFriends)
}

// RecountFriends implements [sides.Repairer].
func (s *Store) RecountFriends(ctx context.Context, users []storage.UserID) []storage.Result[bool] {
	return recountByShard(ctx, s, users, s.shards.Of, func(shard int, users []storage.UserID) error {
		return s.transactOn(ctx, "recount.friends", shard, func(w *writer) error { return w.recountFriends(users) })
	})
}

func (w *writer) recountFriends(users []storage.UserID) error {
	users = slices.Sorted(slices.Values(users))
	if err := w.lockCounts(users); err != nil {
		return err
	}
	diffs := make(judge.Diffs)
	err := w.Read(len(users), db.Listed(sqlFriendsOf, len(users)), db.Arguments(users), db.EachRow(ofUsers, func(wrong sides.WrongCount) {
		if wrong.Have != wrong.Are {
			diffs[wrong.User] = judge.Diff{Friend: wrong.Are - wrong.Have}
		}
	}))
	if err != nil {
		return err
	}
	return w.addCounts(diffs)
}
