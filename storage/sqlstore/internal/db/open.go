package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kith/storage"
	"kith/storage/shard"
)

// Open connects to every shard, brings their tables up to date and checks that
// they are, in this order, the shards of one store. A new store is laid out.
// Two programs may open the same new store at once.
//
// Errors name the shard. [storage.ErrLayout] means that the databases answer but
// do not fit: other shards, another order, or tables newer than this program.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	cfg = cfg.withDefaults()
	dialect, addresses, err := parseLocation(cfg.Location)
	if err != nil {
		return nil, err
	}
	d := &DB{cfg: cfg, Dialect: dialect, Place: shard.NewMap(len(addresses))}
	if err := d.connect(ctx, addresses); err != nil {
		return nil, err
	}
	if err := errors.Join(d.refuseRepeats(ctx), d.migrate(ctx)); err != nil {
		d.Close()
		return nil, err
	}
	if err := d.checkLayout(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Check tells what can be told of a location without connecting to it.
func Check(location string) error {
	_, _, err := parseLocation(location)
	return err
}

func parseLocation(location string) (*Dialect, []string, error) {
	scheme, rest, _ := strings.Cut(location, ":")
	var d *Dialect
	switch scheme {
	case "sqlite":
		d = sqliteDialect
	case "mysql":
		d = mysqlDialect
	default:
		return nil, nil, fmt.Errorf("unknown scheme %q: it is sqlite:PATH[;PATH…] or mysql:DSN[;DSN…]", scheme)
	}
	addresses := strings.Split(rest, ";")
	for i, a := range addresses {
		if addresses[i] = strings.TrimSpace(a); addresses[i] == "" {
			return nil, nil, fmt.Errorf("shard %d of %d is empty", i, len(addresses))
		}
		if d != mysqlDialect {
			continue
		}
		if _, err := parseDSN(addresses[i]); err != nil {
			return nil, nil, fmt.Errorf("shard %d: %w", i, err)
		}
	}
	if len(addresses) > shard.Buckets {
		return nil, nil, fmt.Errorf("%d shards are given, %d is the most", len(addresses), shard.Buckets)
	}
	return d, addresses, nil
}

func (d *DB) connect(ctx context.Context, addresses []string) error {
	open := openSQLite
	if d.Dialect == mysqlDialect {
		open = openMySQL
	}
	d.Shards = make([]*Shard, len(addresses))
	err := d.EveryShard(func(i int) error {
		n, err := open(ctx, addresses[i], d.cfg)
		if err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		n.Ordinal = i
		d.Shards[i] = n
		return nil
	})
	if err != nil {
		for _, n := range d.Shards {
			if n != nil {
				n.close()
			}
		}
		return err
	}
	// Which server of the family it is, the server has told. What suits TiDB suits the others, too.
	for _, n := range d.Shards {
		if n.dialect == tiDBDialect {
			d.Dialect = tiDBDialect
		}
	}
	return nil
}

// refuseRepeats sees to it that no database serves as two shards.
func (d *DB) refuseRepeats(ctx context.Context) error {
	seen := make(map[string]int, len(d.Shards))
	for i, n := range d.Shards {
		id, err := d.Dialect.identity(ctx, n)
		if err != nil {
			return fmt.Errorf("shard %d: %s: %w", i, n.Name, err)
		}
		if first, ok := seen[id]; ok {
			return fmt.Errorf("%w: shards %d and %d are the same database, %s", storage.ErrLayout, first, i, n.Name)
		}
		seen[id] = i
	}
	return nil
}
