package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

const (
	// As [sqlRestOfOwner], of posts. Served by the primary key.
	sqlRestOfPosts = `
SELECT author_id, post_id, client_key, text, media, created_at, edited_at, state, attributes
FROM post /*! FORCE INDEX (PRIMARY) */
WHERE author_id = ? AND post_id > ?
ORDER BY post_id LIMIT ?`

	// As [sqlRestOfOwner], of comments. Served by the primary keys.
	sqlRestOfComments = `
SELECT /*! STRAIGHT_JOIN */ c.author_id, c.comment_id, c.post_id, c.user_id, c.client_key, c.text, c.created_at
FROM comment c /*! FORCE INDEX (PRIMARY) */
JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = c.author_id AND p.post_id = c.post_id AND p.state = 0
WHERE c.author_id = ? AND c.comment_id > ?
ORDER BY c.comment_id LIMIT ?`
)

// As [sqlRowsOfOwnersBehind], of posts. Served by the primary key.
var sqlPostsBehind = db.Both(`
SELECT author_id, post_id, client_key, text, media, created_at, edited_at, state, attributes
FROM post INDEXED BY sqlite_autoindex_post_1
WHERE author_id > ?
ORDER BY author_id, post_id LIMIT ?`)

// As [sqlRowsOfOwnersBehind], of comments. Served by the primary keys.
var sqlCommentsBehind = db.Both(`
SELECT /*! STRAIGHT_JOIN */ c.author_id, c.comment_id, c.post_id, c.user_id, c.client_key, c.text, c.created_at
FROM comment c INDEXED BY sqlite_autoindex_comment_1
CROSS JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = c.author_id AND p.post_id = c.post_id AND p.state = 0
WHERE c.author_id > ?
ORDER BY c.author_id, c.comment_id LIMIT ?`)

func (m moment) Posts(ctx context.Context, after storage.PostID, limit int) ([]storage.PostRow, error) {
	var list []storage.PostRow
	last := storage.Pair{From: after.Author, To: storage.UserID(after.Number)}
	err := m.behind(ctx, last, limit, sqlRestOfPosts, m.sql.Text(sqlPostsBehind), func(rows *sql.Rows) error {
		var p storage.PostRow
		var media []byte
		err := rows.Scan(&p.Author, &p.Number, &p.Key, &p.Text, &media, &p.At, &p.EditedAt, &p.Deleted, &p.Attributes)
		if err == nil {
			p.Media, err = parseMedia(media)
		}
		list = append(list, p)
		return err
	})
	return list, err
}

func (m moment) Comments(ctx context.Context, after storage.CommentID, limit int) ([]storage.NewComment, error) {
	var list []storage.NewComment
	last := storage.Pair{From: after.Author, To: storage.UserID(after.Number)}
	err := m.behind(ctx, last, limit, sqlRestOfComments, m.sql.Text(sqlCommentsBehind), func(rows *sql.Rows) error {
		var c storage.NewComment
		err := rows.Scan(&c.Post.Author, &c.Number, &c.Post.Number, &c.By, &c.Key, &c.Text, &c.At)
		list = append(list, c)
		return err
	})
	return list, err
}
