package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"kith/storage"
	"kith/storage/shard"
)

// Open connects to every shard, brings their tables up to date and checks that
// they are, in this order, the shards of one store. A new store is laid out.
// Two programs may open the same new store at once.
//
// Errors name the shard. [storage.ErrLayout] means that the databases answer but
// do not fit: other shards, another order, or tables newer than this program.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	d, addresses, err := parseLocation(cfg.Location)
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, sql: d, place: shard.NewMap(len(addresses)), packing: defaultPacking}
	if err := s.connect(ctx, addresses); err != nil {
		return nil, err
	}
	if err := errors.Join(s.refuseRepeats(ctx), s.migrate(ctx)); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.checkLayout(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Check tells what can be told of a location without connecting to it.
func Check(location string) error {
	_, _, err := parseLocation(location)
	return err
}

func parseLocation(location string) (*dialect, []string, error) {
	scheme, rest, _ := strings.Cut(location, ":")
	var d *dialect
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

func (s *Store) connect(ctx context.Context, addresses []string) error {
	open := openSQLite
	if s.sql == mysqlDialect {
		open = openMySQL
	}
	s.shards = make([]*node, len(addresses))
	err := s.everyShard(func(i int) error {
		n, err := open(ctx, addresses[i], s.cfg)
		if err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
		n.ordinal = i
		s.shards[i] = n
		return nil
	})
	if err != nil {
		for _, n := range s.shards {
			if n != nil {
				n.close()
			}
		}
	}
	return err
}

// everyShard runs f for all shards at once and joins their errors.
func (s *Store) everyShard(f func(i int) error) error {
	errs := make([]error, len(s.shards))
	var wg sync.WaitGroup
	for i := range s.shards {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// refuseRepeats sees to it that no database serves as two shards.
func (s *Store) refuseRepeats(ctx context.Context) error {
	seen := make(map[string]int, len(s.shards))
	for i, n := range s.shards {
		id, err := s.sql.identity(ctx, n)
		if err != nil {
			return fmt.Errorf("shard %d: %s: %w", i, n.name, err)
		}
		if first, ok := seen[id]; ok {
			return fmt.Errorf("%w: shards %d and %d are the same database, %s", storage.ErrLayout, first, i, n.name)
		}
		seen[id] = i
	}
	return nil
}
