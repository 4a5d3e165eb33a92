package sqlstore

import (
	"context"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

var (
	// As [sqlRestOfOwner], of posts. Served by the primary key.
	sqlRestOfPosts = db.WithColumns(`
SELECT {post}
FROM post /*! FORCE INDEX (PRIMARY) */
WHERE author_id = ? AND post_id > ?
ORDER BY post_id LIMIT ?`)

	// As [sqlRestOfOwner], of comments. Served by the primary keys.
	sqlRestOfComments = db.WithColumns(`
SELECT /*! STRAIGHT_JOIN */ {c.comment}
FROM comment c /*! FORCE INDEX (PRIMARY) */
JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = c.author_id AND p.post_id = c.post_id AND p.state = 0
WHERE c.author_id = ? AND c.comment_id > ?
ORDER BY c.comment_id LIMIT ?`)
)

// As [sqlRowsOfOwnersBehind], of posts. Served by the primary key.
var sqlPostsBehind = db.Both(db.WithColumns(`
SELECT {post}
FROM post INDEXED BY sqlite_autoindex_post_1
WHERE author_id > ?
ORDER BY author_id, post_id LIMIT ?`))

// As [sqlRowsOfOwnersBehind], of comments. Served by the primary keys.
var sqlCommentsBehind = db.Both(db.WithColumns(`
SELECT /*! STRAIGHT_JOIN */ {c.comment}
FROM comment c INDEXED BY sqlite_autoindex_comment_1
CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = c.author_id AND p.post_id = c.post_id AND p.state = 0
WHERE c.author_id > ?
ORDER BY c.author_id, c.comment_id LIMIT ?`))

func (m moment) Posts(ctx context.Context, after storage.PostID, limit int) (list []storage.PostRow, err error) {
	last := storage.Pair{From: after.Author, To: storage.UserID(after.Number)}
	err = m.behind(ctx, last, limit, sqlRestOfPosts, m.sql.Text(sqlPostsBehind), appendTo(&list, postColumns))
	return list, err
}

func (m moment) Comments(ctx context.Context, after storage.CommentID, limit int) (list []storage.NewComment, err error) {
	last := storage.Pair{From: after.Author, To: storage.UserID(after.Number)}
	err = m.behind(ctx, last, limit, sqlRestOfComments, m.sql.Text(sqlCommentsBehind), appendTo(&list, commentColumns))
	return list, err
}
