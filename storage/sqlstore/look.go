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
// primary key, which MariaDB needs as a hint: for owners with few rows it takes the list
// indexes, and reads them all.
var (
	// Of one owner.
	sqlRowsOfOwner = db.ForSides(`
SELECT {side}, {owner}, {peer}, {type, update_time}
FROM {table} /*! FORCE INDEX (PRIMARY) */
WHERE {owner} = ? AND {peer} IN (?)`, db.WithMarks...)

	// Of any owners. The columns of VALUES are named by SQLite.
	sqlRows = db.Text{
		MySQL: `
SELECT {side}, {owner}, {peer}, {type, update_time}
FROM {table} FORCE INDEX (PRIMARY)
WHERE ({owner}, {peer}) IN ((?, ?))`,
		SQLite: `
SELECT {side}, {owner}, {peer}, {type, update_time}
FROM (VALUES (?, ?)) AS wanted
CROSS JOIN {table} ON {owner} = column1 AND {peer} = column2`,
	}.ForSides(db.WithMarks...)
)

// look reads rows as they are, under the lock, in one statement: those of each owner
// (From) towards each peer (To), in some of the tables.
func (w *writer) look(j *judge.Judge, keys []storage.Pair, sides ...storage.Side) error {
	slices.SortFunc(keys, storage.Forward.Compare)
	keys = slices.Compact(keys)
	statement := func(keys []storage.Pair) (string, []any) { return w.store.lookStatement(sides, keys) }
	return db.ReadChunks(w.Tx, keys, w.store.maxPairs(storage.Forward, keys), statement, eachLooked(func(side storage.Side, e storage.Edge) {
		if side == db.MarkSide {
			j.Marked[e.Pair()] = true
		} else {
			j.Know(side, e)
		}
	}))
}

// eachLooked reads the rows of a lookStatement.
func eachLooked(take func(storage.Side, storage.Edge)) func(*sql.Rows) error {
	return db.EachEntry(func(side *storage.Side, e *storage.Edge) []any {
		return []any{side, &e.From, &e.To, &e.Type, &e.UpdateTime} // From is the owner
	}, func(side storage.Side, e storage.Edge) {
		take(side, side.Pair(e.From, e.To).Edge(e.Type, e.UpdateTime))
	})
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
