package sqlstore

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

var (
	// Served by the primary key.
	sqlPostsThere = `
SELECT post_id
FROM post /*! FORCE INDEX (PRIMARY) */
WHERE author_id = ? AND post_id IN (?)`

	// Served by idx_post_key.
	sqlKeysThere = `
SELECT client_key
FROM post /*! FORCE INDEX (idx_post_key) */
WHERE author_id = ? AND client_key IN (?)`

	sqlRestorePosts = db.WithColumns(`
INSERT INTO post ({post})
VALUES ({?})`)

	// Served by the primary key.
	sqlCommentsThere = `
SELECT comment_id
FROM comment /*! FORCE INDEX (PRIMARY) */
WHERE author_id = ? AND comment_id IN (?)`
)

var errClientKey = fmt.Errorf("client key %w", storage.ErrKeyTaken)

// restorePosts writes posts of one author, whose counts it locks.
func (w *writer) restorePosts(author storage.UserID, posts []storage.PostRow) ([]storage.Result[bool], error) {
	results := make([]storage.Result[bool], len(posts))
	switch is, err := w.lockState(author); {
	case errors.Is(err, storage.ErrUserUnknown), err == nil && is.State == storage.Deleted:
		return results, nil
	case err != nil:
		return nil, err
	}
	there, err := thereOf(w, sqlPostsThere, author, posts, func(p storage.PostRow) int64 { return p.Number })
	if err != nil {
		return nil, err
	}
	taken, err := thereOf(w, sqlKeysThere, author, posts, func(p storage.PostRow) string { return p.Key })
	if err != nil {
		return nil, err
	}
	var rows []storage.PostRow
	var published judge.Diff
	for i, p := range posts {
		w.touchPost(p.PostID)
		switch {
		case there[p.Number]:
			results[i].Found = true
			continue
		case taken[p.Key]:
			results[i].Err = errClientKey
			continue
		}
		there[p.Number], taken[p.Key] = true, true
		results[i].Found, results[i].Value = true, true
		news := storage.PostDeleted
		if !p.Deleted {
			published.Posts, published.Active = published.Posts+1, max(published.Active, p.At.Day())
			news = storage.PostPublished
		}
		w.change.AddPost(news, storage.PostAt{PostID: p.PostID, CreatedAt: p.At})
		rows = append(rows, p)
	}
	_, err = db.WriteRows(w.Tx, sqlRestorePosts, rows, func(args []any, p storage.PostRow) []any { return append(args, postColumns(&p)...) })
	if err != nil {
		return nil, err
	}
	_, err = db.WriteRows(w.Tx, sqlInsertPostCounts, rows, func(args []any, p storage.PostRow) []any { return append(args, int64(author), p.Number) })
	if err != nil {
		return nil, err
	}
	if published.Posts == 0 {
		return results, nil
	}
	return results, w.countPosts(author, published)
}

// thereOf reads which values of rows of an author exist already.
func thereOf[R any, T comparable](w *writer, text string, author storage.UserID, rows []R, of func(R) T) (map[T]bool, error) {
	there := make(map[T]bool)
	args := append([]any{int64(author)}, storage.Each(rows, func(row R) any { return of(row) })...)
	err := w.Read(len(rows), db.Listed(text, len(rows)), args, db.EachRow(db.OneColumn, func(value T) { there[value] = true }))
	return there, err
}

// restoreComments writes comments on posts of one author, post by post. It locks each post.
func (w *writer) restoreComments(author storage.UserID, comments []storage.Comment) ([]storage.Result[bool], error) {
	results, order := make([]storage.Result[bool], len(comments)), storage.Indexes(len(comments))
	there, err := thereOf(w, sqlCommentsThere, author, comments, func(c storage.Comment) int64 { return c.Number })
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(comments[i].Post, comments[j].Post) })
	for post, at := range runs(order, func(i int) storage.PostID { return comments[i].On() }) {
		if err := w.restoreBelow(post, comments, at, there, results); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// restoreBelow writes those comments at some indexes, which are all on one post.
func (w *writer) restoreBelow(post storage.PostID, comments []storage.Comment, at []int, there map[int64]bool, results []storage.Result[bool]) error {
	switch _, err := w.lockPost(post); {
	case errors.Is(err, storage.ErrPostUnknown):
		return nil
	case err != nil:
		return err
	}
	added := int64(0)
	for _, i := range at {
		c := comments[i]
		w.touchComment(c.CommentID)
		if there[c.Number] {
			results[i].Found = true
			continue
		}
		taken := false
		key := []any{int64(c.By), int64(post.Author), post.Number, c.Key}
		if err := w.Read(1, sqlCommentOfKey, key, func(*sql.Rows) error { taken = true; return nil }); err != nil {
			return err
		}
		if taken {
			results[i].Err = errClientKey
			continue
		}
		if _, err := w.Exec(1, sqlInsertComment, commentColumns(&c)...); err != nil {
			return err
		}
		there[c.Number], results[i].Found, results[i].Value = true, true, true
		added++
	}
	if added == 0 {
		return nil
	}
	return w.countComments(post, added)
}
