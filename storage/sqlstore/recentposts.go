package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// The indexes have the places of posts: no row of a post is read.

// The bounds are written as those of pages.go. Served by idx_post_latest.
const sqlRecentPosts = `
SELECT author_id, post_id, created_at
FROM post /*! FORCE INDEX (idx_post_latest) */
WHERE state = 0 AND created_at >= ? AND created_at <= ? AND (created_at < ? OR post_id < ?)
ORDER BY created_at DESC, post_id DESC LIMIT ?`

// One entry of each author is read, however many posts there are. With a list of authors and GROUP BY, MariaDB reads all
// entries of each author if most authors have a few posts: for an author with 100,000 posts it takes 20 ms instead of
// 0.05 ms. So it gets a SELECT for each author, and SQLite, which would take longer to parse them than to find the entries, one for all.
// Served by idx_post_list.
var sqlLastPosts = db.Text{
	MySQL: `
SELECT ? AS author, MAX(created_at)
FROM post FORCE INDEX (idx_post_list)
WHERE author_id = ? AND state = 0 AND created_at <= ?`,
	SQLite: `
WITH wanted(author, up_to) AS (VALUES (?, ?))
SELECT author, (SELECT MAX(created_at) FROM post WHERE author_id = author AND state = 0 AND created_at <= up_to)
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
	return db.LookUp(s.db, authors, s.sql.MaxPairs, s.shards.Of, func(shard int, authors []storage.UserID, found func(storage.UserID, storage.Micros)) error {
		text, args := s.lastPosts(authors, upTo)
		return s.db.Query(ctx, "posts.last", shard, len(authors), text, args, func(rows *sql.Rows) error {
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

func (s *Store) lastPosts(authors []storage.UserID, upTo storage.Micros) (text string, args []any) {
	text = s.sql.Text(sqlLastPosts)
	if s.db.IsSQLite() {
		wanted := db.Filled(authors)
		for _, id := range wanted {
			args = append(args, int64(id), int64(upTo))
		}
		return db.Listed(text, len(wanted)), args
	}
	for _, id := range authors {
		args = append(args, int64(id), int64(id), int64(upTo))
	}
	return s.unionAll(slices.Repeat([]string{text}, len(authors))), args
}
