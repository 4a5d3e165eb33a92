package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"kith/storage"
)

// Dialect is everything in which the MySQL family and SQLite differ.
type Dialect struct {
	name      string // of the folder of migrations
	goose     database.Dialect
	migrating lock.SessionLocker // held while migrating; nil where transactions do

	// Bounds on one statement.
	MaxKeys  int // ids in an IN list
	MaxPairs int // pairs in a list of row values
	MaxPages int // SELECTs in a UNION ALL
	MaxRows  int // rows of a multi-row INSERT

	Limited  string                                        // one ordered and limited SELECT (%s) as a member of a UNION ALL
	identity func(context.Context, *Shard) (string, error) // a text that no other database has

	// A server ends a statement itself and reports that. A server that has not answered for this
	// long beyond the limit is silent. 0: there is no server.
	grace time.Duration

	beginMoment []string // what opens a transaction that reads as of one moment and locks nothing

	HasLog    bool // changes are appended to relation_log: there is no binlog
	HasBinlog bool
	Moves     bool // buckets can move: a transaction can share a lock

	// A subquery whose range depends on the row of its statement reads the whole table.
	ScansSubqueries bool

	// A statement that waits for a row runs again whenever the row has been released, see
	// [Tx.ReadLocked].
	WaitsByTrying bool

	retryable   func(error) bool // a race for locks was lost: run the transaction again
	unavailable func(error) bool // the server is at fault, not the statement
}

// IsSQLite reports whether the databases are files of SQLite.
func (d *DB) IsSQLite() bool { return d.Dialect == sqliteDialect }

// StorageError translates a driver's error, in this one place. ctx is the
// context that the statement ran under.
func (d *Dialect) StorageError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errStatementTimeout):
		return fmt.Errorf("%w: %w: %v", storage.ErrUnavailable, errSilent, err)
	case ctx.Err() != nil:
		return ctx.Err()
	case isConnectionError(err), d.unavailable(err):
		return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	return err
}

// errStatementTimeout is the cause of a context that ended by the store's own
// limit rather than by the request's deadline.
var errStatementTimeout = errors.New("statement timeout")

func isConnectionError(err error) bool {
	_, isNet := errors.AsType[net.Error](err)
	return isNet || errors.Is(err, driver.ErrBadConn)
}
