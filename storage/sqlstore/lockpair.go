package sqlstore

import (
	"database/sql"
	"slices"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// rowsOfPair describes the rows between two users that decide a change: their tables, and the
// statement that reads them in one round trip. The statement locks the counts of one of the users
// or of both, and reads the rows of each towards the other. Its arguments are, for each table, the
// user, the other and the user again, and then the owners. The counts come first: the other tables
// are read from their rows.
type rowsOfPair struct {
	sides []storage.Side
	lock  string
}

var (
	follows         = rowsOfPair{storage.Sides[:storage.Requests], sqlLockFollows}
	followsAndMarks = rowsOfPair{[]storage.Side{storage.Forward, storage.Inverse, db.MarkSide}, sqlLockFollowsAndMarks}
	allRowsOfPair   = rowsOfPair{storage.Sides[:], sqlLockAllRows}
)

// On TiDB the statements lock only the counts: a LEFT JOIN that finds no row would lock a key that
// is the same for all users, and changes of strangers would wait for each other. On InnoDB the
// other tables have to be locked, or they would be read as they were before the wait for the
// counts; on TiDB a statement that has waited runs again. OF takes no alias there.
//
// Served by the primary keys.
var (
	sqlLockFollows = db.WithColumns(`
SELECT user_counts.user_id, {counts}, version, packed,
  f.type, f.update_time,
  r.type, r.update_time
FROM user_counts
LEFT JOIN following f /*T! FORCE INDEX (PRIMARY) */ ON f.from_user_id = user_counts.user_id AND f.to_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN follower r /*T! FORCE INDEX (PRIMARY) */ ON r.to_user_id = user_counts.user_id AND r.from_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */`)

	sqlLockFollowsAndMarks = db.WithColumns(`
SELECT user_counts.user_id, {counts}, version, packed,
  f.type, f.update_time,
  r.type, r.update_time,
  m.from_user_id, 0
FROM user_counts
LEFT JOIN following f /*T! FORCE INDEX (PRIMARY) */ ON f.from_user_id = user_counts.user_id AND f.to_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN follower r /*T! FORCE INDEX (PRIMARY) */ ON r.to_user_id = user_counts.user_id AND r.from_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN edge_marks m /*T! FORCE INDEX (PRIMARY) */ ON m.from_user_id = user_counts.user_id AND m.to_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */`)

	sqlLockAllRows = db.WithColumns(`
SELECT user_counts.user_id, {counts}, version, packed,
  f.type, f.update_time,
  r.type, r.update_time,
  q.type, q.update_time,
  i.type, i.update_time
FROM user_counts
LEFT JOIN following f /*T! FORCE INDEX (PRIMARY) */ ON f.from_user_id = user_counts.user_id AND f.to_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN follower r /*T! FORCE INDEX (PRIMARY) */ ON r.to_user_id = user_counts.user_id AND r.from_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN friend_request q /*T! FORCE INDEX (PRIMARY) */ ON q.from_user_id = user_counts.user_id AND q.to_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN friend_request_inbox i /*T! FORCE INDEX (PRIMARY) */ ON i.to_user_id = user_counts.user_id AND i.from_user_id = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */`)
)

// lockPair is lockAndLook for the change of one user towards another.
func (c *edgeChange) lockPair(user, other storage.UserID) error {
	owners := []storage.UserID{user}
	if c.inverse && c.isLocal(other) {
		owners = append(owners, other)
	}
	var args []any
	for range c.rows.sides {
		args = append(args, int64(user), int64(other), int64(user))
	}
	args = append(args, db.Arguments(owners)...)
	slices.Sort(owners)
	return c.readLocked(owners, db.Listed(c.rows.lock, len(owners)), args, func(row *sql.Rows) error {
		return c.scanPair(row, user, other)
	})
}

// scanPair passes the rows of one owner to the judge.
func (c *edgeChange) scanPair(row *sql.Rows, user, other storage.UserID) error {
	values := make([]struct{ kind, at sql.NullInt64 }, len(c.rows.sides))
	var into []any
	for i := range values {
		into = append(into, &values[i].kind, &values[i].at)
	}
	owner, err := c.scanLocked(row, into...)
	if err != nil {
		return err
	}
	peer := user
	if owner == user {
		peer = other
	}
	for i, side := range c.rows.sides {
		kind, at := values[i].kind, values[i].at
		pair := side.Pair(owner, peer)
		switch {
		case !kind.Valid:
		case side == db.MarkSide:
			c.Marked[pair] = true
		default:
			c.Know(side, pair.Edge(storage.EdgeType(kind.Int64), storage.Micros(at.Int64)))
		}
	}
	return nil
}
