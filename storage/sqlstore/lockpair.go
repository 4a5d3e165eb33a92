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
	follows         = rowsOf(storage.Sides[:storage.Requests]...)
	followsAndMarks = rowsOf(storage.Forward, storage.Inverse, db.MarkSide)
	allRowsOfPair   = rowsOf(storage.Sides[:]...)
)

// calledInPairs is what the tables are called in these statements.
var calledInPairs = [...]string{storage.Forward: "f", storage.Inverse: "r", storage.Requests: "q", storage.Inbox: "i", db.MarkSide: "m"}

// rowsOf makes the statement for some tables. It is served by the primary keys.
//
// On TiDB it locks only the counts: a LEFT JOIN that finds no row would lock a key that
// is the same for all users, and changes of strangers would wait for each other. On InnoDB the
// other tables have to be locked, or they would be read as they were before the wait for the
// counts; on TiDB a statement that has waited runs again. OF takes no alias there.
func rowsOf(sides ...storage.Side) rowsOfPair {
	columns, joins := "\nSELECT user_counts.user_id, {counts}, version, packed", "\nFROM user_counts"
	for _, side := range sides {
		t := calledInPairs[side]
		read := t + ".type, " + t + ".update_time"
		if side == db.MarkSide {
			read = t + ".from_user_id, 0"
		}
		columns += ",\n  " + read
		joins += db.OfSide("\nLEFT JOIN {table} "+t+" /*T! FORCE INDEX (PRIMARY) */ ON "+t+".{owner} = user_counts.user_id AND "+t+".{peer} = CASE user_counts.user_id WHEN ? THEN ? ELSE ? END", side)
	}
	return rowsOfPair{sides, db.WithColumns(columns + joins + `
WHERE user_counts.user_id IN (?)
ORDER BY user_counts.user_id /*! FOR UPDATE */ /*T! OF user_counts */`)}
}

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
