package sqlstore

import (
	"context"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// Served by the primary keys.
var sqlComments = db.Both(db.WithColumns(`
WITH wanted(a, n) AS (VALUES (?, ?))
SELECT {c.comment but client_key}
FROM wanted
CROSS JOIN comment c ON c.author_id = a AND c.comment_id = n
JOIN post p /*! FORCE INDEX (PRIMARY) */ ON p.author_id = c.author_id AND p.post_id = c.post_id
WHERE p.state = 0`))

var (
	// Served by idx_comment_list.
	sqlCommentPage = db.WithColumns(`
SELECT ? AS query, {comment but client_key}
FROM comment /*! FORCE INDEX (idx_comment_list) */
WHERE author_id = ? AND post_id = ? AND created_at <= ? AND (created_at < ? OR created_at = ? AND comment_id < ?)
ORDER BY created_at DESC, comment_id DESC LIMIT ?`)

	// Served by idx_comment_key.
	sqlCommentOfKey = db.WithColumns(`
SELECT {comment but client_key}
FROM comment
WHERE user_id = ? AND author_id = ? AND post_id = ? AND client_key = ?`)

	sqlInsertComment = db.WithColumns(`
INSERT INTO comment ({comment})
VALUES ({?})`)

	// Served by the primary key.
	sqlDeleteComments = `
DELETE FROM comment
WHERE author_id = ? AND comment_id IN (?)`
)

// readComments answers [storage.CommentLookups].
func (s *Store) readComments(ctx context.Context, ids []storage.CommentID) []storage.Result[storage.Comment] {
	shardOf := func(id storage.CommentID) int { return s.shards.Of(id.Author) }
	return db.LookUp(s.db, ids, s.sql.MaxPairs, shardOf, func(shard int, ids []storage.CommentID, found func(storage.CommentID, storage.Comment)) error {
		text, args := forPosts(s.sql, sqlComments, ids)
		return s.db.Query(ctx, "comments", shard, len(ids), text, args, db.EachRow(wholeCommentColumns, func(c storage.Comment) { found(c.CommentID, c) }))
	})
}

// wholeCommentColumns are the values of {comment but client_key}.
func wholeCommentColumns(c *storage.Comment) []any {
	return []any{&c.Author, &c.Number, &c.Post, &c.By, &c.Text, &c.CreatedAt}
}

// commentColumns are the values of {comment}.
func commentColumns(c *storage.Comment) []any {
	return []any{&c.Author, &c.Number, &c.Post, &c.By, &c.Key, &c.Text, &c.CreatedAt}
}

// readCommentPages answers [storage.CommentPageLookups].
func (s *Store) readCommentPages(ctx context.Context, queries []storage.PlaceQuery) []storage.Result[[]storage.Comment] {
	return eachPage(ctx, s, "comments.pages", queries, pagesOf[storage.PlaceQuery, storage.Comment]{
		owner: func(q storage.PlaceQuery) storage.UserID { return q.Of.Author },
		text: func(q storage.PlaceQuery, args []any) (string, []any) {
			return sqlCommentPage, append(append(args, int64(q.Of.Author), q.Of.Number), behind(q.After, q.Limit)...)
		},
		columns: wholeCommentColumns,
		order:   func(_ storage.PlaceQuery, page []storage.Comment) { inOrder(page, storage.Comment.Place) },
	})
}

// AddComment implements [storage.Store].
func (s *Store) AddComment(ctx context.Context, comment storage.Comment) (storage.Comment, bool, error) {
	return made(ctx, s.transactFor, "comment", comment.Author, func(w *writer) (storage.Comment, bool, error) { return w.addComment(comment) })
}

func (w *writer) addComment(comment storage.Comment) (c storage.Comment, added bool, err error) {
	if _, err := w.lockPost(comment.On()); err != nil {
		return c, false, err
	}
	_, err = w.ReadOne(sqlCommentOfKey, []any{int64(comment.By), int64(comment.Author), comment.Post, comment.Key}, wholeCommentColumns(&c)...)
	if err != nil || c.Number != 0 {
		if err == nil { // its writer may have been killed before it reported it
			w.commented(c)
			w.change.AddPost(storage.PostEdited, storage.PostAt{PostID: comment.On()})
		}
		return c, false, err
	}
	j := w.store.judge()
	if err := w.look(j, []storage.Pair{{From: comment.Author, To: comment.By}}, storage.Forward, storage.Inverse); err != nil {
		return c, false, err
	}
	if err := j.MayComment(comment.Author, comment.By); err != nil {
		return c, false, err
	}
	c = comment
	c.Key = ""
	w.touchComment(c.CommentID)
	w.commented(c)
	if _, err := w.Exec(1, sqlInsertComment, commentColumns(&comment)...); err != nil {
		return c, false, err
	}
	return c, true, w.countComments(comment.On(), 1)
}

// commented notes a comment that can be read.
func (w *writer) commented(c storage.Comment) {
	on := storage.PostAt{PostID: storage.PostID{Author: c.Author, Number: c.Post}}
	w.change.Posts = append(w.change.Posts, storage.ChangedPost{PostAt: on, News: storage.PostCommented, Comment: c.Number})
}

func (w *writer) touchComment(id storage.CommentID) {
	w.comments = append(w.comments, id)
	w.Touch(db.MovedRow{Kind: db.CommentRow, Owner: id.Author, Peer: storage.UserID(id.Number)})
}

// DeleteComment implements [storage.Store].
func (s *Store) DeleteComment(ctx context.Context, id storage.CommentID, by storage.UserID) (on storage.PostID, err error) {
	c, deleted, err := made(ctx, s.transactFor, "comment.delete", id.Author, func(w *writer) (storage.Comment, bool, error) {
		c, err := w.deleteComment(id, by)
		return c, c.Number != 0, err
	})
	if deleted {
		on = storage.PostID{Author: id.Author, Number: c.Post}
	}
	return on, err
}

// deleteComment deletes a comment, which says which post is to be locked, and returns it; the zero one if nothing was deleted.
func (w *writer) deleteComment(id storage.CommentID, by storage.UserID) (storage.Comment, error) {
	c, err := w.comment(id)
	if err != nil || c.Number == 0 || !judge.MayDeleteComment(c, by) {
		return storage.Comment{}, err
	}
	post := storage.PostID{Author: id.Author, Number: c.Post}
	if err := w.lockPostCounts(post); err != nil {
		return storage.Comment{}, err
	}
	if n, err := w.deleteComments(post, []int64{id.Number}); err != nil || n == 0 {
		return storage.Comment{}, err
	}
	return c, nil
}

// comment reads a comment; the zero one if there is none.
func (w *writer) comment(id storage.CommentID) (c storage.Comment, err error) {
	text, args := forPosts(w.store.sql, sqlComments, []storage.CommentID{id})
	_, err = w.ReadOne(text, args, wholeCommentColumns(&c)...)
	return c, err
}

// deleteComments deletes those comments on a post that exist. The post's counts are locked.
func (w *writer) deleteComments(post storage.PostID, numbers []int64) (deleted int, err error) {
	args := []any{int64(post.Author)}
	for _, n := range numbers {
		args = append(args, n)
		w.touchComment(storage.CommentID{Author: post.Author, Number: n})
	}
	deleted, err = w.Exec(len(numbers), db.Listed(sqlDeleteComments, len(numbers)), args...)
	if err != nil || deleted == 0 {
		return 0, err
	}
	return deleted, w.countComments(post, -int64(deleted))
}
