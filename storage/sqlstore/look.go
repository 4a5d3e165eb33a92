package sqlstore

import (
	"database/sql"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/judge"
	"kith/storage/sqlstore/internal/db"
)

// The rows of some users towards others, with the number of the table in front. Served by the
// primary keys, which MariaDB needs as a hint: for owners with few rows it takes the list
// indexes, and reads them all.
var (
	// Of one owner.
	sqlRowsOfOwner = [...]string{
		storage.Forward: `
SELECT 0, from_user_id, to_user_id, type, update_time
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id IN (?)`,
		storage.Inverse: `
SELECT 1, to_user_id, from_user_id, type, update_time
FROM follower /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id IN (?)`,
		storage.Requests: `
SELECT 2, from_user_id, to_user_id, type, update_time
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id IN (?)`,
		storage.Inbox: `
SELECT 3, to_user_id, from_user_id, type, update_time
FROM friend_request_inbox /*! FORCE INDEX (PRIMARY) */
WHERE to_user_id = ? AND from_user_id IN (?)`,
		db.MarkSide: `
SELECT 6, from_user_id, to_user_id, 0, 0
FROM edge_marks /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id IN (?)`,
	}

	// Of any owners. The columns of VALUES are named by SQLite.
	sqlRows = [...]db.Text{
		storage.Forward: {
			MySQL: `
SELECT 0, from_user_id, to_user_id, type, update_time
FROM following FORCE INDEX (PRIMARY)
WHERE (from_user_id, to_user_id) IN ((?, ?))`,
			SQLite: `
SELECT 0, from_user_id, to_user_id, type, update_time
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN following ON from_user_id = column1 AND to_user_id = column2`,
		},
		storage.Inverse: {
			MySQL: `
SELECT 1, to_user_id, from_user_id, type, update_time
FROM follower FORCE INDEX (PRIMARY)
WHERE (to_user_id, from_user_id) IN ((?, ?))`,
			SQLite: `
SELECT 1, to_user_id, from_user_id, type, update_time
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN follower ON to_user_id = column1 AND from_user_id = column2`,
		},
		storage.Requests: {
			MySQL: `
SELECT 2, from_user_id, to_user_id, type, update_time
FROM friend_request FORCE INDEX (PRIMARY)
WHERE (from_user_id, to_user_id) IN ((?, ?))`,
			SQLite: `
SELECT 2, from_user_id, to_user_id, type, update_time
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN friend_request ON from_user_id = column1 AND to_user_id = column2`,
		},
		storage.Inbox: {
			MySQL: `
SELECT 3, to_user_id, from_user_id, type, update_time
FROM friend_request_inbox FORCE INDEX (PRIMARY)
WHERE (to_user_id, from_user_id) IN ((?, ?))`,
			SQLite: `
SELECT 3, to_user_id, from_user_id, type, update_time
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN friend_request_inbox ON to_user_id = column1 AND from_user_id = column2`,
		},
		db.MarkSide: {
			MySQL: `
SELECT 6, from_user_id, to_user_id, 0, 0
FROM edge_marks FORCE INDEX (PRIMARY)
WHERE (from_user_id, to_user_id) IN ((?, ?))`,
			SQLite: `
SELECT 6, from_user_id, to_user_id, 0, 0
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN edge_marks ON from_user_id = column1 AND to_user_id = column2`,
		},
	}
)

// look reads rows as they are, under the lock, in one statement: those of each owner
// (From) towards each peer (To), in some of the tables.
func (w *writer) look(j *judge.Judge, keys []storage.Pair, sides ...storage.Side) error {
	slices.SortFunc(keys, storage.Forward.Compare)
	keys = slices.Compact(keys)
	for chunk := range slices.Chunk(keys, w.store.maxPairs(storage.Forward, keys)) {
		text, args := w.store.lookStatement(sides, chunk)
		if err := w.Read(len(chunk), text, args, scanInto(j)); err != nil {
			return err
		}
	}
	return nil
}

// scanInto passes a judge the rows of a lookStatement.
func scanInto(j *judge.Judge) func(*sql.Rows) error {
	return func(rows *sql.Rows) error {
		var side storage.Side
		var owner, peer storage.UserID
		var e storage.Edge
		if err := rows.Scan(&side, &owner, &peer, &e.Type, &e.UpdateTime); err != nil {
			return err
		}
		pair := side.Pair(owner, peer)
		if side == db.MarkSide {
			j.Marked[pair] = true
			return nil
		}
		e.From, e.To = pair.From, pair.To
		j.Know(side, e)
		return nil
	}
}

// lookStatement is the look-up of rows. It is simpler if they have one owner.
func (s *Store) lookStatement(sides []storage.Side, keys []storage.Pair) (text string, args []any) {
	one := haveOneOwner(storage.Forward, keys)
	selects := make([]string, len(sides))
	args = make([]any, 0, 2*len(keys)*len(sides))
	for i, side := range sides {
		if one {
			selects[i] = db.Listed(sqlRowsOfOwner[side], len(keys))
			args = append(args, int64(keys[0].From))
		} else {
			selects[i] = db.Listed(s.sql.Text(sqlRows[side]), len(keys))
		}
		for _, k := range keys {
			if !one {
				args = append(args, int64(k.From))
			}
			args = append(args, int64(k.To))
		}
	}
	return strings.Join(selects, "\nUNION ALL"), args
}
