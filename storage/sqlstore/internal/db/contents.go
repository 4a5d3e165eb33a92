package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"kith/storage"
	"kith/storage/doctor"
)

// What is in a database before Kith makes its tables there.

// Served by the primary key of the data dictionary.
var sqlAnyTable = Text{
	MySQL: `
SELECT table_name
FROM information_schema.tables
WHERE table_schema = DATABASE()
LIMIT 1`,
	SQLite: `
SELECT name
FROM sqlite_master
WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'
LIMIT 1`,
}

// Served by the primary key of the data dictionary.
var sqlHasMigrations = Text{
	MySQL: `
SELECT COUNT(*)
FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name = 'kith_migrations'`,
	SQLite: `
SELECT COUNT(*)
FROM sqlite_master
WHERE type = 'table' AND name = 'kith_migrations'`,
}

// refuseForeign returns an error if a database has tables, and none of them was the first that Kith makes. Another program
// may be making Kith's tables at this moment, so that one is looked for last.
func (d *DB) refuseForeign(ctx context.Context, n *Shard) error {
	var table string
	err := n.migrations.QueryRowContext(ctx, d.Dialect.Text(sqlAnyTable)).Scan(&table)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if has, err := d.hasTables(ctx, n); has || err != nil {
		return err
	}
	return fmt.Errorf("%w: the database has tables that are not Kith's (%s): give Kith a database of its own, or load the whole dump first",
		storage.ErrLayout, table)
}

func (d *DB) hasTables(ctx context.Context, n *Shard) (has bool, err error) {
	err = n.migrations.QueryRowContext(ctx, d.Dialect.Text(sqlHasMigrations)).Scan(&has)
	return has, err
}

// errNoStore is the error of a database in which Kith has made nothing: a [storage.ErrLayout], and
// [storage.ErrUnavailable], as it may be restored, or another process may make it.
var errNoStore error = noStore{}

type noStore struct{}

func (noStore) Error() string { return "there is no store" }
func (noStore) Is(target error) bool {
	return target == storage.ErrLayout || target == storage.ErrUnavailable
}

// haveTables returns [errNoStore] if a database has no tables of Kith.
func (d *DB) haveTables(ctx context.Context, shards []*Shard) error {
	return EveryShard(len(shards), func(i int) error {
		has, err := d.hasTables(ctx, shards[i])
		if err == nil && !has {
			err = fmt.Errorf("%w at %s", errNoStore, shards[i].Name)
		}
		if err == nil || errors.Is(err, errNoStore) {
			return err
		}
		return fmt.Errorf("shard %d: %s: %w", i, shards[i].Name, d.Dialect.StorageError(ctx, err))
	})
}

// isNoTable reports whether a statement failed because its table is missing.
func isNoTable(err error) bool {
	return doctor.IsError(err, 1146) || err != nil && strings.Contains(err.Error(), "no such table")
}
