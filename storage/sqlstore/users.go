package sqlstore

import (
	"context"
	"strings"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

var (
	// Served by the primary key.
	sqlUsers = db.WithColumns(`
SELECT user_id, {times}, {choices},
  handle, {texts}, attributes
FROM users
WHERE user_id IN (?)`)

	// Served by the primary key.
	sqlHandles = `
SELECT handle, user_id
FROM handles
WHERE handle IN (?)`

	// Served by the primary key.
	sqlCounts = db.WithColumns(`
SELECT user_id, {counts}, version
FROM user_counts
WHERE user_id IN (?)`)
)

// readUsers answers [storage.UserLookups].
func (s *Store) readUsers(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	return db.LookUp(s.db, ids, s.sql.MaxKeys, s.shards.Of, func(shard int, ids []storage.UserID, found func(storage.UserID, storage.User)) error {
		text, args := db.In(sqlUsers, ids)
		row := newUserRow(1)
		return s.db.Query(ctx, "users", shard, len(ids), text, args, row.Each(func() {
			u := nextUser(storage.UserID(row.Next()), row)
			found(u.ID, u)
		}))
	})
}

// readUserIDs answers [storage.HandleLookups]. A text that cannot be a handle does not reach the
// server: compared with characters outside of ASCII, the column has no index, or the
// statement fails for the mix of collations.
func (s *Store) readUserIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	return db.LookUp(s.db, handles, s.sql.MaxKeys, s.shards.OfHandle, func(shard int, handles []string, found func(string, storage.UserID)) error {
		args := make([]any, 0, len(handles))
		for _, h := range handles {
			if storage.ValidHandle(h) {
				args = append(args, h)
			}
		}
		if len(args) == 0 {
			return ctx.Err()
		}
		return s.db.Query(ctx, "handles", shard, len(args), db.Listed(sqlHandles, len(args)), args, db.EachEntry(db.TwoColumns, found))
	})
}

// readCounts answers [storage.CountLookups].
func (s *Store) readCounts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	return byUser(ctx, s, "counts", ids, sqlCounts, countColumns)
}

// byUser answers a look-up of users by a statement whose rows have the id, and then the columns of a value.
func byUser[V any](ctx context.Context, s *Store, what string, ids []storage.UserID, text string, columns func(*V) []any) []storage.Result[V] {
	return db.LookUp(s.db, ids, s.sql.MaxKeys, s.shards.Of, func(shard int, ids []storage.UserID, found func(storage.UserID, V)) error {
		statement, args := db.In(text, ids)
		return s.db.Query(ctx, what, shard, len(ids), statement, args, db.EachEntry(func(id *storage.UserID, value *V) []any {
			return append([]any{id}, columns(value)...)
		}, found))
	})
}

// Served by the primary key.
const sqlUserIDsAfter = `
SELECT user_id
FROM users
WHERE user_id > ?
ORDER BY user_id LIMIT ?`

// readUserIDsAfter answers [storage.UserIDLookups].
func (s *Store) readUserIDsAfter(ctx context.Context, q storage.ShardQuery[storage.UserID]) ([]storage.UserID, error) {
	return ownPage(q.Limit, func(limit int, own func(storage.UserID, bool)) error {
		return s.db.Query(ctx, "users.after", q.Shard, limit, sqlUserIDsAfter, []any{int64(q.After), limit}, db.EachRow(db.OneColumn, func(id storage.UserID) {
			q.After = id
			own(id, s.shards.Of(id) == q.Shard)
		}))
	})
}

// ownPage reads a page of the rows that a shard owns: a shard also has rows that are moving to it, or
// have left it. next reads a page behind the last one, and reports for each row whether the shard owns
// it. If few are its own, the pages become longer, up to mostLonger times as long: there may be thousands
// of the others in between.
func ownPage[T any](limit int, next func(limit int, own func(row T, is bool)) error) (page []T, err error) {
	const mostLonger = 16
	for wanted := limit; ; wanted = min(2*wanted, mostLonger*limit) {
		read := 0
		err := next(wanted, func(row T, is bool) {
			if read++; is {
				page = append(page, row)
			}
		})
		if err != nil {
			return nil, err
		}
		if read < wanted || len(page) >= limit {
			return page[:min(limit, len(page))], nil
		}
	}
}

// newUserRow is for rows of {times}, {choices}, so many other numbers, the handle, {texts} and attributes.
func newUserRow(others int) *db.Numbers { return db.NewNumbers(6+others, 2+len(storage.UserTexts)) }

// nextUser reads {times} and {choices}, and the texts.
func nextUser(id storage.UserID, r *db.Numbers) storage.User {
	u := storage.User{
		ID: id, CreatedAt: storage.Micros(r.Next()), UpdatedAt: storage.Micros(r.Next()),
		FollowingsVisibility: storage.Visibility(r.Next()), FollowersVisibility: storage.Visibility(r.Next()),
		Undiscoverable: r.Next() != 0, Locked: r.Next() != 0,
		Handle: string(r.Text()),
	}
	for _, text := range u.Texts() {
		*text = string(r.Text())
	}
	u.Attributes = storage.Attributes(r.Text())
	return u
}

// countNumbers is how many numbers [nextCounts] reads.
const countNumbers = 7

// nextCounts reads the version and {counts}.
func nextCounts(r *db.Numbers) storage.Counts {
	return storage.Counts{
		Version: r.Next(), Following: r.Next(), Follower: r.Next(), Friend: r.Next(), Posts: r.Next(), Favorites: r.Next(), Favorited: r.Next(),
	}
}

var userColumns = strings.Split(db.WithColumns("{users but password_hash}"), ", ")

// userArguments are what userColumns are set to.
func userArguments(args []any, u storage.User) []any {
	args = append(args, int64(u.ID), u.Handle)
	for _, text := range u.Texts() {
		args = append(args, *text)
	}
	return append(args, int64(u.CreatedAt), int64(u.UpdatedAt),
		int64(u.FollowingsVisibility), int64(u.FollowersVisibility), u.Undiscoverable, u.Locked, string(u.Attributes))
}
