package db

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	"kith/storage"
	"kith/storage/sleep"
)

// inGo are, by dialect, the migrations that take more than SQL, such as a column that is computed. On a server each of their steps commits
// by itself, and may run again; on SQLite, whose migrations have one connection, each is a transaction.
var inGo = map[string][]*goose.Migration{}

//go:embed migrations/mysql/*.sql migrations/sqlite/*.sql
var migrations embed.FS

// migrate brings the tables of every shard up to date. Programs may start at the same time: MySQL
// has a named lock, and on SQLite a migration that another program has run in the meantime fails as
// a whole, and a second look shows that it need not run again. Each migration can be run again
// after a crash in its middle.
func (d *DB) migrate(ctx context.Context, shards []*Shard) error {
	return EveryShard(len(shards), func(i int) error {
		if err := d.migrateShard(ctx, shards[i]); err != nil {
			return fmt.Errorf("migrate shard %d (%s): %w", shards[i].Ordinal, shards[i].Name, err)
		}
		return nil
	})
}

func (d *DB) migrateShard(ctx context.Context, n *Shard) error {
	p, err := d.migrator(n)
	if err != nil {
		return err
	}
	if err := d.refuseForeign(ctx, n); err != nil {
		return d.Dialect.StorageError(ctx, err)
	}
	if err := refuseOthers(ctx, p); err != nil {
		return d.Dialect.StorageError(ctx, err)
	}
	if d.Dialect.migrating == nil {
		if _, err := n.migrations.ExecContext(ctx, sqlMigrateOnce); err != nil {
			return d.Dialect.StorageError(ctx, err)
		}
	}
	const tries = 5
	for try := 1; ; try++ {
		if _, err = p.Up(ctx); err == nil || d.Dialect.migrating != nil || try == tries {
			return d.Dialect.StorageError(ctx, err)
		}
		if err := sleep.For(ctx, time.Duration(try)*50*time.Millisecond); err != nil {
			return err
		}
	}
}

func (d *DB) migrator(n *Shard) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+d.Dialect.name)
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{goose.WithTableName("kith_migrations"), goose.WithGoMigrations(inGo[d.Dialect.name]...), goose.WithDisableGlobalRegistry(true)}
	if d.Dialect.migrating != nil {
		options = append(options, goose.WithSessionLocker(d.Dialect.migrating))
	}
	return goose.NewProvider(d.Dialect.goose, n.migrations, files, options...)
}

// sqlMigrateOnce makes it an error to record a migration a second time.
const sqlMigrateOnce = `
CREATE UNIQUE INDEX IF NOT EXISTS kith_migrations_once
ON kith_migrations (version_id)`

// refuseOthers ends the start of a program that is older than the tables. If the table of versions is missing, refuseOthers
// makes it under the lock: GetVersions takes no lock, and fails if another program has made the table but not yet filled it.
func refuseOthers(ctx context.Context, p *goose.Provider) error {
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	sources := p.ListSources()
	if known := sources[len(sources)-1].Version; have > known {
		return fmt.Errorf("%w: its tables are at version %d, this program knows %d: start a newer one",
			storage.ErrLayout, have, known)
	}
	return nil
}

// Migrated is the version of one shard's tables.
type Migrated struct {
	Shard   int    `json:"shard"`
	Name    string `json:"name"`
	Version int64  `json:"version"`
}

// Migrations returns the version of every shard's tables.
func (d *DB) Migrations(ctx context.Context) ([]Migrated, error) {
	list := make([]Migrated, len(d.All()))
	err := EveryShard(len(list), func(i int) error {
		p, err := d.migrator(d.Shard(i))
		if err != nil {
			return err
		}
		v, err := p.GetDBVersion(ctx)
		list[i] = Migrated{i, d.Shard(i).Name, v}
		return err
	})
	return list, err
}
