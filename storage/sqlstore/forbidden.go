package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"kith/storage"
)

// Blocks are few: it is cheaper to look for those of each user than to look through
// the follows. Served by the primary keys of user_counts and following, and by
// idx_follower_list.
const sqlForbiddenFollows = `
SELECT /*! STRAIGHT_JOIN */ f.from_user_id, f.to_user_id
FROM user_counts c
CROSS JOIN follower b ON b.to_user_id = c.user_id AND b.type = 2
CROSS JOIN following f ON f.from_user_id = b.to_user_id AND f.to_user_id = b.from_user_id AND f.type = 1
WHERE c.user_id > ? AND c.user_id <= ?`

// ForbiddenFollows implements [storage.Comparer].
func (s *Store) ForbiddenFollows(ctx context.Context, shard int, owners storage.OwnerRange) ([]storage.Pair, error) {
	var follows []storage.Pair
	args := []any{int64(owners.After), int64(owners.UpTo)}
	err := s.db.Scan(ctx, "reconcile.forbidden", shard, sqlForbiddenFollows, args, func(rows *sql.Rows) error {
		var p storage.Pair
		err := rows.Scan(&p.From, &p.To)
		if isOf(owners, p.From) {
			follows = append(follows, p)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(follows, storage.Forward.Compare)
	return follows, nil
}
