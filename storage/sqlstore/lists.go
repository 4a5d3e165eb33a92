package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

var (
	// Served by the primary key.
	sqlUserLists = db.WithColumns(`
SELECT ? AS query, {user_list}
FROM user_list
WHERE owner = ? AND number <= ? AND public >= ?
ORDER BY number DESC LIMIT ?`)

	// Served by the primary key.
	sqlUserList = `
SELECT name, public
FROM user_list
WHERE owner = ? AND number = ?`

	// How many lists there are, the newest one, and the newest like another. Served by the primary key.
	sqlListsLike = `
SELECT COUNT(*), COALESCE(MAX(number), 0), COALESCE(MAX(CASE WHEN name = ? AND public = ? THEN number END), 0)
FROM user_list
WHERE owner = ?`

	sqlAddUserList = db.WithColumns(`
INSERT INTO user_list ({user_list})
VALUES ({?})`)

	// Served by the primary key.
	sqlUpdateUserList = `
UPDATE user_list
SET name = ?, public = ?
WHERE owner = ? AND number = ?`

	// Served by the primary key.
	sqlRemoveUserList = `
DELETE FROM user_list
WHERE owner = ? AND number = ?`
)

// Served by the primary key.
var listsInOrder = db.ReadInOrder("{user_list}", "user_list", "")

// Lists implements [contents.Moment].
func (m moment) Lists(ctx context.Context, after storage.ListID, limit int) ([]storage.UserList, error) {
	return readInOrder(ctx, m, listsInOrder, after.Owner, after.Number, limit, listColumns)
}

// listColumns are the values of {user_list}.
func listColumns(l *storage.UserList) []any { return []any{&l.Owner, &l.Number, &l.Name, &l.Public} }

// readUserLists answers [storage.ListLookups].
func (s *Store) readUserLists(ctx context.Context, queries []storage.ListsQuery) []storage.Result[[]storage.UserList] {
	return eachPage(ctx, s, "lists", queries, pagesOf[storage.ListsQuery, storage.UserList]{
		owner: func(q storage.ListsQuery) storage.UserID { return q.Owner },
		text: func(q storage.ListsQuery, args []any) (string, []any) {
			return sqlUserLists, append(args, int64(q.Owner), q.UpTo, q.Public, q.Limit)
		},
		columns: listColumns,
		order:   func(_ storage.ListsQuery, page []storage.UserList) { slices.SortFunc(page, storage.UserList.Compare) },
	})
}

// CreateList implements [storage.Store].
func (s *Store) CreateList(ctx context.Context, list storage.UserList) (storage.UserList, bool, error) {
	return made(ctx, s.changeOwned, "list.create", list.Owner, func(w *writer) (storage.UserList, bool, error) {
		l := list
		lists, newest, same, err := w.listsLike(l)
		if err != nil || same != 0 {
			l.Number = same
			return l, false, err
		}
		l.Number = max(l.Number, newest+1)
		return l, true, w.addList(l, lists)
	})
}

// listsLike returns how many lists the owner of a list has, who is locked, the number of the newest one, and that of the newest one
// that differs from the list only in its number; 0 if there is none.
func (w *writer) listsLike(l storage.UserList) (lists int, newest, same int64, err error) {
	_, err = w.ReadOne(sqlListsLike, []any{l.Name, l.Public, int64(l.Owner)}, &lists, &newest, &same)
	return lists, newest, same, err
}

// addList adds a list to so many of its owner.
func (w *writer) addList(l storage.UserList, to int) error {
	if to >= storage.MaxLists || l.Number > storage.MaxListNumber {
		return fmt.Errorf("%w: user %s has %d lists", storage.ErrLimitReached, l.Owner, to)
	}
	_, err := w.Exec(1, sqlAddUserList, listColumns(&l)...)
	return err
}

// restoreLists creates lists of one owner, whose counts it locks.
func (w *writer) restoreLists(owner storage.UserID, rows []storage.UserList) ([]storage.Result[bool], error) {
	results := make([]storage.Result[bool], len(rows))
	counted, err := w.lockCountsOf(owner)
	if err != nil || !counted {
		return results, err
	}
	w.touchUser(owner)
	for i, l := range rows {
		r := &results[i]
		_, err := w.list(l.ListID)
		if r.Found = true; errors.Is(err, storage.ErrListUnknown) {
			lists := 0
			if lists, _, _, err = w.listsLike(l); err == nil {
				err, r.Value = w.addList(l, lists), true
			}
		}
		if errors.Is(err, storage.ErrLimitReached) {
			*r, err = storage.Result[bool]{Err: err}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// UpdateList implements [storage.Store].
func (s *Store) UpdateList(ctx context.Context, id storage.ListID, change storage.ListChange) (storage.UserList, bool, error) {
	return made(ctx, s.changeOwned, "list.update", id.Owner, func(w *writer) (storage.UserList, bool, error) {
		old, err := w.list(id)
		list := old
		change.Apply(&list)
		if err != nil || old == list {
			return list, false, err
		}
		_, err = w.Exec(1, sqlUpdateUserList, list.Name, list.Public, int64(list.Owner), list.Number)
		return list, true, err
	})
}

// DeleteList implements [storage.Store].
func (s *Store) DeleteList(ctx context.Context, id storage.ListID) (deleted bool, err error) {
	return changes(ctx, s.changeOwned, "list.delete", id.Owner, func(w *writer) (bool, error) {
		if _, err := w.list(id); err != nil {
			return false, err
		}
		members := int64(0)
		text, args := s.kindCountsStatement([]storage.OwnerKind{{Owner: id.Owner, Kind: id.Kind()}})
		err := w.Read(1, text, args, db.EachEntry(kindColumns, func(_ storage.OwnerKind, n storage.KindCount) { members = n.Outgoing }))
		if err != nil || members > 0 {
			return false, err
		}
		_, err = w.Exec(1, sqlRemoveUserList, int64(id.Owner), id.Number)
		return true, err
	})
}

// changeOwned writes under the lock on the counts of the owner.
func (s *Store) changeOwned(ctx context.Context, what string, owner storage.UserID, write func(*writer) error) error {
	return s.transactFor(ctx, what, owner, func(w *writer) error {
		if err := w.lockUser(owner); err != nil {
			return err
		}
		w.touchUser(owner)
		return write(w)
	})
}

// list reads a list, whose owner is locked.
func (w *writer) list(id storage.ListID) (storage.UserList, error) {
	l := storage.UserList{ListID: id}
	found, err := w.ReadOne(sqlUserList, []any{int64(id.Owner), id.Number}, &l.Name, &l.Public)
	if err == nil && !found {
		err = fmt.Errorf("%w: %d of user %s", storage.ErrListUnknown, id.Number, id.Owner)
	}
	return l, err
}
