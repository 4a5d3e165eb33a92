package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// A user's rows may be many, ended and not. Served by the primary key.
var sqlAllRows = db.ForSides(`
SELECT ? AS query, {owner}, {peer}, type, update_time, 0 AS post
FROM {table} /*! FORCE INDEX (PRIMARY) */
WHERE {owner} = ? AND {peer} > ? AND type <> 0
ORDER BY {peer} LIMIT ?`, storage.Sides[:]...)

var itemSides = storage.AllSides[storage.Favorites:]

// Served by the primary key.
var sqlAllItems = db.ForSides(`
SELECT ? AS query, {owner}, {peer}, type, update_time{, post_id}
FROM {table} /*! FORCE INDEX (PRIMARY) */
WHERE {owner} = ? AND {peer} >= ? AND ({peer} > ?{ OR post_id > ?}) AND type <> 0
ORDER BY {peer}{, post_id} LIMIT ?`, itemSides...)

// With tombstones, so that a page ends however many there are. Served by the primary key.
var sqlAllRelations = db.ForSides(`
SELECT ? AS query, {owner}, {peer}, type, update_time{, post_id}
FROM {table} /*! FORCE INDEX (PRIMARY) */
WHERE {owner} = ? AND {peer} >= ? AND ({peer} > ?{ OR post_id > ?})
ORDER BY {peer}{, post_id} LIMIT ?`, storage.Relations, storage.RelationInbox)

// Whichever come first: no tombstones are read, of which a deletion leaves millions. Served by {list}.
var sqlAnyRows = db.ForSides(`
SELECT ? AS query, {owner}, {peer}, type, update_time, 0{ + post_id} AS post
FROM {table} /*! FORCE INDEX ({list}) */
WHERE {owner} = ? AND type > 0 LIMIT ? OFFSET ?`, storage.AllSides[:storage.FavoriteInbox]...)

// Served by idx_favorite_received.
const sqlAnyFavorited = `
SELECT ? AS query, to_user_id, from_user_id, type, update_time, post_id
FROM favorite_inbox /*! FORCE INDEX (idx_favorite_received) */
WHERE to_user_id = ? AND type > 0 LIMIT ? OFFSET ?`

// readAllRows answers [storage.RowLookups].
func (s *Store) readAllRows(ctx context.Context, queries []storage.RowsQuery) []storage.Result[[]storage.Edge] {
	return eachPage(ctx, s, "rows", queries, pagesOf[storage.RowsQuery, storage.Edge]{
		owner: func(q storage.RowsQuery) storage.UserID { return q.Owner },
		text:  rowsStatement,
		columns: func(e *storage.Edge) []any { // From: the owner
			return []any{&e.From, &e.To, &e.Type, &e.UpdateTime, &e.Item}
		},
		complete: func(q storage.RowsQuery, e storage.Edge) storage.Edge {
			pair := q.Side.Pair(e.From, e.To)
			e.From, e.To = pair.From, pair.To
			return e
		},
		order: func(q storage.RowsQuery, page []storage.Edge) {
			slices.SortFunc(page, func(a, b storage.Edge) int { return q.Side.Compare(a.Pair(), b.Pair()) })
		},
	})
}

func rowsStatement(q storage.RowsQuery, args []any) (string, []any) {
	args = append(args, int64(q.Owner))
	switch {
	case q.Any && q.Side == storage.FavoriteInbox:
		return sqlAnyFavorited, append(args, q.Limit, q.Skip)
	case q.Any && q.Side < storage.FavoriteInbox:
		return sqlAnyRows[q.Side], append(args, q.Limit, q.Skip)
	case q.Side.HasItem():
		text := sqlAllItems[q.Side]
		if q.Any {
			text = sqlAllRelations[q.Side]
		}
		return text, append(args, int64(q.After), int64(q.After), q.Item, q.Limit)
	}
	return sqlAllRows[q.Side], append(args, int64(q.After), q.Limit)
}

const (
	// Served by the primary keys.
	sqlStateAndHandle = `
SELECT user_states.state, COALESCE(users.handle, '')
FROM user_states
LEFT JOIN users ON users.user_id = user_states.user_id
WHERE user_states.user_id = ?`

	// Served by the primary key.
	sqlDateClaim = `
UPDATE handles
SET claimed_at = ?
WHERE handle = ? AND user_id = ?`

	// Served by the primary key.
	sqlRemoveUser = `
DELETE FROM users
WHERE user_id = ?`

	// Served by the primary key.
	sqlRemoveCounts = `
DELETE FROM user_counts
WHERE user_id IN (?)`
)

