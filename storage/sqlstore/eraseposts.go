package sqlstore

import (
	"context"
	"database/sql"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Rows of a user on a shard that may not be its own: identities, and posts on which it has commented.
	// Served by idx_identity_user.
	sqlErasedIdentities = `
SELECT 0 AS part, digest, 0 AS author, 0 AS post
FROM identities
WHERE user_id = ? AND digest > ?
ORDER BY digest LIMIT ?`

	// In the order of the index. Served by idx_comment_key.
	sqlCommentedPosts = `
SELECT 1 AS part, NULL AS digest, author_id, post_id
FROM comment
WHERE user_id = ? AND author_id >= ? AND (author_id > ? OR post_id > ?)
GROUP BY author_id, post_id
ORDER BY author_id, post_id LIMIT ?`

	// Served by idx_comment_key.
	sqlOwnComments = `
SELECT comment_id
FROM comment /*! FORCE INDEX (idx_comment_key) */
WHERE user_id = ? AND author_id = ? AND post_id = ? LIMIT ?`
)

// eraseElsewhere removes the identities of a user and its comments below posts, on all shards at once.
// Both are removed where they are now: buckets may have moved since the shard was read.
func (s *Store) eraseElsewhere(ctx context.Context, user storage.UserID) error {
	return db.EveryShard(len(s.db.All()), func(shard int) error {
		var digest string
		var post storage.PostID
		for {
			digests, posts, err := s.elsewhere(ctx, shard, user, digest, post)
			if err != nil {
				return err
			}
			for _, digest = range digests {
				if _, err := s.removeIdentity(ctx, "erase", digest, user); err != nil {
					return err
				}
			}
			for _, post = range posts {
				if err := s.eraseCommentsOn(ctx, post, user); err != nil {
					return err
				}
			}
			if len(digests) < erasedAtOnce && len(posts) < erasedAtOnce {
				return nil
			}
		}
	})
}

// elsewhere lists identities of a user and posts on which it has commented, behind the given ones.
func (s *Store) elsewhere(ctx context.Context, shard int, user storage.UserID, digest string, post storage.PostID) (digests []string, posts []storage.PostID, err error) {
	text := s.unionAll([]string{sqlErasedIdentities, sqlCommentedPosts})
	args := []any{int64(user), digest, erasedAtOnce, int64(user), int64(post.Author), int64(post.Author), post.Number, erasedAtOnce}
	err = s.db.Query(ctx, "erase.elsewhere", shard, erasedAtOnce, text, args, func(rows *sql.Rows) error {
		var part int
		var digest sql.NullString // TiDB refuses a text beside one of another collation
		var id storage.PostID
		err := rows.Scan(&part, &digest, &id.Author, &id.Number)
		if part == 0 {
			digests = append(digests, digest.String)
		} else {
			posts = append(posts, id)
		}
		return err
	})
	slices.Sort(digests) // SQL promises no order of a UNION ALL
	slices.SortFunc(posts, storage.PostID.Compare)
	return digests, posts, err
}

// eraseCommentsOn deletes a user's comments on one post, in steps.
func (s *Store) eraseCommentsOn(ctx context.Context, post storage.PostID, user storage.UserID) error {
	for more := true; more; {
		err := s.transactFor(ctx, "erase", post.Author, func(w *writer) error {
			if err := w.lockPostCounts(post); err != nil {
				return err
			}
			var numbers []int64
			err := w.Read(erasedAtOnce, sqlOwnComments, []any{int64(user), int64(post.Author), post.Number, erasedAtOnce}, db.AppendTo(&numbers, db.OneColumn))
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
