package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Where posts are in time is in the indexes: no row of a post is read.

// The bounds are written as those of pages.go. Served by idx_post_latest.
const sqlRecentPosts = `
SELECT author_id, post_id, created_at
FROM post /*! FORCE INDEX (idx_post_latest) */
WHERE state = 0 AND created_at >= ? AND created_at <= ? AND (created_at < ? OR post_id < ?)
ORDER BY created_at DESC, post_id DESC LIMIT ?`

// MySQL skips from author to author within the index unless its statistics say that they have but a few posts each. Served by
// idx_post_list.
var sqlLastPosts = db.Text{
	MySQL: `
SELECT author_id, MAX(created_at)
FROM post FORCE INDEX (idx_post_list)
WHERE author_id IN (?) AND state = 0 AND created_at <= ?
GROUP BY author_id`,
	SQLite: `
WITH wanted(a) AS (VALUES (?))
SELECT a, (
  SELECT created_at
  FROM post INDEXED BY idx_post_list
  WHERE author_id = a AND state = 0 AND created_at <= ?
  ORDER BY created_at DESC LIMIT 1)
FROM wanted`,
}

// RecentPosts implements [storage.RecentPostReader].
func (s *Store) RecentPosts(ctx context.Context, q storage.RecentQuery) ([]storage.PostAt, error) {
	args := append([]any{int64(q.Since)}, behind(q.After, q.Limit)...)
	var list []storage.PostAt
	err := s.db.Query(ctx, "posts.recent", q.Shard, q.Limit, sqlRecentPosts, args, func(rows *sql.Rows) error {
		var p storage.PostAt
		err := rows.Scan(&p.Author, &p.Number, &p.CreatedAt)
		list = append(list, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// LastPosts implements [storage.RecentPostReader].
func (s *Store) LastPosts(ctx context.Context, authors []storage.UserID, upTo storage.Micros) []storage.Result[storage.Micros] {
	return db.LookUp(s.db, authors, s.sql.MaxKeys, s.shards.Of, func(shard int, authors []storage.UserID, found func(storage.UserID, storage.Micros)) error {
		wanted := db.Filled(authors)
		args := make([]any, 0, len(wanted)+1)
		for _, id := range wanted {
			args = append(args, int64(id))
		}
		text := db.Listed(s.sql.Text(sqlLastPosts), len(wanted))
		return s.db.Query(ctx, "posts.last", shard, len(authors), text, append(args, int64(upTo)), func(rows *sql.Rows) error {
			var author storage.UserID
			var at sql.NullInt64 // NULL: the author has no such post
			err := rows.Scan(&author, &at)
			if at.Valid {
				found(author, storage.Micros(at.Int64))
			}
			return err
		})
	})
}
