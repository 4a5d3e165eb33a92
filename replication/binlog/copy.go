package binlog

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"kith/replication"
	"kith/storage"
	"kith/storage/doctor"
)

// copyRows is how many rows the copy reads at a time.
const copyRows = 5000

// Served by the primary key. The condition on the pair is written so that it is two ranges, and no row before them is read: one
// user may have millions. The lock makes the statement wait for rows whose transaction is in the binlog before the recorded
// position, but not yet committed in the tables: without the lock these rows would be neither in
// the copy nor in the part of the binlog that is read.
const sqlCopy = `
SELECT from_user_id, to_user_id, type, update_time
FROM %s.%s FORCE INDEX (PRIMARY)
WHERE from_user_id = ? AND to_user_id > ?
  OR from_user_id > ?
ORDER BY from_user_id, to_user_id
LIMIT ?
LOCK IN SHARE MODE`

// The same for a table whose key has an item, in the column of the third argument.
const sqlCopyItems = `
SELECT from_user_id, to_user_id, type, update_time, %[3]s
FROM %[1]s.%[2]s FORCE INDEX (PRIMARY)
WHERE from_user_id = ? AND to_user_id = ? AND %[3]s > ?
  OR from_user_id = ? AND to_user_id > ?
  OR from_user_id > ?
ORDER BY from_user_id, to_user_id, %[3]s
LIMIT ?
LOCK IN SHARE MODE`

// copyAll applies all rows of the forward tables, table by table and database by database,
// beginning at a state, and returns when they have been applied.
func (s *server) copyAll(ctx context.Context, feed *replication.Feed, p *progress, state copyState) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range []string{
		`SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`, // no locks on gaps
		`SET SESSION innodb_lock_wait_timeout = 5`,
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	s.set(Copying, nil)
	s.log().Info("replication: copying all edges", "databases", s.databases, "table", copied[state.Table].String())
	began, rows := time.Now(), 0
	for ; state.Table < len(copied); state = (copyState{Table: state.Table + 1}) {
		for ; state.Database < len(s.databases); state = (copyState{Table: state.Table, Database: state.Database + 1}) {
			n, err := s.copyDatabase(ctx, conn, feed, p, state)
			if err != nil {
				return fmt.Errorf("copy %s.%s: %w", s.databases[state.Database], copied[state.Table], err)
			}
			rows += n
		}
	}
	if err := feed.Flush(ctx); err != nil {
		return err
	}
	p.copied(nil)
	s.log().Info("replication: all edges copied", "rows", rows, "took", time.Since(began).Round(time.Millisecond).String())
	return p.save(ctx)
}

// copied are the tables that are copied, in this order: [copyState.Table] is an index.
var copied = storage.Truths

// copyDatabase submits one database's rows of a table, in ranges of the key, and returns
// how many there were.
func (s *server) copyDatabase(ctx context.Context, conn *sql.Conn, feed *replication.Feed, p *progress, state copyState) (int, error) {
	for total := 0; ; {
		rows, err := s.copyRange(ctx, conn, state)
		if doctor.IsError(err, 1205, 1213) { // a lock could not be taken
			continue
		}
		if err != nil || len(rows) == 0 {
			return total, err
		}
		total += len(rows)
		last := rows[len(rows)-1].Edge
		state.From, state.To, state.Post = last.From, last.To, last.Item
		reached := state
		err = feed.Submit(ctx, replication.Batch{
			Rows:      rows,
			Committed: storage.MicrosOf(time.Now()),
			Known:     true,
			Done:      func() { p.copied(&reached) },
		})
		if err != nil {
			return total, err
		}
	}
}

// copyRange reads the rows after the last key of a state.
func (s *server) copyRange(ctx context.Context, conn *sql.Conn, state copyState) ([]storage.Row, error) {
	side := copied[state.Table]
	text, args := fmt.Sprintf(sqlCopy, doctor.Quoted(s.databases[state.Database]), side), []any{state.From, state.To, state.From, copyRows}
	if side.HasItem() {
		text = fmt.Sprintf(sqlCopyItems, doctor.Quoted(s.databases[state.Database]), side, side.Item())
		args = []any{state.From, state.To, state.Post, state.From, state.To, state.From, copyRows}
	}
	found, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var rows []storage.Row
	for found.Next() {
		var e storage.Edge
		into := []any{&e.From, &e.To, &e.Type, &e.UpdateTime}
		if side.HasItem() {
			into = append(into, &e.Item)
		}
		if err := found.Scan(into...); err != nil {
			return nil, err
		}
		rows = append(rows, storage.Row{Side: side, Edge: e})
	}
	return rows, found.Err()
}
