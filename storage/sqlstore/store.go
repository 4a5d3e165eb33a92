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
	"sync/atomic"
	"time"

	"kith/storage"
	"kith/storage/contents"
	"kith/storage/doctor"
	"kith/storage/finding"
	"kith/storage/reaction"
	"kith/storage/sides"
	"kith/storage/sqlstore/internal/db"
	"kith/storage/sqlstore/internal/packed"
)

// Config says which databases to open and how to use them.
type Config = db.Config

// A Statement is one SQL statement that a store has run.
type Statement = db.Statement

// Migrated is the version of one shard's tables.
type Migrated = db.Migrated

// Store implements [storage.Store].
type Store struct {
	storage.Answering

	db         *db.DB
	sql        *db.Dialect
	shards     *storage.ShardMap
	requestTTL *atomic.Int64

	report func(context.Context, storage.Change) // nil: nobody asks

	smallWrites db.GroupCommit[*smallWrite]

	rowsOfOwner, blocksAtOnce int // see the constants

	packed *packed.Lists
	toPack packed.Queue // of short lists that are to be packed
}

var (
	_ storage.Store       = (*Store)(nil)
	_ storage.LogReader   = (*Store)(nil)
	_ sides.Comparer      = (*Store)(nil)
	_ sides.Repairer      = (*Store)(nil)
	_ storage.Checkpoints = (*Store)(nil)
	_ contents.Reader     = (*Store)(nil)
)

// Open connects to every shard, brings their tables up to date and checks that
// they are, in this order, the shards of one store. A new store is laid out.
// Two programs may open the same new store at once.
//
// Errors name the shard. [storage.ErrLayout] means that the databases answer but
// do not fit: other shards, another order, or tables newer than this program.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	d, err := db.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &Store{db: d, sql: d.Dialect, shards: d.Map, requestTTL: cfg.RequestTTL, packed: packed.New(d), rowsOfOwner: rowsOfOwner, blocksAtOnce: blocksAtOnce}
	s.smallWrites.AtOnce = min(groupsAtOnce, d.Shard(0).Write.Stats().MaxOpenConnections)
	s.toPack = packed.Queue{
		Work: s.packShorts, Most: shortsWaiting, Size: shortsAtOnce,
		Rest: func() time.Duration { return s.packed.Sizes.Again }, Idle: func() int { return s.packed.Sizes.ShortIdle },
	}
	if !cfg.PackShort {
		s.toPack.Close()
	}
	d.Rescue = s.rescue
	s.answer()
	if s.requestTTL == nil {
		s.requestTTL = new(atomic.Int64)
		s.requestTTL.Store(int64(storage.DefaultRequestTTL))
	}
	return s, nil
}

// Check reports what is wrong with a location, as far as that shows without a connection.
func Check(location string) error { return db.Check(location) }

// UUID is the identity that the store was given when it was laid out.
func (s *Store) UUID() string { return s.db.UUID }

// Made reports whether this program has laid the store out.
func (s *Store) Made() bool { return s.db.Made }

// Shards is the number of shards.
func (s *Store) Shards() int { return len(s.db.All()) }

// Migrations returns the version of every shard's tables.
func (s *Store) Migrations(ctx context.Context) ([]Migrated, error) { return s.db.Migrations(ctx) }

// Ping implements [storage.Store].
func (s *Store) Ping(ctx context.Context) []storage.ShardHealth { return s.db.Ping(ctx) }

// Close ends what runs in the background and releases every connection.
func (s *Store) Close() error {
	s.toPack.Close()
	s.packed.Close()
	return s.db.Close()
}

// Examine looks at every shard of a location, and changes nothing. found gets the value of the checkpoint with each of the
// names, if there is one. The addresses are those of all shards, as those that were added. See `kith doctor`.
func Examine(ctx context.Context, cfg Config, found map[string]func(value []byte)) (all doctor.List, addresses []string) {
	return db.Examine(ctx, db.Config{Location: cfg.Location, StatementTimeout: cfg.StatementTimeout, MaxConns: cfg.MaxConns}, func(shard *sql.DB) {
		for name, found := range found {
			var value []byte
			if err := shard.QueryRowContext(ctx, sqlLoadCheckpoint, name).Scan(&value); err == nil { // else the shards are examined
				found(value)
			}
		}
	})
}

