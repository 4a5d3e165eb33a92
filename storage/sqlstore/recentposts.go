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
WHERE state = 0 AND created_at >= ? AND created_at <= ? AND (created_at < ? OR created_at = ? AND post_id < ?)
ORDER BY created_at DESC, post_id DESC LIMIT ?`

// One entry of each author is read, however many posts there are. With a list of authors and GROUP BY, MariaDB reads all
// entries of each author if most authors have a few posts: for an author with 100,000 posts it takes 20 ms instead of
// 0.05 ms. So it gets a SELECT for each author, and SQLite, which would take longer to parse them than to find the entries, one for all.
// Served by idx_post_list.
var sqlLastPosts = db.Text{
	MySQL: `
SELECT ? AS author, ? AS up_to, MAX(created_at)
FROM post FORCE INDEX (idx_post_list)
WHERE author_id = ? AND state = 0 AND created_at <= ?`,
	SQLite: `
WITH wanted(author, up_to) AS (VALUES (?, ?))
SELECT author, up_to, (SELECT MAX(created_at) FROM post WHERE author_id = author AND state = 0 AND created_at <= up_to)
FROM wanted`,
}

// readRecentPosts answers [storage.RecentPostLookups].
func (s *Store) readRecentPosts(ctx context.Context, q storage.ShardQuery[storage.Place]) ([]storage.PostAt, error) {
	args := append([]any{int64(q.Until)}, behind(q.After, q.Limit)...)
	var list []storage.PostAt
	return list, s.db.Query(ctx, "posts.recent", q.Shard, q.Limit, sqlRecentPosts, args, db.AppendTo(&list, func(p *storage.PostAt) []any {
		return []any{&p.Author, &p.Number, &p.CreatedAt}
	}))
}

// readLastPosts answers [storage.LastPostLookups].
func (s *Store) readLastPosts(ctx context.Context, queries []storage.LastQuery) []storage.Result[storage.Micros] {
	shardOf := func(q storage.LastQuery) int { return s.shards.Of(q.Author) }
	return db.LookUp(s.db, queries, s.sql.MaxPairs, shardOf, func(shard int, queries []storage.LastQuery, found func(storage.LastQuery, storage.Micros)) error {
		text, args := s.lastPosts(queries)
		return s.db.Query(ctx, "posts.last", shard, len(queries), text, args, func(rows *sql.Rows) error {
			var q storage.LastQuery
			var at sql.NullInt64 // NULL: the author has no such post
			err := rows.Scan(&q.Author, &q.UpTo, &at)
			if at.Valid {
				found(q, storage.Micros(at.Int64))
			}
			return err
		})
	})
}

func (s *Store) lastPosts(queries []storage.LastQuery) (text string, args []any) {
	text = s.sql.Text(sqlLastPosts)
	if s.db.IsSQLite() {
		wanted := db.Filled(queries)
		for _, q := range wanted {
			args = append(args, int64(q.Author), int64(q.UpTo))
		}
		return db.Listed(text, len(wanted)), args
	}
	for _, q := range queries {
		args = append(args, int64(q.Author), int64(q.UpTo), int64(q.Author), int64(q.UpTo))
	}
	return s.unionAll(slices.Repeat([]string{text}, len(queries))), args
}
