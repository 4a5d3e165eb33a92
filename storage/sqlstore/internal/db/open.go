package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kith/storage"
	"kith/storage/sleep"
)

// Open is sqlstore.Open.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	cfg = cfg.withDefaults()
	dialect, addresses, err := parseLocation(cfg.Location)
	if err != nil {
		return nil, err
	}
	d := &DB{cfg: cfg, Dialect: dialect, Map: storage.NewShardMap(len(addresses)), remapped: make(sleep.Waker, 1)}
	if err := d.open(ctx, addresses); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// open opens the shards that are given, and then those that have been added to the store.
func (d *DB) open(ctx context.Context, addresses []string) error {
	shards, err := d.connectGiven(ctx, addresses)
	d.shards.Store(&shards)
	if err != nil {
		return err
	}
	// The server has said which one of the family it is. A statement that suits TiDB suits the
	// others, too.
	for _, n := range shards {
		if n.dialect == tiDBDialect {
			d.Dialect = tiDBDialect
		}
	}
	if err := d.refuseRepeats(ctx); err != nil {
		return err
	}
	if err := d.migrate(ctx, shards); err != nil {
		return err
	}
	if err := d.checkLayout(ctx); err != nil {
		return err
	}
	return d.Refresh(ctx)
}

// Check reports what is wrong with a location, as far as that shows without a connection.
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
			return nil, nil, fmt.Errorf("the address of shard %d of %d is missing: sqlite:PATH[;PATH…] or mysql:DSN[;DSN…]", i, len(addresses))
		}
		if d != mysqlDialect {
			continue
		}
		if _, err := parseDSN(addresses[i]); err != nil {
			return nil, nil, fmt.Errorf("shard %d: %w", i, err)
		}
	}
	if len(addresses) > storage.Buckets {
		return nil, nil, fmt.Errorf("%d shards are given, %d is the most", len(addresses), storage.Buckets)
	}
	return d, addresses, nil
}

// connectGiven opens the databases that are given. If there is a store, or one must exist, none of them may be empty: its address
// is wrong, or it has lost its data. So nothing is made before that is known.
func (d *DB) connectGiven(ctx context.Context, addresses []string) ([]*Shard, error) {
	shards, err := d.connect(ctx, d.cfg.existing(), 0, addresses)
	if err != nil && !errors.Is(err, errNoStore) {
		return shards, err
	}
	begun, failed := d.isBegun(ctx, shards) // before it is looked which are empty: another program may be making a new store
	empty := cmp.Or(failed, err, d.haveTables(ctx, shards))
	switch {
	case failed != nil || empty != nil && !errors.Is(empty, errNoStore):
		return shards, empty
	case begun && empty != nil:
		return shards, fmt.Errorf("%w, and others of KITH_STORE are shards: its address is wrong, or it is lost and not restored yet", empty)
	case d.cfg.MustExist && empty != nil:
		return shards, fmt.Errorf("%w: kith serve, kith import and kith migrate make one", empty)
	case err == nil:
		return shards, nil
	}
	for _, n := range shards {
		_ = n.close() // nothing is under way there
	}
	return d.connect(ctx, d.cfg, 0, addresses)
}

// existing is the configuration to open databases that are shards already.
func (c Config) existing() Config {
	c.MustExist = true
	return c
}

// connect opens databases as the shards from an ordinal on. The caller closes them.
func (d *DB) connect(ctx context.Context, cfg Config, first int, addresses []string) ([]*Shard, error) {
	open := openSQLite
	if d.Dialect != sqliteDialect {
		open = openMySQL
	}
	found := make([]*Shard, len(addresses))
	err := EveryShard(len(found), func(i int) error {
		n, err := open(ctx, addresses[i], cfg)
		if err != nil {
			return fmt.Errorf("shard %d: %w", first+i, err)
		}
		n.Ordinal, n.Address = first+i, addresses[i]
		found[i] = n
		return nil
	})
	return slices.DeleteFunc(found, func(n *Shard) bool { return n == nil }), err
}

// refuseRepeats makes sure that no database serves as two shards.
func (d *DB) refuseRepeats(ctx context.Context) error {
	seen := make(map[string]int, len(d.All()))
	for i, n := range d.All() {
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
