package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"kith/storage"
	"kith/storage/doctor"
)

// Examine looks at every shard of a location without changing anything: no table is made, no migration run. Shards
// that have been added to the store are looked at, too. first gets the first one, if it is a shard. The addresses are those of all shards.
func Examine(ctx context.Context, cfg Config, first func(*sql.DB)) (all doctor.List, addresses []string) {
	shards, err := examineAll(ctx, cfg, first)
	if err != nil {
		all.Fail("store", "", err.Error(), "correct KITH_STORE")
		return all, nil
	}
	defer closeAll(shards)
	all = append(all, onceAServer(shards)...)
	examineLayout(&all, shards)
	examineClocks(&all, shards)
	examineConnections(&all, shards, cfg.withDefaults())
	return all, storage.Each(shards, func(s *examined) string { return s.at })
}

// An Answer is what a shard says of itself.
type Answer struct {
	Name   string
	Claims []Claim // none if it does not answer
	Err    error   // why it does not answer, is not the store's, or takes no writes
}

// AskShards reads what each shard has, as far as it answers, in the way of [Examine].
func AskShards(ctx context.Context, cfg Config) (list []Answer, err error) {
	shards, err := examineAll(ctx, cfg, func(*sql.DB) {})
	if err != nil {
		return nil, err
	}
	defer closeAll(shards)
	var all doctor.List
	examineLayout(&all, shards)
	store, failed, decides := false, false, doctor.OneOf("server", "file", "tables", "layout")
	for _, s := range shards {
		n := Answer{Name: s.name, Claims: s.claims}
		for _, f := range append(s.List, all...) {
			if n.Err == nil && f.Level == doctor.Fail && f.Of == s.of && decides(f.Check) {
				n.Err = errors.New(f.Says)
			}
		}
		store, failed, list = store || s.meta != nil, failed || n.Err != nil, append(list, n)
	}
	if !store && !failed {
		return nil, fmt.Errorf("%w at %s", errNoStore, list[0].Name)
	}
	return list, nil
}

// examineAll examines the shards that are given, and those that the store has beyond them. The caller closes them.
func examineAll(ctx context.Context, cfg Config, first func(*sql.DB)) ([]*examined, error) {
	cfg = cfg.withDefaults()
	dialect, addresses, err := parseLocation(cfg.Location)
	if err != nil {
		return nil, err
	}
	d := &DB{cfg: cfg, Dialect: dialect}
	shards := d.examineShards(ctx, 0, addresses)
	if s := shards[0]; s.shard != nil && s.meta != nil {
		first(s.shard.Read)
		d.shards.Store(&[]*Shard{s.shard})
		added, err := d.addedBehind(ctx, shards, s.meta.shards)
		if err != nil {
			s.Fail("layout", s.of, fmt.Sprintf("the list of added shards cannot be read: %v", err), "")
		}
		shards = append(shards, d.examineShards(ctx, len(addresses), added)...)
	}
	return shards, nil
}

func closeAll(shards []*examined) {
	for _, s := range shards {
		if s.shard != nil {
			_ = s.shard.close()
		}
	}
}

// examined is what is known of a shard.
type examined struct {
	doctor.List
	of     string
	at     string  // its address
	name   string  // server and database, or file
	shard  *Shard  // nil if it cannot be reached
	meta   *meta   // nil if it is new, or cannot be read
	claims []Claim // if it has a meta

	server      string // which it is on; empty on SQLite
	address     string // of that
	connections int    // that it takes
	ahead       time.Duration
	timed       bool // whether ahead is known
}

// examineShards examines several at once: one that does not answer takes seconds.
func (d *DB) examineShards(ctx context.Context, first int, addresses []string) []*examined {
	list := make([]*examined, len(addresses))
	_ = EveryShard(len(list), func(i int) error {
		s := &examined{of: fmt.Sprintf("shard %d", first+i), at: addresses[i]}
		list[i] = s
		if d.Dialect == sqliteDialect {
			d.examineFile(ctx, s, addresses[i])
		} else {
			d.examineServer(ctx, s, addresses[i])
		}
		if s.shard != nil {
			s.shard.Ordinal, s.shard.Address = first+i, addresses[i]
			d.examineTables(ctx, s)
		}
		return nil
	})
	return list
}

// onceAServer are the findings of the shards, and of each server once, however many shards it has.
func onceAServer(shards []*examined) (all doctor.List) {
	type fact struct {
		server, check, says string // isolation and encryption are those of a connection, and may differ
		level               doctor.Level
	}
	first := map[fact]*examined{}
	ofServer := doctor.OneOf("version", "isolation", "encryption", "clock", "read_only", "durability", "max_allowed_packet", "binlog_format")
	for _, s := range shards {
		for _, f := range s.List {
			if s.server != "" && ofServer(f.Check) {
				key := fact{s.server, f.Check, f.Says, f.Level}
				if f.Check == "clock" { // measured for each
					key.says = ""
				}
				if first[key] == nil {
					first[key] = s
				} else if first[key] != s {
					continue
				}
				f.Of = "server " + s.address
			}
			all = append(all, f)
		}
	}
	return all
}

