// Package db is the databases of a store of several shards: their connections, in two dialects, the
// tables' migrations, look-ups over all shards at once, and transactions on one of them. It knows
// nothing of what the tables are for.
package db

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"kith/storage"
	"kith/storage/sleep"
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
	// to 16. Writes have a quarter of that in addition, on SQLite one connection.
	MaxConns int

	// RequestTTL is for the store: how long a friend request stays pending: two requests that are further apart do
	// not accept each other. It is a [time.Duration], loaded at each write. Defaults to [storage.DefaultRequestTTL].
	RequestTTL *atomic.Int64

	// OnStatement, when set, is called with every statement of a look-up or a write, and with an error and no text for what a
	// silent server is not asked. It is called by many goroutines at once.
	OnStatement func(context.Context, Statement)

	// RequestID, when set, is the id of the request that a statement runs for, "" for none. The statement then begins with
	// a comment that has the id, and is not prepared. Ids other than 1 to 64 letters, digits, dots, hyphens and underscores
	// are left out.
	RequestID func(context.Context) string

	// MustExist refuses a location where no store has been made. Otherwise one is made there.
	MustExist bool

	// Readmits is for [DB.Readmit]: shards that were added may be given at other addresses than the store has for them.
	Readmits bool

	// PackShort is for the store, too: it packs short lists in the background once they have been read: for programs that read the same lists again.
	PackShort bool
}

// A Statement is one SQL statement that a store has run.
type Statement struct {
	Lookup string // what it was for, such as "users" or "edges.following"
	Shard  int
	Keys   int // how many keys it asked for, or rows it wrote
	Rows   int // that it returned, so 0 of a write
	Took   time.Duration
	Err    error

	Text string // what was run, for the tests that ask EXPLAIN about it
	Args []any
}

func (c Config) withDefaults() Config {
	c.StatementTimeout = cmp.Or(max(c.StatementTimeout, 0), 2*time.Second)
	c.MaxConns = cmp.Or(max(c.MaxConns, 0), 16)
	if c.OnStatement == nil {
		c.OnStatement = func(context.Context, Statement) {}
	}
	return c
}

// writeTimeout is how long one statement of a write may take: those of an import
// are large.
func (c Config) writeTimeout() time.Duration { return 10 * c.StatementTimeout }

// DB is all shards of one store.
type DB struct {
	Dialect *Dialect
	Map     *storage.ShardMap
	UUID    string // the identity that the store was given when it was laid out
	Made    bool   // this program has laid it out

	// Rescue continues a move whose mover has died, or undoes it, for writes that wait for it.
	Rescue func(context.Context)

	cfg    Config
	shards atomic.Pointer[[]*Shard] // in the order of their ordinals; shards are added at the end

	growing sync.Mutex
	grown   chan struct{} // closed when a shard is added; nil if nobody waits

	listing    sync.Mutex // of added shards
	refreshing sync.Mutex
	refreshed  time.Time   // when the map was last read
	mapped     atomic.Bool // there is a map
	remapped   sleep.Waker // of [DB.Watch]: when the map has been made
	learning   sync.Mutex
	known      []known                         // of the shards
	misread    atomic.Pointer[func(here bool)] // see [DB.OnMisread]
	laidOut    int                             // how many shards the store had at first
}

// All is all shards, in the order of their ordinals. It may grow, see [DB.Refresh].
func (d *DB) All() []*Shard { return *d.shards.Load() }

// Shard is one shard.
func (d *DB) Shard(ordinal int) *Shard { return d.All()[ordinal] }

// Shard is one shard's database: its connections for look-ups and those for writes.
// They are separate so that an import cannot starve readers, and because their statements have
// different time limits.
type Shard struct {
	Ordinal int
	Name    string // server and database, or file; no credentials
	Address string // a DSN or a path
	Read    *sql.DB
	Write   *sql.DB

	listed   string      // where the store has it, if it was added, as last read
	replaced atomic.Bool // the store has another database for it, see [errReplaced]
	asked    atomic.Bool // [DB.Watch] asks for its buckets
	silence  silence

	dialect    *Dialect
	migrations *sql.DB // without the writes' time limit; on SQLite it is Write
}

// StatementTimeout is how long a look-up may take.
func (d *DB) StatementTimeout() time.Duration { return d.cfg.StatementTimeout }

// Close releases every connection.
func (d *DB) Close() error {
	d.growing.Lock()
	defer d.growing.Unlock()
	return errors.Join(storage.Each(d.All(), (*Shard).close)...)
}

// inUse returns [errReplaced] if the store has another database for the shard.
func (n *Shard) inUse() error {
	if n.replaced.Load() {
		return errReplaced
	}
	return nil
}

func (n *Shard) close() error {
	n.silence.mu.Lock()
	n.silence.closed = true
	n.silence.mu.Unlock()
	return errors.Join(n.Read.Close(), n.Write.Close(), n.migrations.Close())
}

// Ping asks every shard for an answer. One that is silent is not asked: it has the error that requests get.
func (d *DB) Ping(ctx context.Context) []storage.ShardHealth {
	health := make([]storage.ShardHealth, len(d.All()))
	_ = EveryShard(len(health), func(i int) error {
		ctx, cancel := context.WithTimeout(ctx, d.cfg.StatementTimeout)
		defer cancel()
		err := cmp.Or(d.Shard(i).inUse(), d.Shard(i).isSilent())
		if err == nil {
			err = d.Shard(i).Read.PingContext(ctx)
		}
		health[i] = storage.ShardHealth{Shard: i, Name: d.Shard(i).Name, Err: d.Dialect.StorageError(ctx, err)}
		return nil
	})
	return health
}

// EveryShard runs f for the first n shards at once and joins their errors.
func EveryShard(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
