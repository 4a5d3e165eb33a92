package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Served by the primary keys. A user's rows may be many, ended and not.
var sqlAllRows = db.ByTable[string]{
	storage.Forward: `
SELECT from_user_id, to_user_id, type, update_time
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND type <> 0
ORDER BY to_user_id LIMIT ?`,
	storage.Inverse: `
SELECT to_user_id, from_user_id, type, update_time
FROM follower /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id > ? AND type <> 0
ORDER BY from_user_id LIMIT ?`,
	storage.Requests: `
SELECT from_user_id, to_user_id, type, update_time
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND type <> 0
ORDER BY to_user_id LIMIT ?`,
	storage.Inbox: `
SELECT to_user_id, from_user_id, type, update_time
FROM friend_request_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id > ? AND type <> 0
ORDER BY from_user_id LIMIT ?`,
	storage.Favorites: `
SELECT from_user_id, to_user_id, type, update_time, post_id
FROM favorite /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id >= ? AND (to_user_id > ? OR post_id > ?) AND type <> 0
ORDER BY to_user_id, post_id LIMIT ?`,
	storage.FavoriteInbox: `
SELECT to_user_id, from_user_id, type, update_time, post_id
FROM favorite_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id >= ? AND (from_user_id > ? OR post_id > ?) AND type <> 0
ORDER BY from_user_id, post_id LIMIT ?`,
}

// AllRows implements [storage.EdgeReader]. Each query is a statement.
func (s *Store) AllRows(ctx context.Context, side storage.Side, queries []storage.RowsQuery) []storage.Result[[]storage.Edge] {
	shardOf := func(q storage.RowsQuery) int { return s.shards.Of(q.Owner) }
	return db.LookUp(s.db, queries, 1, shardOf, func(shard int, queries []storage.RowsQuery, found func(storage.RowsQuery, []storage.Edge)) error {
		q := queries[0]
		var edges []storage.Edge
		scan := scanEdges(side)
		args := []any{int64(q.Owner), int64(q.After), q.Limit}
		if side.OfPosts() {
			args = []any{int64(q.Owner), int64(q.After), int64(q.After), q.Post, q.Limit}
		}
		err := s.db.Query(ctx, "rows."+side.String(), shard, q.Limit, sqlAllRows[side], args, func(rows *sql.Rows) error {
			e, err := scan.next(rows)
			edges = append(edges, e)
			return err
		})
		found(q, edges)
		return err
	})
}

const (
	// Served by the primary key.
	sqlHandleOf = `
SELECT handle
FROM users
WHERE user_id = ?`

	// Served by the primary key.
	sqlReleaseHandle = `
DELETE FROM handles
WHERE handle = ? AND user_id = ?`

	// Served by the primary key.
	sqlRemoveUser = `
DELETE FROM users
WHERE user_id = ?`

	// Served by the primary key.
	sqlRemoveCounts = `
DELETE FROM user_counts
WHERE user_id = ?`
)

// erasedRow is how to pick some rows of a user, and how to be rid of them. What is kept packed does
// not move with its bucket, and has no kind.
type erasedRow struct {
	pick, remove string
	kind         db.RowKind
}

// erasedRows are what lies beside a user's edges. All are found by an index that begins
// with the user.
var erasedRows = []erasedRow{
	// Served by the primary key or idx_special.
	{`
SELECT to_user_id
FROM edge_marks
WHERE from_user_id = ? LIMIT ?`, `
DELETE FROM edge_marks
WHERE from_user_id = ? AND to_user_id IN (?)`, db.MarkRow},
	// Served by the primary key or idx_dismissed_at.
	{`
SELECT dismissed_id
FROM suggestion_dismissals
WHERE user_id = ? LIMIT ?`, `
DELETE FROM suggestion_dismissals
WHERE user_id = ? AND dismissed_id IN (?)`, db.Dismissals},
	// Served by the primary key or idx_friend_request_list.
	{`
SELECT to_user_id
FROM friend_request
WHERE from_user_id = ? AND message <> '' LIMIT ?`, `
UPDATE friend_request
SET message = ''
WHERE from_user_id = ? AND to_user_id IN (?)`, db.KindOf(storage.Requests)},
	// Served by the primary key, idx_post_list or idx_post_key.
	{`
SELECT post_id
FROM post
WHERE author_id = ? LIMIT ?`, `
DELETE FROM post
WHERE author_id = ? AND post_id IN (?)`, db.PostRows},
	// Served by the primary key.
	{`
SELECT post_id
FROM post_counts
WHERE author_id = ? LIMIT ?`, `
DELETE FROM post_counts
WHERE author_id = ? AND post_id IN (?)`, db.PostRows},
	// Behind the posts: nobody adds a comment any more. Served by the primary key or idx_comment_list.
	{`
SELECT comment_id
FROM comment
WHERE author_id = ? LIMIT ?`, `
DELETE FROM comment
WHERE author_id = ? AND comment_id IN (?)`, db.CommentRow},
	// Served by the primary key.
	{`
SELECT side
FROM packed_list
WHERE owner = ? LIMIT ?`, `
DELETE FROM packed_list
WHERE owner = ? AND side IN (?)`, db.UserRows},
	// Served by the primary key.
	{`
SELECT first_peer
FROM packed_chunk
WHERE owner = ? AND side = 0 LIMIT ?`, `
DELETE FROM packed_chunk
WHERE owner = ? AND side = 0 AND first_peer IN (?)`, db.UserRows},
	// Served by the primary key.
	{`
SELECT first_peer
FROM packed_chunk
WHERE owner = ? AND side = 1 LIMIT ?`, `
DELETE FROM packed_chunk
WHERE owner = ? AND side = 1 AND first_peer IN (?)`, db.UserRows},
	// Served by the primary key.
	{`
SELECT peer
FROM packed_change
WHERE owner = ? AND side = 0 LIMIT ?`, `
DELETE FROM packed_change
WHERE owner = ? AND side = 0 AND peer IN (?)`, db.UserRows},
	// Served by the primary key.
	{`
SELECT peer
FROM packed_change
WHERE owner = ? AND side = 1 LIMIT ?`, `
DELETE FROM packed_change
WHERE owner = ? AND side = 1 AND peer IN (?)`, db.UserRows},
}

