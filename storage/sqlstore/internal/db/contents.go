package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"kith/storage"
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
WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
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

func noStore(name string) error {
	return fmt.Errorf("%w: there is no store at %s: kith serve, kith import and kith migrate make one", storage.ErrLayout, name)
}