// erasedRow says how to read some rows of a user, with the number of the part in front, and how to
// remove them. Packed lists do not move with their buckets, and have no kind.
type erasedRow struct {
	pick, remove string
	kind         db.RowKind
}

// erased are rows of a table that a user owns, and that an id distinguishes, under a further condition.
func erased(part int, table, owner, id, where string, kind db.RowKind) erasedRow {
	return erasedRow{
		pick:   fmt.Sprintf("\nSELECT %d, %s\nFROM %s\nWHERE %s = ?%s LIMIT ?", part, id, table, owner, where),
		remove: fmt.Sprintf("\nDELETE FROM %s\nWHERE %s = ?%s AND %s IN (?)", table, owner, where, id),
		kind:   kind,
	}
}

// erasedRows are a user's rows other than edges. All are found by an index that begins with the
// user.
var erasedRows = []erasedRow{
	// Served by the primary key or idx_special.
	erased(0, "edge_marks", "from_user_id", "to_user_id", "", db.MarkRow),
	// Served by the primary key or idx_friend_request_list.
	{`
SELECT 1, to_user_id
FROM friend_request
WHERE from_user_id = ? AND message <> '' LIMIT ?`, `
UPDATE friend_request
SET message = ''
WHERE from_user_id = ? AND to_user_id IN (?)`, db.KindOf(storage.Requests)},
	// Served by the primary key, idx_post_list or idx_post_key.
	erased(2, "post", "author_id", "post_id", "", db.PostRows),
	// Served by the primary key.
	erased(3, "post_counts", "author_id", "post_id", "", db.PostRows),
	// Served by the primary key, idx_comment_list or idx_comment_received.
	erased(4, "comment", "author_id", "comment_id", "", db.CommentRow),
	// Served by the primary key.
	erased(5, "packed_list", "owner", "side", "", db.UserRows),
	// Served by the primary key.
	erased(6, "packed_chunk", "owner", "first_peer", " AND side = 0", db.UserRows),
	// Served by the primary key.
	erased(7, "packed_chunk", "owner", "first_peer", " AND side = 1", db.UserRows),
	// Served by the primary key.
	erased(8, "packed_change", "owner", "peer", " AND side = 0", db.UserRows),
	// Served by the primary key.
	erased(9, "packed_change", "owner", "peer", " AND side = 1", db.UserRows),
	// Served by the primary key.
	erased(10, "packed_short", "owner", "side", "", db.UserRows),
	// Served by the primary key.
	erased(11, "relation_counts", "owner", "kind", "", db.CountRow),
	// Served by the primary key.
	erased(12, "user_list", "owner", "number", "", db.UserRows),
	// Served by the primary key.
	erased(13, "import_part", "owner", "number", "", db.UserRows),
}

// erasedAtOnce is how many rows of each part one step removes: locks of a few milliseconds.
const erasedAtOnce = 500

