package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// The relation_log is SQLite's stand-in for a binlog: every row of an edge that is
// written, and every user, post and comment that is changed, is appended to it in the same transaction.
const (
	sqlAppendLog = `
INSERT INTO relation_log (side, from_user_id, to_user_id, post_id, type, update_time)
VALUES (?, ?, ?, ?, ?, ?)`

	// The first row has the position of the first entry that is left, or that will be written next: what was between it and the
	// position that was asked for is gone. It is part of the statement, because entries may be removed between two, and because a
	// reader at the end asks ten times a second. Served by the primary key.
	sqlReadLog = `
SELECT COALESCE((SELECT MIN(position) FROM relation_log), (SELECT seq + 1 FROM sqlite_sequence WHERE name = 'relation_log'), 1), 0, 0, 0, 0, 0, 0
UNION ALL
SELECT *
FROM (SELECT position, side, from_user_id, to_user_id, post_id, type, update_time
  FROM relation_log
  WHERE position > ?
  ORDER BY position LIMIT ?)`

	// The sequence has the last position also when its entry is gone. Served by the primary key.
	sqlLastOfLog = `
SELECT seq
FROM sqlite_sequence
WHERE name = 'relation_log'`

	// Served by the primary key.
	sqlPruneLog = `
DELETE FROM relation_log
WHERE position <= ?`
)

// logKept is how many entries of a shard's log large writes leave, even if a reader has not read
// the older ones yet. An import would otherwise leave a log as large as its tables.
const logKept = 500_000

// HasLog reports whether this store has a relation_log.
func (s *Store) HasLog() bool { return s.sql.HasLog }

// HasBinlog reports whether the servers write a binlog, or can be made to: those of MySQL and
// MariaDB. TiDB writes none.
func (s *Store) HasBinlog() bool { return s.sql.HasBinlog }

// log appends rows that have been written.
func (w *writer) log(side storage.Side, edges []storage.Edge) error {
	if !w.store.HasLog() {
		return nil
	}
	_, err := db.WriteRows(w.Tx, sqlAppendLog, edges, func(args []any, e storage.Edge) []any {
		return append(args, int64(side), int64(e.From), int64(e.To), e.Item, int64(e.Type), int64(e.UpdateTime))
	})
	return err
}

// logBeside appends the users, posts and comments that the transaction has changed, see [storage.PostID.LogRow].
func (w *writer) logBeside() error {
	if !w.store.HasLog() {
		return nil
	}
	var rows []storage.Edge
	for _, u := range w.change.Users {
		if u.What.Has(storage.Whole | storage.Standing) {
			rows = append(rows, storage.PostID{Author: u.User}.LogRow().Edge)
		}
	}
	for _, p := range w.change.Posts {
		if p.Number != 0 { // all posts of a user who is gone
			rows = append(rows, p.LogRow().Edge)
		}
	}
	for _, id := range w.comments {
		rows = append(rows, id.LogRow().Edge)
	}
	return w.log(storage.Forward, rows)
}

// shortenLog removes the oldest entries after a large write.
func (w *writer) shortenLog() error {
	if !w.store.HasLog() {
		return nil
	}
	var last int64
	if _, err := w.ReadOne(sqlLastOfLog, nil, &last); err != nil || last <= logKept {
		return err
	}
	_, err := w.Exec(1, sqlPruneLog, last-logKept)
	return err
}

// ReadLog implements [storage.LogReader].
func (s *Store) ReadLog(ctx context.Context, shard int, after int64, limit int) ([]storage.LogEntry, error) {
	if !s.HasLog() {
		return nil, errNoLog
	}
	var entries []storage.LogEntry
	err := s.db.Query(ctx, "log", shard, limit, sqlReadLog, []any{after, limit}, db.AppendTo(&entries, func(e *storage.LogEntry) []any {
		return []any{&e.Position, &e.Side, &e.Edge.From, &e.Edge.To, &e.Edge.Item, &e.Edge.Type, &e.Edge.UpdateTime}
	}))
	if err != nil {
		return nil, err
	}
	if entries[0].Position > after+1 {
		return nil, fmt.Errorf("%w: what follows %d is gone", storage.ErrLogPruned, after)
	}
	return entries[1:], nil
}

// LastOfLog is the position of the newest entry that a shard's log has had, 0 at
// the beginning.
func (s *Store) LastOfLog(ctx context.Context, shard int) (int64, error) {
	if !s.HasLog() {
		return 0, errNoLog
	}
	var last int64
	err := s.db.Query(ctx, "log.last", shard, 1, sqlLastOfLog, nil, func(rows *sql.Rows) error { return rows.Scan(&last) })
	return last, err
}

// PruneLog implements [storage.LogReader].
func (s *Store) PruneLog(ctx context.Context, shard int, upTo int64) error {
	if !s.HasLog() {
		return errNoLog
	}
	_, err := s.db.Shard(shard).Write.ExecContext(ctx, sqlPruneLog, upTo)
	if err != nil {
		return fmt.Errorf("prune the log of shard %d: %w", shard, s.sql.StorageError(ctx, err))
	}
	return nil
}

// errNoLog is the answer of an engine that has a binlog instead.
var errNoLog = errors.New("this engine has a binlog, not a relation_log")