// erasedAtOnce is how many rows one step removes: locks of a few milliseconds.
const erasedAtOnce = 500

// Erase implements [storage.StateStore]. First the handle and the identities go, which lie on other
// shards, then what may be many rows, in small steps, and last the user, in one
// transaction with the new state: a crash before it leaves a user to be erased again.
//
// What comes late brings nothing back that could be seen. The tombstones of the user's
// edges stay, so that older events lose against them. Events of pairs without a row may
// write one and make counts anew, but no row of users, without which nobody is found;
// and the state stays for ever, by which every gateway hides the user, even where an
// import makes one of this id again.
func (s *Store) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	switch r := s.StatesOf(ctx, []storage.UserID{user})[0]; {
	case r.Err != nil || r.Value == storage.Deleted:
		return r.Err
	case r.Value != storage.Deleting: // from there nothing leads back
		return fmt.Errorf("%w: erase user %s in state %d", storage.ErrForbidden, user, r.Value)
	}
	if err := s.releaseHandle(ctx, user); err != nil {
		return err
	}
	if err := s.eraseIdentities(ctx, user); err != nil {
		return err
	}
	if err := s.eraseComments(ctx, user); err != nil {
		return err
	}
	for i := range erasedRows {
		for more := true; more; {
			err := s.transact(ctx, "erase", s.ownerOf(user), func(w *writer) (err error) {
				more, err = w.eraseSome(i, user)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return s.transact(ctx, "erase", s.ownerOf(user), func(w *writer) error { return w.eraseUser(user, at) })
}

// releaseHandle frees the handle of a user, unless it is another's by now.
func (s *Store) releaseHandle(ctx context.Context, user storage.UserID) error {
	handle := ""
	err := s.db.Query(ctx, "users.handle", s.shards.Of(user), 1, sqlHandleOf, []any{int64(user)}, func(rows *sql.Rows) error {
		return rows.Scan(&handle)
	})
	if err != nil || handle == "" {
		return err
	}
	return s.transact(ctx, "handles", s.ownerOfHandle(handle), func(w *writer) error {
		w.touchHandle(handle)
		_, err := w.Exec(1, sqlReleaseHandle, handle, int64(user))
		return err
	})
}

// eraseSome takes a step and reports whether there may be another.
func (w *writer) eraseSome(i int, user storage.UserID) (more bool, err error) {
	if _, err := w.lockCountsOf(user); err != nil {
		return false, err
	}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} { // before the first part goes
		if err := w.packed.Unpack(w.Tx, side, []storage.UserID{user}); err != nil {
			return false, err
		}
	}
	args := []any{int64(user)}
	err = w.Read(erasedAtOnce, erasedRows[i].pick, []any{int64(user), erasedAtOnce}, func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		args = append(args, id)
		switch kind := erasedRows[i].kind; kind {
		case db.UserRows, db.Dismissals:
			w.Touch(db.MovedRow{Kind: kind, Owner: user})
		default:
			w.Touch(db.MovedRow{Kind: kind, Owner: user, Peer: storage.UserID(id)})
		}
		return err
	})
	n := len(args) - 1
	if err != nil || n == 0 {
		return false, err
	}
	_, err = w.Exec(n, db.Listed(erasedRows[i].remove, n), args...)
	return n == erasedAtOnce, err
}

// eraseUser removes the user and what has been added beside it since the steps.
func (w *writer) eraseUser(user storage.UserID, at storage.Micros) error {
	old, err := w.lockState(user)
	if err != nil || old.State == storage.Deleted {
		return err
	}
	for i := range erasedRows {
		for more := true; more; {
			if more, err = w.eraseSome(i, user); err != nil {
				return err
			}
		}
	}
	for _, text := range []string{sqlRemoveUser, sqlRemoveCounts} {
		if _, err := w.Exec(1, text, int64(user)); err != nil {
			return err
		}
	}
	return w.writeState(old, storage.Deleted, at)
}
