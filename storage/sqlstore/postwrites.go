package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// Writes of posts lock the author's counts first, if they change them, and then the counts of the
// post. A transaction that holds the latter may write the post and its comments.
var (
	// Served by the primary key.
	sqlLockPostCounts = `
SELECT version
FROM post_counts
WHERE author_id = ? AND post_id = ? /*! FOR UPDATE */`

	// Served by idx_post_key.
	sqlPostOfKey = `
SELECT post_id, state
FROM post
WHERE author_id = ? AND client_key = ?`

	sqlInsertPost = db.WithColumns(`
INSERT INTO post ({post but edited_at, state})
VALUES ({?})`)

	sqlInsertPostCounts = `
INSERT INTO post_counts (author_id, post_id, version)
VALUES (?, ?, 1)`

	// Served by the primary key.
	sqlEditPost = `
UPDATE post /*! FORCE INDEX (PRIMARY) */
SET text = ?, media = ?, edited_at = ?, attributes = ?
WHERE author_id = ? AND post_id = ?`

	// Served by the primary key.
	sqlDeletePost = `
UPDATE post /*! FORCE INDEX (PRIMARY) */
SET text = '', media = '[]', attributes = '', state = 1
WHERE author_id = ? AND post_id = ?`

	// Served by the primary key.
	sqlCountComments = `
UPDATE post_counts
SET comment_count = comment_count + ?, version = version + 1
WHERE author_id = ? AND post_id = ?`

	// Publishing counts as being active. Served by the primary key.
	sqlCountPosts = `
UPDATE user_counts
SET post_count = post_count + ?, total_favorited = total_favorited + ?, version = version + 1, packed_version = packed_version + 1,
  active_day = CASE WHEN active_day < ? THEN ? ELSE active_day END
WHERE user_id = ?`
)

// Publish implements [storage.Store].
func (s *Store) Publish(ctx context.Context, post storage.PostRow) (storage.Post, bool, error) {
	return made(ctx, s.transactFor, "publish", post.Author, func(w *writer) (storage.Post, bool, error) { return w.publish(post) })
}

func (w *writer) publish(post storage.PostRow) (storage.Post, bool, error) {
	author, err := w.lockState(post.Author)
	if err == nil {
		err = judge.MayPublish(post.Author, author.State)
	}
	if err != nil {
		return storage.Post{}, false, err
	}
	known := storage.PostID{Author: post.Author}
	state := 0
	if _, err = w.ReadOne(sqlPostOfKey, []any{int64(post.Author), post.Key}, &known.Number, &state); err != nil {
		return storage.Post{}, false, err
	}
	if known.Number != 0 {
		w.unchanged(nil)
		p, err := w.post(known)
		if err == nil {
			w.published(p)
		}
		return p, false, err
	}
	w.touchPost(post.PostID)
	if _, err := w.Exec(1, sqlInsertPost, int64(post.Author), post.Number, post.Key, post.Text, mediaColumn(post.Media), int64(post.At), string(post.Attributes)); err != nil {
		return storage.Post{}, false, err
	}
	if _, err := w.Exec(1, sqlInsertPostCounts, int64(post.Author), post.Number); err != nil {
		return storage.Post{}, false, err
	}
	if err := w.countPosts(post.Author, judge.Diff{Posts: 1, Active: post.At.Day()}); err != nil {
		return storage.Post{}, false, err
	}
	p := storage.Post{
		PostID: post.PostID, Text: post.Text, Media: post.Media, CreatedAt: post.At, Counts: storage.PostCounts{Version: 1}, Attributes: post.Attributes,
	}
	w.published(p)
	return p, true, nil
}

// published notes a post that can be read, also one that was there before: its writer may have been killed before it reported it.
func (w *writer) published(p storage.Post) {
	w.change.AddPost(storage.PostPublished, p.At())
}

// countPosts changes the number of an author's posts, and how often they have been favorited. The
// author's counts are locked.
func (w *writer) countPosts(author storage.UserID, d judge.Diff) error {
	w.leaves(author, d, nil)
	_, err := w.Exec(1, sqlCountPosts, d.Posts, d.Favorited, int64(d.Active), int64(d.Active), int64(author))
	return err
}

// post reads a post. [storage.ErrPostUnknown]
func (w *writer) post(id storage.PostID) (p storage.Post, err error) {
	text, args := forPosts(w.store.sql, sqlPosts, []storage.PostID{id})
	found, err := w.ReadOne(text, args, wholePostColumns(&p)...)
	if err == nil && !found {
		err = fmt.Errorf("%w: %d of user %s", storage.ErrPostUnknown, id.Number, id.Author)
	}
	return p, err
}

// lockPost locks the counts of a post, and reads it. [storage.ErrPostUnknown]
func (w *writer) lockPost(id storage.PostID) (storage.Post, error) {
	if err := w.lockPostCounts(id); err != nil {
		return storage.Post{}, err
	}
	return w.post(id)
}

func (w *writer) lockPostCounts(id storage.PostID) error {
	w.touchPost(id)
	return w.Read(1, sqlLockPostCounts, []any{int64(id.Author), id.Number}, func(*sql.Rows) error { return nil })
}

func (w *writer) touchPost(id storage.PostID) {
	w.Touch(db.MovedRow{Kind: db.PostRows, Owner: id.Author, Peer: storage.UserID(id.Number)})
}

// countComments changes the number of comments on a post, whose counts are locked, and raises the
// post's version.
func (w *writer) countComments(id storage.PostID, by int64) error {
	w.change.AddPost(storage.PostEdited, storage.PostAt{PostID: id})
	_, err := w.Exec(1, sqlCountComments, by, int64(id.Author), id.Number)
	return err
}

// EditPost implements [storage.Store].
func (s *Store) EditPost(ctx context.Context, id storage.PostID, change storage.PostChange, at storage.Micros) (storage.Post, bool, error) {
	return made(ctx, s.transactFor, "post.edit", id.Author, func(w *writer) (storage.Post, bool, error) {
		p, err := w.lockPost(id)
		if err != nil {
			return p, false, err
		}
		p, changed, err := judge.EditPost(p, change, at)
		if !changed {
			w.change.AddPost(storage.PostEdited, storage.PostAt{PostID: id}) // its writer may have been killed before it reported it
			return p, false, err
		}
		if _, err := w.Exec(1, sqlEditPost, p.Text, mediaColumn(p.Media), int64(p.EditedAt), string(p.Attributes), int64(id.Author), id.Number); err != nil {
			return p, false, err
		}
		return p, true, w.countComments(id, 0)
	})
}

// DeletePost implements [storage.Store].
func (s *Store) DeletePost(ctx context.Context, id storage.PostID) (changed bool, err error) {
	return changes(ctx, s.transactFor, "post.delete", id.Author, func(w *writer) (bool, error) { return w.deletePost(id) })
}

func (w *writer) deletePost(id storage.PostID) (changed bool, err error) {
	if _, err := w.lockCountsOf(id.Author); err != nil {
		return false, err
	}
	w.change.AddPost(storage.PostDeleted, storage.PostAt{PostID: id}) // also one that was deleted before, see published
	p, err := w.lockPost(id)
	switch {
	case errors.Is(err, storage.ErrPostUnknown):
		w.unchanged(nil)
		return false, nil
	case err != nil:
		return false, err
	}
	if _, err := w.Exec(1, sqlDeletePost, int64(id.Author), id.Number); err != nil {
		return false, err
	}
	if err := w.countComments(id, 0); err != nil {
		return false, err
	}
	return true, w.countPosts(id.Author, judge.Diff{Posts: -1, Favorited: -p.Counts.Favorites})
}
