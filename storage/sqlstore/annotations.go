package sqlstore

import (
	"errors"

	"kith/storage"
	"kith/storage/judge"
)

// Served by the primary key.
const sqlMessageOfRequest = `
SELECT message
FROM friend_request
WHERE from_user_id = ? AND to_user_id = ? AND type = 1`

// Served by the primary key.
const sqlWriteMessage = `
UPDATE friend_request
SET message = ?
WHERE from_user_id = ? AND to_user_id = ?`

// Served by the primary key.
const sqlFirstOfFollow = `
SELECT COALESCE(first_at, 0)
FROM following
WHERE from_user_id = ? AND to_user_id = ?`

// Served by the primary key.
const sqlWriteFirst = `
UPDATE following
SET first_at = ?
WHERE from_user_id = ? AND to_user_id = ?`

// Served by the primary key.
const (
	sqlDetailOf = `
SELECT ends_at, attributes
FROM relation
WHERE from_user_id = ? AND to_user_id = ? AND kind = ? AND type = 1 AND update_time = ?`

	sqlSetDetail = `
UPDATE relation
SET ends_at = ?, attributes = ?
WHERE from_user_id = ? AND to_user_id = ? AND kind = ?`
)

// addingBeside writes rows of one owner, whose counts it locks.
func addingBeside[T any](add func(*besideAdder, T) (found, added bool, err error)) func(*writer, storage.UserID, []T) ([]storage.Result[bool], error) {
	return func(w *writer, owner storage.UserID, rows []T) ([]storage.Result[bool], error) {
		results := make([]storage.Result[bool], len(rows))
		if counted, err := w.lockCountsOf(owner); err != nil || !counted {
			return results, err
		}
		adder := &besideAdder{writer: w, owner: owner, specials: -1}
		changed := false
		for i, row := range rows {
			found, added, err := add(adder, row)
			switch {
			case errors.Is(err, storage.ErrLimitReached):
				results[i].Err = err
			case err != nil:
				return nil, err
			}
			results[i].Found, results[i].Value = found, added
			changed = changed || added
		}
		if changed {
			w.raiseVersion(owner)
		}
		return results, nil
	}
}

// besideAdder adds rows of one owner.
type besideAdder struct {
	*writer
	owner    storage.UserID
	specials int // how many there are; −1: not counted yet
}

func (a *besideAdder) mark(row storage.Annotation) (found, added bool, err error) {
	var old storage.EdgeMark
	found, err = a.ReadOne(sqlMarkOfFollow, []any{int64(row.From), int64(row.To)}, &old.Special, &old.Remark, &old.Attributes)
	if err != nil || !found || old != (storage.EdgeMark{}) {
		return found, false, err
	}
	mark, err := judge.Mark(row.From, storage.EdgeMark{Attributes: row.Attributes}, storage.MarkChange{Special: &row.Special, Remark: &row.Text}, a.countSpecials)
	if err != nil {
		return false, false, err
	}
	if mark.Special {
		a.specials++
	}
	return true, true, a.writeMarks([]*markJob{{pair: row.Pair, mark: mark}})
}

// countSpecials counts them once.
func (a *besideAdder) countSpecials() (n int, err error) {
	if a.specials < 0 {
		a.specials, err = a.writer.countSpecials(a.owner)
	}
	return a.specials, err
}

func (a *besideAdder) message(row storage.Annotation) (found, added bool, err error) {
	return addColumn(a, storage.Requests, row, sqlMessageOfRequest, sqlWriteMessage, row.Text)
}

func (a *besideAdder) first(row storage.Annotation) (found, added bool, err error) {
	return addColumn(a, storage.Forward, row, sqlFirstOfFollow, sqlWriteFirst, int64(row.At))
}

// addColumn writes a column of an edge's own row, if that is there and has none.
func addColumn[T comparable](a *besideAdder, side storage.Side, row storage.Annotation, read, write string, value T) (found, added bool, err error) {
	var old, none T
	key := []any{int64(row.From), int64(row.To)}
	found, err = a.ReadOne(read, key, &old)
	if err != nil || !found || old != none {
		return found, false, err
	}
	a.touchEdges(side, []storage.Edge{{From: row.From, To: row.To}})
	_, err = a.Exec(1, write, append([]any{value}, key...)...)
	return true, true, err
}

func (a *besideAdder) detail(row storage.RelationRow) (found, added bool, err error) {
	var old storage.Detail
	key := []any{int64(row.From), int64(row.To), row.Item}
	found, err = a.ReadOne(sqlDetailOf, append(key, int64(row.UpdateTime)), &old.EndsAt, &old.Attributes)
	if err != nil || !found || old != (storage.Detail{}) || row.Detail == old {
		return found, false, err
	}
	a.touchEdges(storage.Relations, []storage.Edge{row.Edge})
	if _, err := a.Exec(1, sqlSetDetail, append([]any{int64(row.EndsAt), string(row.Attributes)}, key...)...); err != nil {
		return false, false, err
	}
	return true, true, a.log(storage.Relations, []storage.Edge{row.Edge}) // its reader may have read the row before
}
