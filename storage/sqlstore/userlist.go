package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
)

// Served by the primary key.
const sqlUserIDsAfter = `
SELECT user_id
FROM users
WHERE user_id > ?
ORDER BY user_id LIMIT ?`

// UserIDsAfter implements [storage.UserLister].
func (s *Store) UserIDsAfter(ctx context.Context, shard int, after storage.UserID, limit int) ([]storage.UserID, error) {
	var ids []storage.UserID
	err := s.query(ctx, "users.after", shard, limit, sqlUserIDsAfter, []any{int64(after), limit}, func(rows *sql.Rows) error {
		var id storage.UserID
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}
