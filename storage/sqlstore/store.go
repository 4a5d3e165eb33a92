// Package sqlstore is the sharded SQL engine: one set of tables in each of S
// databases, in two dialects, the MySQL family and SQLite.
//
// Every look-up is split by shard, one statement for each shard, all shards at
// once, and answered at the index of its key. A shard that is slow or gone costs
// only its own keys.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"kith/storage"
	"kith/storage/shard"
)

// Config says which databases to open and how to use them.
type Config struct {
	// Location is `sqlite:PATH[;PATH…]` or `mysql:DSN[;DSN…]`, one shard each, in
	// the order of their ordinals.
	Location string

	// StatementTimeout ends a look-up, on the server too. Defaults to 2 s. Writes
	// have ten times as long.
	StatementTimeout time.Duration

	// MaxConns bounds the connections to each shard that serve look-ups. Defaults
	// to 16. Writes have a quarter of that besides, on SQLite one connection.
	MaxConns int

	// RequestTTL is how long a request for friendship stays pending: two that are further
	// apart do not meet. Defaults to [storage.DefaultRequestTTL].
	RequestTTL time.Duration

	// OnStatement, when set, is told of every statement of a look-up or a write.
	// It is called by many goroutines at once.
	OnStatement func(context.Context, Statement)
}

// A Statement is one SQL statement that a store has run.
type Statement struct {
	Lookup string // what it was for, such as "users" or "edges.following"
	Shard  int
	Keys   int // how many keys it asked for, or rows it wrote
	Took   time.Duration
	Err    error

	text string // what was run, for the tests that ask EXPLAIN about it
	args []any
}

func (c Config) withDefaults() Config {
	if c.StatementTimeout <= 0 {
		c.StatementTimeout = 2 * time.Second
	}
	if c.MaxConns <= 0 {
		c.MaxConns = 16
	}
	if c.RequestTTL <= 0 {
		c.RequestTTL = storage.DefaultRequestTTL
	}
	if c.OnStatement == nil {
		c.OnStatement = func(context.Context, Statement) {}
	}
	return c
}

// writeTimeout is how long one statement of a write may take: those of an import
// are large.
func (c Config) writeTimeout() time.Duration { return 10 * c.StatementTimeout }

// Store implements [storage.Store].
type Store struct {
	cfg    Config
	sql    *dialect
	shards []*node
	place  *shard.Map
	uuid   string

	applies together[crowdKey, *oneEdge]
	changes together[crowdKey, *edgeTowards]

	packing packingSizes
	packs   packQueue
	doubted sync.Map // packed lists (packedName) that were not what their counts say when they were read
}

var (
	_ storage.Store        = (*Store)(nil)
	_ storage.AccountStore = (*Store)(nil)
	_ storage.EdgeChanger  = (*Store)(nil)
	_ storage.LogReader    = (*Store)(nil)
	_ storage.Leaser       = (*Store)(nil)
	_ storage.Comparer     = (*Store)(nil)
	_ storage.Repairer     = (*Store)(nil)
	_ storage.Packer       = (*Store)(nil)
	_ storage.PackedReader = (*Store)(nil)
)

// node is one shard's database: its connections for look-ups and those for writes.
// They are apart so that an import cannot starve readers, and because their
// statements have different time limits.
type node struct {
	ordinal int
	name    string // server and database, or file; no credentials
	read    *sql.DB
	write   *sql.DB

	migrations *sql.DB // without the writes' time limit; on SQLite it is write
}

// UUID is the identity that the store was given when it was laid out.
func (s *Store) UUID() string { return s.uuid }

// Shards is the number of shards.
func (s *Store) Shards() int { return len(s.shards) }

// Close ends what runs in the background and releases every connection.
func (s *Store) Close() error {
	s.packs.close()
	var errs []error
	for _, db := range s.shards {
		errs = append(errs, db.close())
	}
	return errors.Join(errs...)
}

func (db *node) close() error {
	return errors.Join(db.read.Close(), db.write.Close(), db.migrations.Close())
}

// Ping implements [storage.Pinger].
func (s *Store) Ping(ctx context.Context) []storage.ShardHealth {
	health := make([]storage.ShardHealth, len(s.shards))
	var wg sync.WaitGroup
	for i, db := range s.shards {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, s.cfg.StatementTimeout)
			defer cancel()
			err := db.read.PingContext(ctx)
			health[i] = storage.ShardHealth{Shard: i, Name: db.name, Err: s.sql.storageError(ctx, err)}
		})
	}
	wg.Wait()
	return health
}

// Served by the primary key.
const sqlAnyUser = `SELECT user_id FROM users LIMIT 1`

// Empty implements [storage.Store].
func (s *Store) Empty(ctx context.Context) (bool, error) {
	for i := range s.shards {
		found := false
		err := s.query(ctx, "empty", i, 1, sqlAnyUser, nil, func(*sql.Rows) error {
			found = true
			return nil
		})
		if err != nil || found {
			return false, err
		}
	}
	return true, nil
}