// answer has each kind of look-up read by its function.
func (s *Store) answer() {
	a := &s.Answering
	storage.UserLookups.AnsweredBy(a, s.readUsers)
	storage.HandleLookups.AnsweredBy(a, s.readUserIDs)
	storage.CountLookups.AnsweredBy(a, s.readCounts)
	storage.ProfileLookups.AnsweredBy(a, s.readProfiles)
	storage.UserIDLookups.AnsweredBy(a, storage.OneByOne(s.readUserIDsAfter))
	storage.PasswordLookups.AnsweredBy(a, s.readPasswords)
	storage.StateLookups.AnsweredBy(a, s.readStandings)
	storage.StateChangeLookups.AnsweredBy(a, storage.OneByOne(s.readStateChanges))
	storage.IdentityLookups.AnsweredBy(a, s.readIdentities)
	storage.LinkLookups.AnsweredBy(a, storage.OneByOne(s.readLinks))
	storage.ModerationLookups.AnsweredBy(a, storage.OneByOne(s.readModeration))
	finding.PopularLookups.AnsweredBy(a, storage.OneByOne(s.readPopular))
	storage.SeenLookups.AnsweredBy(a, storage.OneByOne(s.readSeen))
	storage.DueLookups.AnsweredBy(a, storage.OneByOne(s.readDue))
	storage.EdgeLookups.AnsweredBy(a, s.readEdges)
	storage.PageLookups.AnsweredBy(a, s.readPages)
	storage.RowLookups.AnsweredBy(a, s.readAllRows)
	storage.NeighbourLookups.AnsweredBy(a, s.readNeighbours)
	storage.PackedLookups.AnsweredBy(a, s.packed.Neighbours)
	storage.SnapshotLookups.AnsweredBy(a, s.readLists)
	storage.EdgeCountLookups.AnsweredBy(a, s.readCountEdges)
	storage.BlockLookups.AnsweredBy(a, s.readBlocks)
	storage.MarkLookups.AnsweredBy(a, s.readMarks)
	storage.MessageLookups.AnsweredBy(a, s.readMessages)
	storage.SpecialLookups.AnsweredBy(a, s.readSpecials)
	storage.DetailLookups.AnsweredBy(a, s.readDetails)
	storage.KindLookups.AnsweredBy(a, s.readKindCounts)
	storage.ListLookups.AnsweredBy(a, s.readUserLists)
	storage.ImportLookups.AnsweredBy(a, storage.OneByOne(s.readImports))
	storage.RefusedLookups.AnsweredBy(a, storage.OneByOne(s.readRefused))
	storage.DueImportLookups.AnsweredBy(a, storage.OneByOne(s.readDueImports))
	storage.PostLookups.AnsweredBy(a, s.readPosts)
	storage.PostPageLookups.AnsweredBy(a, s.readPostPages)
	storage.LatestPostLookups.AnsweredBy(a, storage.OneByOne(s.readLatestPosts))
	storage.RecentPostLookups.AnsweredBy(a, storage.OneByOne(s.readRecentPosts))
	storage.LastPostLookups.AnsweredBy(a, s.readLastPosts)
	finding.WordLookups.AnsweredBy(a, storage.OneByOne(s.readWords))
	finding.UserWordLookups.AnsweredBy(a, storage.OneByOne(s.readUserWords))
	storage.CommentLookups.AnsweredBy(a, s.readComments)
	storage.CommentPageLookups.AnsweredBy(a, s.readCommentPages)
	storage.FavoritePageLookups.AnsweredBy(a, s.readFavoritePages)
	reaction.Lookups.AnsweredBy(a, s.readReactions)
}
