package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"kith/storage"
)

// A Moment is one shard as it is at one moment, read over one connection.
type Moment struct {
	db    *DB
	shard int
	conn  *sql.Conn
}

// ReadMoment calls read with a moment of a shard, which ends with read. Everything in it is read in
// one transaction that locks nothing; a connection that is lost is not replaced.
func (d *DB) ReadMoment(ctx context.Context, shard int, read func(*Moment) error) error {
	conn, err := d.begin(ctx, shard)
	if err != nil {
		return fmt.Errorf("begin to read shard %d (%s): %w", shard, d.Shard(shard).Name, d.Dialect.StorageError(ctx, err))
	}
	defer endMoment(conn)
	return read(&Moment{d, shard, conn})
}

// begin opens a connection and a transaction that sees the shard as of one moment.
func (d *DB) begin(ctx context.Context, shard int) (*sql.Conn, error) {
	conn, err := d.scanPool(shard).Conn(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range d.Dialect.beginMoment {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			endMoment(conn)
			return nil, err
		}
	}
	return conn, nil
}

// endMoment closes the connection: the statements of another caller must not see the past.
func endMoment(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = conn.Close()
}

// Served are the buckets of which the shard has the rows to read. It may also have rows of buckets
// that are moving.
func (m *Moment) Served(ctx context.Context) (storage.Choice, error) {
	var epoch int64
	var claims []Claim
	err := m.Scan(ctx, "shard.buckets", sqlReadBuckets, nil, claimScan(&epoch, &claims))
	return served(claims), err
}

// Scan runs a SELECT of a moment under the time limit of [DB.Scan].
func (m *Moment) Scan(ctx context.Context, what string, text string, args []any, each func(*sql.Rows) error) error {
	return m.db.timed(ctx, what, m.shard, 0, m.conn, m.db.cfg.writeTimeout(), text, args, each)
}
