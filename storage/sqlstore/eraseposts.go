package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
)

const (
	// Where a user has commented, in the order of the index. Served by idx_comment_key.
	sqlCommentedPosts = `
SELECT DISTINCT author_id, post_id
FROM comment
WHERE user_id = ? AND author_id >= ? AND (author_id > ? OR post_id > ?)
ORDER BY author_id, post_id LIMIT ?`

	// Served by idx_comment_key.
	sqlOwnComments = `
SELECT comment_id
FROM comment /*! FORCE INDEX (idx_comment_key) */
WHERE user_id = ? AND author_id = ? AND post_id = ? LIMIT ?`
)

// eraseComments deletes what a user has written below posts, on all shards. A post is looked for
// where it is now: its bucket may have moved since the shard was read.
func (s *Store) eraseComments(ctx context.Context, user storage.UserID) error {
	for shard := range s.db.All() {
		var after storage.PostID
		for {
			var posts []storage.PostID
			args := []any{int64(user), int64(after.Author), int64(after.Author), after.Number, erasedAtOnce}
			err := s.db.Query(ctx, "comments.posts", shard, erasedAtOnce, sqlCommentedPosts, args, func(rows *sql.Rows) error {
				var id storage.PostID
				err := rows.Scan(&id.Author, &id.Number)
				posts = append(posts, id)
				return err
			})
			if err != nil {
				return err
			}
			for _, id := range posts {
				if err := s.eraseCommentsOn(ctx, id, user); err != nil {
					return err
				}
			}
			if len(posts) < erasedAtOnce {
				break
			}
			after = posts[len(posts)-1]
		}
	}
	return nil
}

// eraseCommentsOn deletes a user's comments on one post, in steps.
func (s *Store) eraseCommentsOn(ctx context.Context, post storage.PostID, user storage.UserID) error {
	for more := true; more; {
		err := s.transact(ctx, "erase", s.ownerOf(post.Author), func(w *writer) error {
			if err := w.lockPostCounts(post); err != nil {
				return err
			}
			var numbers []int64
			err := w.Read(erasedAtOnce, sqlOwnComments, []any{int64(user), int64(post.Author), post.Number, erasedAtOnce}, func(rows *sql.Rows) error {
				var n int64
				err := rows.Scan(&n)
				numbers = append(numbers, n)
				return err
			})
			more = len(numbers) == erasedAtOnce
			if err != nil || len(numbers) == 0 {
				return err
			}
			_, err = w.deleteComments(post, numbers)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
