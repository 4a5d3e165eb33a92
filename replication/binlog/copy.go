package binlog

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"kith/replication"
	"kith/storage"
)

// copyRows is how many rows the copy reads at a time.
const copyRows = 5000

// Served by the primary key. The condition on the pair is spelled so that it is a
// range. The lock makes it wait for rows whose transaction is in the binlog, and so
// behind the recorded position, but not committed in the tables yet: without it
// they would be in neither the copy nor what is read of the binlog.
const sqlCopy = `
SELECT from_user_id, to_user_id, type, update_time
FROM %s.following FORCE INDEX (PRIMARY)
WHERE from_user_id >= ?
  AND (from_user_id > ? OR to_user_id > ?)
ORDER BY from_user_id, to_user_id
LIMIT ?
LOCK IN SHARE MODE`

// copyAll applies all of `following`, database by database, from a place on, and
// returns when it is applied.
func (s *server) copyAll(ctx context.Context, feed *replication.Feed, p *progress, place copyPlace) error {
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
	s.log().Info("replication: copying following", "databases", s.databases[place.Database:])
	began, rows := time.Now(), 0
	for ; place.Database < len(s.databases); place = (copyPlace{Database: place.Database + 1}) {
		n, err := s.copyDatabase(ctx, conn, feed, p, place)
		if err != nil {
			return fmt.Errorf("copy %s.following: %w", s.databases[place.Database], err)
		}
		rows += n
	}
	if err := feed.Flush(ctx); err != nil {
		return err
	}
	p.copied(nil)
	s.log().Info("replication: following is copied", "rows", rows, "took", time.Since(began).Round(time.Millisecond).String())
	return p.save(ctx)
}

// copyDatabase submits one database's rows, in ranges of the key, and returns how
// many there were.
func (s *server) copyDatabase(ctx context.Context, conn *sql.Conn, feed *replication.Feed, p *progress, place copyPlace) (int, error) {
	for total := 0; ; {
		edges, err := s.copyRange(ctx, conn, place)
		if isDriverError(err, 1205, 1213) { // a lock was not to be had
			continue
		}
		if err != nil || len(edges) == 0 {
			return total, err
		}
		total += len(edges)
		last := edges[len(edges)-1]
		place.From, place.To = last.From, last.To
		reached := place
		err = feed.Submit(ctx, replication.Batch{
			Edges:     edges,
			Committed: storage.MicrosOf(time.Now()),
			Known:     true,
			Done:      func() { p.copied(&reached) },
		})
		if err != nil {
			return total, err
		}
	}
}

// copyRange reads the rows behind a place.
func (s *server) copyRange(ctx context.Context, conn *sql.Conn, place copyPlace) ([]storage.Edge, error) {
	text := fmt.Sprintf(sqlCopy, quoted(s.databases[place.Database]))
	rows, err := conn.QueryContext(ctx, text, place.From, place.From, place.To, copyRows)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var edges []storage.Edge
	for rows.Next() {
		var e storage.Edge
		if err := rows.Scan(&e.From, &e.To, &e.Type, &e.UpdateTime); err != nil {
			return nil, err
		}
		edges = append(edges, e)
	}
	return edges, rows.Err()
}
