package sqlstore

import (
	"context"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Served by the primary keys.
var (
	postsInOrder = db.ReadInOrder("{post}", "post", "")

	commentsInOrder = db.InOrder{
		Rest: db.WithColumns(`
SELECT /*! STRAIGHT_JOIN */ {c.comment}
FROM comment c /*! FORCE INDEX (PRIMARY) */
JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = c.author_id AND p.post_id = c.post_id AND p.state = 0
WHERE c.author_id = ? AND c.comment_id > ?
ORDER BY c.comment_id LIMIT ?`),
		Behind: db.Both(db.WithColumns(`
SELECT /*! STRAIGHT_JOIN */ {c.comment}
FROM comment c INDEXED BY sqlite_autoindex_comment_1
CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = c.author_id AND p.post_id = c.post_id AND p.state = 0
WHERE c.author_id > ?
ORDER BY c.author_id, c.comment_id LIMIT ?`)),
	}
)

func (m moment) Posts(ctx context.Context, after storage.PostID, limit int) ([]storage.PostRow, error) {
	return readInOrder(ctx, m, postsInOrder, after.Author, after.Number, limit, postColumns)
}

func (m moment) Comments(ctx context.Context, after storage.CommentID, limit int) ([]storage.Comment, error) {
	return readInOrder(ctx, m, commentsInOrder, after.Author, after.Number, limit, commentColumns)
}
