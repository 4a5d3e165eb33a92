package binlog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"kith/storage/doctor"
	"kith/storage/sleep"
)

// identify asks every DSN to which server it leads, until all have answered, and groups the
// databases by server: many shards may share one server, also under different names. There are none if the context ends first.
func (r *Replicator) identify(ctx context.Context) (servers []*server, err error) {
	var opened []*server
	defer func() {
		for _, s := range opened {
			if !slices.Contains(servers, s) {
				_ = s.db.Close()
			}
		}
	}()
	for i, dsn := range r.cfg.DSNs {
		s, err := r.askUntilAnswered(ctx, i, strings.TrimSpace(dsn))
		if s != nil {
			opened = append(opened, s)
		}
		if err != nil || ctx.Err() != nil {
			return nil, err
		}
		known, err := s.among(ctx, servers)
		if err != nil {
			return nil, err
		}
		if known == nil {
			servers = append(servers, s)
			continue
		}
		known.databases = append(known.databases, s.databases...)
	}
	return servers, nil
}

// among returns which of the servers s is, if any. Two with the same identity at different
// addresses are one server if a lock taken on one is visible on the other: MariaDB has no identity
// that is certain to be unique.
func (s *server) among(ctx context.Context, servers []*server) (*server, error) {
	for _, other := range servers {
		if other.identity != s.identity {
			continue
		}
		if other.name == s.name {
			return other, nil
		}
		conn, err := other.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		name := "kith_same/" + uuid.NewString()
		var taken, seen sql.NullInt64
		if err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(?, 0)`, name).Scan(&taken); err != nil {
			return nil, err
		}
		if err := s.db.QueryRowContext(ctx, `SELECT IS_USED_LOCK(?)`, name).Scan(&seen); err != nil {
			return nil, err
		}
		if _, err := conn.ExecContext(ctx, `DO RELEASE_LOCK(?)`, name); err != nil {
			return nil, err
		}
		if seen.Valid {
			return other, nil
		}
		s.identity += "@" + s.name
	}
	return nil, nil
}

func (r *Replicator) askUntilAnswered(ctx context.Context, ordinal int, dsn string) (*server, error) {
	parsed, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("shard %d: %w", ordinal, err)
	}
	if parsed.DBName == "" {
		return nil, fmt.Errorf("shard %d: the DSN names no database", ordinal)
	}
	s := &server{
		cfg:       &r.cfg,
		name:      parsed.Addr,
		dsn:       parsed,
		databases: []string{parsed.DBName},
		resync:    r.cfg.Resync,
		state:     Connecting,
	}
	if s.db, err = s.pool(4, 30*time.Second, nil); err != nil {
		return nil, fmt.Errorf("shard %d: %w", ordinal, err)
	}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := s.ask(ctx)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return nil, s.db.Close()
		case doctor.IsError(err, 1146): // no such table
			return nil, errors.Join(fmt.Errorf("%s/%s is no shard of a store: %w", s.name, parsed.DBName, err), s.db.Close())
		}
		r.cfg.Logger.Warn("replication: server does not answer: retrying", "server", s.name, "error", err)
		_ = sleep.For(ctx, pause)
	}
}

// ask learns which server this is.
func (s *server) ask(ctx context.Context) error {
	const sqlServer = `
SELECT @@version, CONCAT(@@hostname, ':', @@port), @@datadir, (
  SELECT store_uuid
  FROM kith_meta
  LIMIT 1
)`
	var version, host, folder string
	var store sql.NullString
	if err := s.db.QueryRowContext(ctx, sqlServer).Scan(&version, &host, &folder, &store); err != nil {
		return err
	}
	s.store = store.String
	s.flavor, s.identity = mariaDB, host+folder
	if doctor.FlavorOf(version) == "MariaDB" {
		return nil
	}
	s.flavor = mySQL
	return s.db.QueryRowContext(ctx, `SELECT @@server_uuid`).Scan(&s.identity)
}
