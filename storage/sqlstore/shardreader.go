package sqlstore

import (
	"context"
	"database/sql"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// Served by the primary keys.
const sqlUsersOfShard = `
SELECT u.user_id, u.created_at, u.updated_at, u.followings_visibility, u.followers_visibility, u.undiscoverable,
  s.state,
  u.handle, u.name, u.bio, u.avatar_url
FROM users u
LEFT JOIN user_states s ON s.user_id = u.user_id
WHERE u.user_id > ?
ORDER BY u.user_id LIMIT ?`

// The rest of an owner's rows. Together with the rows of the owners behind it that is one range of
// the key, but no engine takes it for one. Served by the primary keys.
var sqlRestOfOwner = map[storage.Side]string{
	storage.Forward: `
SELECT from_user_id, to_user_id, type, update_time
FROM following /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY to_user_id LIMIT ?`,
	storage.Requests: `
SELECT from_user_id, to_user_id, type, update_time
FROM friend_request /*! FORCE INDEX (PRIMARY) */
WHERE from_user_id = ? AND to_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY to_user_id LIMIT ?`,
}

// The rows of the owners behind one. Without the hints SQLite takes a list index, and sorts. Served by the primary keys.
var sqlRowsOfOwnersBehind = map[storage.Side]db.Text{
	storage.Forward: {
		MySQL: `
SELECT from_user_id, to_user_id, type, update_time
FROM following FORCE INDEX (PRIMARY)
WHERE from_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY from_user_id, to_user_id LIMIT ?`,
		SQLite: `
SELECT from_user_id, to_user_id, type, update_time
FROM following INDEXED BY sqlite_autoindex_following_1
WHERE from_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY from_user_id, to_user_id LIMIT ?`,
	},
	storage.Requests: {
		MySQL: `
SELECT from_user_id, to_user_id, type, update_time
FROM friend_request FORCE INDEX (PRIMARY)
WHERE from_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY from_user_id, to_user_id LIMIT ?`,
		SQLite: `
SELECT from_user_id, to_user_id, type, update_time
FROM friend_request INDEXED BY sqlite_autoindex_friend_request_1
WHERE from_user_id > ? AND (type <> 0 OR update_time <> 0)
ORDER BY from_user_id, to_user_id LIMIT ?`,
	},
}

// ReadShard implements [storage.ShardReader].
func (s *Store) ReadShard(ctx context.Context, shard int, read func(storage.ShardMoment) error) error {
	return s.db.ReadMoment(ctx, shard, func(m *db.Moment) error { return read(moment{m, s.sql}) })
}

// moment implements [storage.ShardMoment].
type moment struct {
	*db.Moment
	sql *db.Dialect
}

func (m moment) Users(ctx context.Context, after storage.UserID, limit int) ([]storage.UserWithState, error) {
	var users []storage.UserWithState
	row := newUserRow(1 + userNumbers + 1)
	err := m.Scan(ctx, "shard.users", sqlUsersOfShard, []any{int64(after), limit}, func(rows *sql.Rows) error {
		row.Scan(rows)
		users = append(users, storage.UserWithState{
			User:  row.user(storage.UserID(row.At(0)), 1),
			State: storage.UserState(row.At(1 + userNumbers)),
		})
		return row.Err
	})
	if err != nil {
		return nil, err
	}
	return users, nil
}

func (m moment) Rows(ctx context.Context, side storage.Side, after storage.Pair, limit int) ([]storage.Edge, error) {
	var edges []storage.Edge
	scan := scanEdges(side)
	add := func(rows *sql.Rows) error {
		e, err := scan.next(rows)
		edges = append(edges, e)
		return err
	}
	if after.From > 0 {
		args := []any{int64(after.From), int64(after.To), limit}
		if err := m.Scan(ctx, "shard.rows", sqlRestOfOwner[side], args, add); err != nil {
			return nil, err
		}
	}
	if left := limit - len(edges); left > 0 {
		if err := m.Scan(ctx, "shard.rows", m.sql.Text(sqlRowsOfOwnersBehind[side]), []any{int64(after.From), left}, add); err != nil {
			return nil, err
		}
	}
	return edges, nil
}
