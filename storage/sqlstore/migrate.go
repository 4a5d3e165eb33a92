package sqlstore

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	"kith/storage"
)

//go:embed migrations/mysql/*.sql migrations/sqlite/*.sql
var migrations embed.FS

// migrate brings the tables of every shard up to date. Programs that start at
// once are safe: MySQL by a named lock, SQLite because a migration that another
// has run in the meantime fails, as a whole, and a second look shows that it need
// not run again. Each migration can be run again after a crash in its middle.
func (s *Store) migrate(ctx context.Context) error {
	return s.everyShard(func(i int) error {
		if err := s.migrateShard(ctx, s.shards[i]); err != nil {
			return fmt.Errorf("migrate shard %d (%s): %w", i, s.shards[i].name, err)
		}
		return nil
	})
}

func (s *Store) migrateShard(ctx context.Context, n *node) error {
	p, err := s.migrator(n)
	if err != nil {
		return err
	}
	if err := refuseOthers(ctx, p); err != nil {
		return s.sql.storageError(ctx, err)
	}
	if s.sql.migrating == nil {
		if _, err := n.migrations.ExecContext(ctx, sqlMigrateOnce); err != nil {
			return s.sql.storageError(ctx, err)
		}
	}
	const tries = 5
	for try := 1; ; try++ {
		if _, err = p.Up(ctx); err == nil || s.sql.migrating != nil || try == tries {
			return s.sql.storageError(ctx, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(try) * 50 * time.Millisecond):
		}
	}
}

func (s *Store) migrator(n *node) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+s.sql.name)
	if err != nil {
		return nil, err
	}
	options := []goose.ProviderOption{goose.WithTableName("kith_migrations")}
	if s.sql.migrating != nil {
		options = append(options, goose.WithSessionLocker(s.sql.migrating))
	}
	return goose.NewProvider(s.sql.goose, n.migrations, files, options...)
}

// sqlMigrateOnce makes it an error to record a migration a second time.
const sqlMigrateOnce = `
CREATE UNIQUE INDEX IF NOT EXISTS kith_migrations_once
ON kith_migrations (version_id)`

// refuseOthers ends the start of a program that is older than the tables, or whose first
// tables are newer. It makes the table of versions where that is missing, under the lock:
// GetVersions, which takes none, fails in between another program's making and filling it.
func refuseOthers(ctx context.Context, p *goose.Provider) error {
	have, err := p.GetDBVersion(ctx)
	if err != nil {
		return err
	}
	sources := p.ListSources()
	if have != 0 && have < sources[0].Version {
		return fmt.Errorf("%w: its tables are at version %d, from before the first release: import into a new store",
			storage.ErrLayout, have)
	}
	if known := sources[len(sources)-1].Version; have > known {
		return fmt.Errorf("%w: its tables are at version %d, this program knows %d: start a newer one",
			storage.ErrLayout, have, known)
	}
	return nil
}

// Migrated is the version of one shard's tables.
type Migrated struct {
	Shard   int
	Name    string
	Version int64
}

// Migrations tells the version of every shard's tables.
func (s *Store) Migrations(ctx context.Context) ([]Migrated, error) {
	list := make([]Migrated, len(s.shards))
	err := s.everyShard(func(i int) error {
		p, err := s.migrator(s.shards[i])
		if err != nil {
			return err
		}
		v, err := p.GetDBVersion(ctx)
		list[i] = Migrated{i, s.shards[i].name, v}
		return err
	})
	return list, err
}
