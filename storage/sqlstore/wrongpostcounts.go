package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Posts with favorites whose counts are wrong or missing. Served by idx_favorite_inbox_list and the
	// primary keys of post and post_counts.
	sqlWrongPostCounts = `
SELECT /*+ INL_JOIN(p, c) */ e.author, e.number, COALESCE(c.favorite_count, 0), e.n
FROM (
  SELECT to_user_id AS author, post_id AS number, COUNT(*) AS n
  FROM favorite_inbox
  WHERE to_user_id > ? AND to_user_id <= ? AND type = 1
  GROUP BY to_user_id, post_id
) e
JOIN post p ON p.author_id = e.author AND p.post_id = e.number
LEFT JOIN post_counts c ON c.author_id = e.author AND c.post_id = e.number
WHERE c.author_id IS NULL OR c.favorite_count <> e.n`

	// Counts of posts that nobody has favorited. Served by the primary key of post_counts and
	// idx_favorite_inbox_list.
	sqlPostCountsOfNone = `
SELECT c.author_id, c.post_id, c.favorite_count, 0
FROM post_counts c
WHERE c.author_id > ? AND c.author_id <= ? AND c.favorite_count <> 0
  AND NOT EXISTS (SELECT /*+ NO_DECORRELATE() */ 1 FROM favorite_inbox e WHERE e.to_user_id = c.author_id AND e.post_id = c.post_id AND e.type = 1)`

	// Served by idx_favorite_inbox_list.
	sqlFavoritesOfPost = `
SELECT COUNT(*)
FROM favorite_inbox
WHERE to_user_id = ? AND post_id = ? AND type = 1`

	// Served by the primary key.
	sqlSetPostFavorites = `
UPDATE post_counts
SET favorite_count = ?, version = version + 1
WHERE author_id = ? AND post_id = ? AND favorite_count <> ?`
)

// WrongPostCounts implements [storage.Comparer].
func (s *Store) WrongPostCounts(ctx context.Context, shard int, owners storage.OwnerRange) ([]storage.WrongCount, error) {
	wrong := make(map[storage.PostID]storage.WrongCount)
	for _, text := range []string{sqlWrongPostCounts, sqlPostCountsOfNone} {
		err := s.db.Scan(ctx, "reconcile.postcounts", shard, text, []any{int64(owners.After), int64(owners.UpTo)}, func(rows *sql.Rows) error {
			var w storage.WrongCount
			err := rows.Scan(&w.User, &w.Post, &w.Have, &w.Are)
			if isOf(owners, w.User) {
				wrong[storage.PostID{Author: w.User, Number: w.Post}] = w // the last favorite may end between the statements
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(wrong), func(a, b storage.WrongCount) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Post, b.Post))
	}), nil
}

// RecountPosts implements [storage.Repairer], in the lock order of [Store.Apply]. Each author takes
// one transaction.
func (s *Store) RecountPosts(ctx context.Context, posts []storage.PostID) []storage.Result[bool] {
	return db.ReroutedAll(ctx, s.db, len(posts), func(at []int) []storage.Result[bool] {
		shardOf := func(id storage.PostID) int { return s.shards.Of(id.Author) }
		return db.LookUp(s.db, storage.Chosen(posts, at), s.sql.MaxKeys, shardOf, func(shard int, posts []storage.PostID, found func(storage.PostID, bool)) error {
			byAuthor := make(map[storage.UserID][]storage.PostID)
			for _, id := range posts {
				byAuthor[id.Author] = append(byAuthor[id.Author], id)
			}
			for author, posts := range byAuthor {
				err := s.transactOn(ctx, "recount.posts", shard, func(w *writer) error { return w.recountPosts(author, posts) })
				if err != nil {
					return err
				}
				for _, id := range posts {
					found(id, true)
				}
			}
			return nil
		})
	})
}

func (w *writer) recountPosts(author storage.UserID, posts []storage.PostID) error {
	if _, err := w.lockCountsOf(author); err != nil {
		return err
	}
	for _, id := range slices.SortedFunc(slices.Values(posts), comparePosts) {
		w.touchPost(id)
		var n int64
		if _, err := w.readOne(sqlFavoritesOfPost, []any{int64(author), id.Number}, &n); err != nil {
			return err
		}
		if _, err := w.Exec(1, sqlSetPostFavorites, n, int64(author), id.Number, n); err != nil {
			return err
		}
	}
	w.unchanged(nil)
	return nil
}

// comparePosts orders posts as their keys are.
func comparePosts(a, b storage.PostID) int {
	return cmp.Or(cmp.Compare(a.Author, b.Author), cmp.Compare(a.Number, b.Number))
}
