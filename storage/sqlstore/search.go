package sqlstore

import (
	"context"
	"database/sql"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A handle is on the shard of its own bucket, so handles with a common beginning are on every
// shard: each shard is asked for as many as are wanted. Served by the primary key.
const sqlSearchHandles = `
SELECT handle, user_id
FROM handles
WHERE handle >= ? AND handle > ? AND handle < ?
ORDER BY handle LIMIT ?`

// behindHandles comes behind every character of a handle, as bytes are compared.
const behindHandles = "{"

// SearchHandles implements [storage.HandleSearcher].
func (s *Store) SearchHandles(ctx context.Context, prefix, after string, limit int) ([]storage.HandleOwner, error) {
	// No handle begins with a text that cannot be a handle, and none is listed behind it. Such a
	// text must not reach the server either: compared with characters outside of ASCII, the column
	// has no index.
	if prefix != "" && !storage.ValidHandle(prefix) || after != "" && !storage.ValidHandle(after) {
		return nil, ctx.Err()
	}
	args := []any{prefix, after, prefix + behindHandles, limit}
	lists := make([][]storage.HandleOwner, len(s.db.All()))
	err := db.EveryShard(len(lists), func(i int) error {
		return s.db.Query(ctx, "search", i, limit, sqlSearchHandles, args, func(rows *sql.Rows) error {
			var h storage.HandleOwner
			err := rows.Scan(&h.Handle, &h.User)
			if s.shards.OfHandle(h.Handle) == i { // not one that is being moved
				lists[i] = append(lists[i], h)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return topOf(lists, limit, func(a, b storage.HandleOwner) int { return strings.Compare(a.Handle, b.Handle) }), nil
}
