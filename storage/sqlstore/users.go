package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

const (
	// Served by the primary key.
	sqlUsers = `
SELECT user_id, created_at, updated_at, followings_visibility, followers_visibility, undiscoverable, locked,
  handle, name, bio, avatar_url, attributes
FROM users
WHERE user_id IN (?)`

	// Served by the primary key.
	sqlHandles = `
SELECT handle, user_id
FROM handles
WHERE handle IN (?)`

	// Served by the primary key.
	sqlCounts = `
SELECT user_id, following_count, follower_count, friend_count, post_count, favorite_count, total_favorited, version
FROM user_counts
WHERE user_id IN (?)`
)

// Users implements [storage.UserReader].
func (s *Store) Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	return db.LookUp(s.db, ids, s.sql.MaxKeys, s.shards.Of, func(shard int, ids []storage.UserID, found func(storage.UserID, storage.User)) error {
		text, args := db.In(sqlUsers, ids)
		row := newUserRow(1 + userNumbers)
		return s.db.Query(ctx, "users", shard, len(ids), text, args, func(rows *sql.Rows) error {
			row.Scan(rows)
			u := row.user(storage.UserID(row.At(0)), 1)
			found(u.ID, u)
			return row.Err
		})
	})
}

// UserIDs implements [storage.UserReader]. A text that cannot be a handle does not reach the
// server: compared with characters outside of ASCII, the column has no index, or the
// statement fails for the mix of collations.
func (s *Store) UserIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
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
		return s.db.Query(ctx, "handles", shard, len(args), db.Listed(sqlHandles, len(args)), args, func(rows *sql.Rows) error {
			var handle string
			var id storage.UserID
			err := rows.Scan(&handle, &id)
			found(handle, id)
			return err
		})
	})
}

// Counts implements [storage.CountReader].
func (s *Store) Counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	return db.LookUp(s.db, ids, s.sql.MaxKeys, s.shards.Of, func(shard int, ids []storage.UserID, found func(storage.UserID, storage.Counts)) error {
		text, args := db.In(sqlCounts, ids)
		return s.db.Query(ctx, "counts", shard, len(ids), text, args, func(rows *sql.Rows) error {
			var id storage.UserID
			var c storage.Counts
			err := rows.Scan(&id, &c.Following, &c.Follower, &c.Friend, &c.Posts, &c.Favorites, &c.Favorited, &c.Version)
			found(id, c)
			return err
		})
	})
}

// Served by the primary key.
const sqlUserIDsAfter = `
SELECT user_id
FROM users
WHERE user_id > ?
ORDER BY user_id LIMIT ?`

// UserIDsAfter implements [storage.UserLister].
func (s *Store) UserIDsAfter(ctx context.Context, shard int, after storage.UserID, limit int) ([]storage.UserID, error) {
	return ownPage(limit, func(limit int, own func(storage.UserID, bool)) error {
		return s.db.Query(ctx, "users.after", shard, limit, sqlUserIDsAfter, []any{int64(after), limit}, func(rows *sql.Rows) error {
			err := rows.Scan(&after)
			own(after, s.shards.Of(after) == shard)
			return err
		})
	})
}

// ownPage reads a page of the rows that a shard owns: a shard also has rows that are moving to it, or
// have left it. next reads a page behind the last one, and reports for each row whether the shard owns
// it.
func ownPage[T any](limit int, next func(limit int, own func(row T, is bool)) error) (page []T, err error) {
	for {
		read, wanted := 0, limit-len(page)
		err := next(wanted, func(row T, is bool) {
			if read++; is {
				page = append(page, row)
			}
		})
		if err != nil {
			return nil, err
		}
		if read < wanted || len(page) == limit {
			return page, nil
		}
	}
}

// A userRow scans rows that begin with whole numbers, a user's among them, and end with its
// texts: handle, name, bio, avatar_url, attributes.
type userRow struct {
	db.Numbers
	texts [5]sql.RawBytes
}

// userNumbers is how many numbers a user has besides the id: created_at, updated_at,
// followings_visibility, followers_visibility, undiscoverable, locked.
const userNumbers = 6

// newUserRow is for rows of so many numbers.
func newUserRow(numbers int) *userRow {
	r := new(userRow)
	r.Numbers = *db.NewNumbers(numbers, &r.texts[0], &r.texts[1], &r.texts[2], &r.texts[3], &r.texts[4])
	return r
}

// user is made of the texts, and of the userNumbers from one on.
func (r *userRow) user(id storage.UserID, from int) storage.User {
	return storage.User{
		ID: id, CreatedAt: storage.Micros(r.At(from)), UpdatedAt: storage.Micros(r.At(from + 1)),
		FollowingsVisibility: storage.Visibility(r.At(from + 2)), FollowersVisibility: storage.Visibility(r.At(from + 3)),
		Undiscoverable: r.At(from+4) != 0, Locked: r.At(from+5) != 0,
		Handle: string(r.texts[0]), Name: string(r.texts[1]), Bio: string(r.texts[2]), AvatarURL: string(r.texts[3]), Attributes: storage.Attributes(r.texts[4]),
	}
}

// countNumbers is how many numbers a user's counts are: version, following_count, follower_count,
// friend_count, post_count, favorite_count, total_favorited.
const countNumbers = 7

// counts are the countNumbers from one on.
func (r *userRow) counts(from int) storage.Counts {
	return storage.Counts{
		Version: r.At(from), Following: r.At(from + 1), Follower: r.At(from + 2), Friend: r.At(from + 3), Posts: r.At(from + 4),
		Favorites: r.At(from + 5), Favorited: r.At(from + 6),
	}
}
