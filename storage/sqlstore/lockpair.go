package sqlstore

import (
	"database/sql"
	"fmt"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// rowsOfPair are the rows between two users that decide a change: in which tables, and the
// statement that locks the counts of one of them or of both and reads the rows of each
// towards the other, in one round trip. Its arguments are, for each table, the user, the
// other and the user again, and then the owners. The counts come first: the other tables are
// read from their rows.
type rowsOfPair struct {
	sides []storage.Side
	lock  string
}

var (
	follows         = rowsOfPair{storage.Sides[:storage.Requests], sqlLockFollows}
	followsAndMarks = rowsOfPair{[]storage.Side{storage.Forward, storage.Inverse, db.MarkSide}, sqlLockFollowsAndMarks}
	allRowsOfPair   = rowsOfPair{storage.Sides[:], sqlLockAllRows}
)

// Served by the primary keys.
const (
	sqlLockFollows = `
SELECT c.user_id, c.following_count, c.follower_count, c.friend_count, c.version, c.packed,
  f.type, f.update_time,
  r.type, r.update_time
FROM user_counts c
LEFT JOIN following f ON f.from_user_id = c.user_id AND f.to_user_id = CASE c.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN follower r ON r.to_user_id = c.user_id AND r.from_user_id = CASE c.user_id WHEN ? THEN ? ELSE ? END
WHERE c.user_id IN (?)
ORDER BY c.user_id /*! FOR UPDATE */`

	sqlLockFollowsAndMarks = `
SELECT c.user_id, c.following_count, c.follower_count, c.friend_count, c.version, c.packed,
  f.type, f.update_time,
  r.type, r.update_time,
  m.from_user_id, 0
FROM user_counts c
LEFT JOIN following f ON f.from_user_id = c.user_id AND f.to_user_id = CASE c.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN follower r ON r.to_user_id = c.user_id AND r.from_user_id = CASE c.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN edge_marks m ON m.from_user_id = c.user_id AND m.to_user_id = CASE c.user_id WHEN ? THEN ? ELSE ? END
WHERE c.user_id IN (?)
ORDER BY c.user_id /*! FOR UPDATE */`

	sqlLockAllRows = `
SELECT c.user_id, c.following_count, c.follower_count, c.friend_count, c.version, c.packed,
  f.type, f.update_time,
  r.type, r.update_time,
  q.type, q.update_time,
  i.type, i.update_time
FROM user_counts c
LEFT JOIN following f ON f.from_user_id = c.user_id AND f.to_user_id = CASE c.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN follower r ON r.to_user_id = c.user_id AND r.from_user_id = CASE c.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN friend_request q ON q.from_user_id = c.user_id AND q.to_user_id = CASE c.user_id WHEN ? THEN ? ELSE ? END
LEFT JOIN friend_request_inbox i ON i.to_user_id = c.user_id AND i.from_user_id = CASE c.user_id WHEN ? THEN ? ELSE ? END
WHERE c.user_id IN (?)
ORDER BY c.user_id /*! FOR UPDATE */`
)

// lockPair is lock and look for the user and one other, whose rows are to be written as
// well where both is set.
func (c *change) lockPair(other storage.UserID, both bool, rows rowsOfPair) (counts storage.Counts, err error) {
	owners := []storage.UserID{c.user}
	if both {
		owners = append(owners, other)
	}
	c.uncounted = make(map[storage.UserID]bool)
	for _, id := range owners {
		c.uncounted[id] = true
	}
	var args []any
	for range rows.sides {
		args = append(args, int64(c.user), int64(other), int64(c.user))
	}
	args = append(args, db.Arguments(owners)...)
	err = c.Read(len(owners), db.Listed(rows.lock, len(owners)), args, func(row *sql.Rows) error {
		owner, n, err := c.scanPair(row, other, rows.sides)
		if owner == c.user {
			counts = n
		}
		return err
	})
	if err == nil && c.uncounted[c.user] {
		err = fmt.Errorf("%w: %s", storage.ErrUserUnknown, c.user)
	}
	return counts, err
}

// scanPair tells the judge of the rows of one owner.
func (c *change) scanPair(row *sql.Rows, other storage.UserID, sides []storage.Side) (owner storage.UserID, n storage.Counts, err error) {
	var flags int64
	values := make([]struct{ kind, at sql.NullInt64 }, len(sides))
	into := []any{&owner, &n.Following, &n.Follower, &n.Friend, &n.Version, &flags}
	for i := range values {
		into = append(into, &values[i].kind, &values[i].at)
	}
	if err := row.Scan(into...); err != nil {
		return owner, n, err
	}
	delete(c.uncounted, owner)
	c.noteLocked(owner, n, flags)
	peer := c.user
	if owner == c.user {
		peer = other
	}
	for i, side := range sides {
		kind, at := values[i].kind, values[i].at
		pair := side.Pair(owner, peer)
		switch {
		case !kind.Valid:
		case side == db.MarkSide:
			c.Marked[pair] = true
		default:
			c.Know(side, storage.Edge{
				From: pair.From, To: pair.To, Type: storage.EdgeType(kind.Int64), UpdateTime: storage.Micros(at.Int64),
			})
		}
	}
	return owner, n, nil
}