// addedBehind are the addresses of shards that the store has beyond those that are given. Of these, it looks whether they are
// where the store has them.
func (d *DB) addedBehind(ctx context.Context, given []*examined, laidOut int) (addresses []string, err error) {
	if first := given[0]; len(given) < laidOut {
		first.Fail("layout", first.of, fmt.Sprintf("the store has %d shards, %d are given", laidOut, len(given)), "name the databases of all shards in KITH_STORE, in the order in which they were first given")
		return nil, nil
	}
	listed, err := d.listed(ctx)
	for _, s := range given {
		if s.shard == nil || s.shard.Ordinal < laidOut || listed[s.shard.Ordinal] == "" {
			continue
		}
		if err := d.isPlaced(ctx, s.shard, listed[s.shard.Ordinal]); err != nil {
			s.Fail("layout", s.of, err.Error(), "")
		}
	}
	for n := len(given); err == nil && n < numberOf(listed, laidOut); n++ {
		var address string
		address, err = d.withCredentials(listed[n])
		addresses = append(addresses, address)
	}
	return addresses, err
}

// Served by the primary key: the table has a row a migration.
const sqlNewestMigration = `SELECT MAX(version_id) FROM kith_migrations`

// examineTables compares the tables' version with that of this program.
func (d *DB) examineTables(ctx context.Context, s *examined) {
	p, err := d.migrator(s.shard)
	if err != nil {
		s.Fail("tables", s.of, err.Error(), "")
		return
	}
	sources := p.ListSources()
	known := sources[len(sources)-1].Version
	var version sql.NullInt64
	err = s.shard.Read.QueryRowContext(ctx, sqlNewestMigration).Scan(&version)
	switch have := version.Int64; {
	case isNoTable(err) || err == nil && have == 0:
		if err := d.refuseForeign(ctx, s.shard); err != nil {
			s.Fail("tables", s.of, err.Error(), "name a database of Kith's own in KITH_STORE")
			return
		}
		s.OK("tables", s.of, "there are none yet: the first start creates them")
		return
	case err != nil:
		s.Fail("tables", s.of, fmt.Sprintf("their version cannot be read: %v", err), "grant SELECT on the database")
		return
	case have > known:
		s.Fail("tables", s.of, fmt.Sprintf("they are at version %d, this program knows %d", have, known), "start a newer program")
		return
	case have < known:
		s.Warn("tables", s.of, fmt.Sprintf("they are at version %d, this program brings them to %d", have, known), "run kith migrate, or let the next start do it")
	case admitted(ctx, s.shard.Read) != nil:
		s.Fail("tables", s.of, "nothing is written to the shard: it is being restored, or has been", "kith shards readmit, once its dump and its binlogs are in")
	default:
		s.OK("tables", s.of, "version %d", have)
	}
	if s.meta, err = d.readMeta(ctx, s.shard); err != nil {
		s.Fail("layout", s.of, err.Error(), "")
	}
	s.examineMoves(ctx)
}

// examineMoves looks for buckets that are being moved, as some may stay that no process moves any more.
func (s *examined) examineMoves(ctx context.Context) {
	var epoch int64
	_, _ = s.shard.dialect.scan(ctx, s.shard.Read, sqlReadBuckets, nil, claimScan(&epoch, &s.claims)) // older tables are reported already
	for _, c := range s.claims {
		switch {
		case c.Other == OtherStore && c.State == Left:
			s.Warn("moves", s.of, "it has been copied to another store and takes no writes", "start everything with the copy, or kith shards abort if nobody has written to it")
		case c.Other == OtherStore:
			s.Warn("moves", s.of, "it is being copied to another store", "if no kith copy is running: the same kith copy goes on, kith shards abort gives it up")
		case c.State != Owned:
			s.Warn("moves", s.of, fmt.Sprintf("buckets %d–%d are being moved", c.First, c.Last), "if no kith shards is running: kith shards resume, or kith shards abort")
		}
	}
}

// examineLayout compares what the shards record of the store with the order in which they are given.
func examineLayout(all *doctor.List, shards []*examined) {
	known := storage.Filter(shards, func(s *examined) bool { return s.meta != nil })
	bad := false
	for _, s := range shards {
		switch {
		case s.meta == nil && (len(known) == 0 || s.Count(doctor.Fail) > 0):
			continue // a new store, or said already
		case s.meta == nil:
			all.Fail("layout", s.of, "it is empty, and others are shards of a store", "correct its address in KITH_STORE, or restore it; the next start finishes a half-made store")
		case s.meta.uuid != known[0].meta.uuid:
			all.Fail("layout", s.of, "it belongs to another store than "+known[0].of, "name the databases of one store, in the order in which they were first given")
		case s.meta.ordinal != s.shard.Ordinal:
			all.Fail("layout", s.of, fmt.Sprintf("it is shard %d of the store", s.meta.ordinal), "put the databases of KITH_STORE into the order in which they were first given")
		default:
			continue
		}
		bad = true
	}
	if len(known) > 0 && !bad {
		all.OK("layout", "", "%d of %d shards belong to one store, in this order", len(known), len(shards))
	}
}

// examineClocks compares the servers' clocks with one another.
func examineClocks(all *doctor.List, shards []*examined) {
	timed := storage.Filter(shards, func(s *examined) bool { return s.timed })
	if len(timed) == 0 {
		return
	}
	byClock := func(a, b *examined) int { return cmp.Compare(a.ahead, b.ahead) }
	least, most := slices.MinFunc(timed, byClock), slices.MaxFunc(timed, byClock)
	all.Clock("clocks", most.of, most.ahead-least.ahead, 0, "that of "+least.of)
}