// Erase implements [storage.Store]. First it removes what may be on other shards: identities,
// comments and the handle. Then it removes in small steps what may be many rows. The last step also
// removes the user and writes its state: after a crash before this step, the user has to be erased again.
//
// A late event brings back nothing that could be seen. The tombstones of the user's edges stay, so
// that older events lose against them. Events of pairs without a row may write one and make counts
// again, but they make no row of users, without which no user is found. The state stays
// permanently: every gateway hides the user by it, and no user is made with this id again.
func (s *Store) Erase(ctx context.Context, user storage.UserID, at storage.Micros) error {
	state, handle, err := s.stateAndHandle(ctx, user)
	switch {
	case err != nil:
		return err
	case state < storage.Deleting: // from Deleting no state leads back
		return fmt.Errorf("%w: erase user %s in state %d", storage.ErrForbidden, user, state)
	}
	if err := s.eraseElsewhere(ctx, user); err != nil || state == storage.Deleted {
		return err
	}
	beside := handle != "" && s.shards.OfHandle(handle) == s.shards.Of(user) // then it is removed with the user
	if !beside {
		if err := s.restHandle(ctx, user, handle, at); err != nil {
			return err
		}
		handle = ""
	}
	for more := true; more; {
		err := s.transactFor(ctx, "erase", user, func(w *writer) (err error) {
			more, err = w.erase(user, handle, at)
			return err
		})
		if errors.Is(err, errHandleElsewhere) {
			if err = s.restHandle(ctx, user, handle, at); err == nil {
				handle, more = "", true
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errHandleElsewhere: the handle, or the user, has moved to another shard meanwhile.
var errHandleElsewhere = errors.New("the handle is on another shard")

// stateAndHandle reads both of a user. A user without a state is active.
func (s *Store) stateAndHandle(ctx context.Context, user storage.UserID) (state storage.UserState, handle string, err error) {
	err = s.db.Query(ctx, "states.handle", s.shards.Of(user), 1, sqlStateAndHandle, []any{int64(user)}, func(rows *sql.Rows) error {
		return rows.Scan(&state, &handle)
	})
	return state, handle, err
}

// restHandle keeps the handle of a user who is erased from others, see [judge.HandleRest], unless it belongs to another user by now. A
// user that has been removed already has none.
func (s *Store) restHandle(ctx context.Context, user storage.UserID, handle string, at storage.Micros) error {
	if handle == "" {
		return nil
	}
	return s.transact(ctx, "handles", s.ownerOfHandle(handle), func(w *writer) error { return w.restHandle(user, handle, at) })
}

func (w *writer) restHandle(user storage.UserID, handle string, at storage.Micros) error {
	w.touchHandle(handle)
	_, err := w.Exec(1, sqlDateClaim, int64(at+judge.HandleRest), handle, int64(user))
	return err
}

// erase takes a step: it removes rows of every part, and if there are no more, the user. It reports whether
// another step is needed.
//
// A handle that is given is on the same shard.
func (w *writer) erase(user storage.UserID, handle string, at storage.Micros) (more bool, err error) {
	old, err := w.lockState(user)
	if err != nil || old.State == storage.Deleted {
		return false, err
	}
	w.change.AddStanding(user)
	w.change.AddPost(storage.PostEdited, storage.PostAt{PostID: storage.PostID{Author: user}})
	for _, side := range db.Follows { // before the first part is removed
		if err := w.packed.Unpack(w.Tx, side, []storage.UserID{user}); err != nil {
			return false, err
		}
	}
	// Others may have commented until the posts were gone, so it looks again after it has removed some.
	for {
		picked, err := w.pickErased(user)
		if err != nil {
			return false, err
		}
		if len(picked) == 0 {
			break
		}
		full, err := w.removeErased(user, picked)
		if err != nil || full {
			return full, err
		}
	}
	if handle != "" {
		if w.store.shards.OfHandle(handle) != w.Shard {
			return false, errHandleElsewhere
		}
		if err := w.restHandle(user, handle, at); err != nil {
			return false, err
		}
	}
	for _, text := range []string{sqlRemoveUser, sqlRemoveWords, sqlRemoveSeen, sqlRemoveCounts} {
		if _, err := w.Exec(1, text, int64(user)); err != nil {
			return false, err
		}
	}
	return false, w.writeState(old, storage.Deleted, at)
}

// pickErased reads some rows of each part, by the number of the part.
func (w *writer) pickErased(user storage.UserID) (map[int][]any, error) {
	selects := make([]string, len(erasedRows))
	args := make([]any, 0, 2*len(erasedRows))
	for i, part := range erasedRows {
		selects[i] = fmt.Sprintf(w.store.sql.Limited, part.pick)
		args = append(args, int64(user), erasedAtOnce)
	}
	picked := map[int][]any{}
	err := w.Read(erasedAtOnce, strings.Join(selects, "\nUNION ALL\n"), args, db.EachEntry(db.TwoColumns, func(part int, id int64) { picked[part] = append(picked[part], id) }))
	return picked, err
}

// removeErased removes what has been picked, and reports whether there may be more of a part.
func (w *writer) removeErased(user storage.UserID, picked map[int][]any) (full bool, err error) {
	for i, part := range erasedRows {
		ids := picked[i]
		if len(ids) == 0 {
			continue
		}
		for _, id := range ids {
			row := db.MovedRow{Kind: part.kind, Owner: user}
			if part.kind != db.UserRows {
				row.Peer = storage.UserID(id.(int64))
			}
			w.Touch(row)
		}
		if _, err := w.Exec(len(ids), db.Listed(part.remove, len(ids)), append([]any{int64(user)}, ids...)...); err != nil {
			return false, err
		}
		full = full || len(ids) == erasedAtOnce
	}
	return full, nil
}
