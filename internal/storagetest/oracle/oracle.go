// Package oracle is the reference engine: the contract of package storage in the plainest code that
// fulfils it, as an oracle for tests.
//
// Like every engine, it asks package judge what a change of edges may do and what follows from it.
// The suite's promises prove those rules; a comparison with this engine does not.
//
// It keeps everything in maps behind one lock. Every read collects and sorts what
// it needs, so it is slow by design: nothing in it is an index that could be wrong. Values are kept
// as they are given, unchecked.
package oracle

import (
	"context"
	"sync"
	"time"

	"kith/storage"
)

// Store keeps a graph in memory. It is safe for concurrent use; each call runs as if it were alone.
//
// If the context of a call has ended before it starts, the call does nothing and answers every key
// with the context's error.
type Store struct {
	storage.Answering

	mu         sync.RWMutex
	users      map[storage.UserID]storage.User
	passwords  map[storage.UserID]string // hashes
	handles    map[string]claim
	identities map[storage.Identity]storage.LinkedIdentity
	counts     map[storage.UserID]storage.Counts
	tables     [len(storage.AllSides)]table    // by storage.Side
	messages   map[storage.Pair]string         // of requests that are pending
	details    map[storage.Pair]storage.Detail // of relations
	kinds      map[storage.OwnerKind]storage.KindCount
	logs       map[int]*relationLog     // by shard
	leases     map[string]map[int]lease // kind → slot
	marks      map[storage.Pair]storage.EdgeMark
	firsts     map[storage.Pair]storage.Micros // when the first of several follows began
	seen       map[storage.Seen]storage.Micros
	imports    map[storage.ImportID][]storage.ImportPart
	lists      map[storage.ListID]storage.UserList
	moderation []storage.ModerationEntry
	active     map[storage.UserID]storage.Day         // the last day of each
	states     map[storage.UserID]storage.StateChange // the last change of each

	checkpoints map[string][]byte

	posts    map[storage.PostID]*post
	comments map[storage.CommentID]comment

	requestTTL time.Duration
	placed     *storage.ShardMap
	left       []*leftBehind
	lives      map[int]int64 // of shards
	together   func(a, b storage.UserID) bool

	change storage.Change // of the call that holds the lock
	report func(context.Context, storage.Change)
}

// OnCommit implements [storage.Store].
func (s *Store) OnCommit(report func(context.Context, storage.Change)) { s.report = report }

// write begins a call that writes; end ends it, and reports what it has changed.
func (s *Store) write(ctx context.Context) (end func()) {
	s.mu.Lock()
	return func() {
		change := s.change
		s.change = storage.Change{}
		s.mu.Unlock()
		if s.report != nil && !change.IsEmpty() {
			s.report(context.WithoutCancel(ctx), change)
		}
	}
}

// An Option changes how [New] makes a store.
type Option func(*Store)

// RequestTTL is how long a friend request stays pending, which decides whether requests accept each
// other. Defaults to [storage.DefaultRequestTTL].
func RequestTTL(ttl time.Duration) Option {
	return func(s *Store) { s.requestTTL = ttl }
}

// Together reports whether two users are in one database, so that the other side of their edges can
// be written in the same call. By default all users are. It is for tests of what is written; [Placed] makes shards that can be asked.
func Together(rule func(a, b storage.UserID) bool) Option {
	return func(s *Store) { s.together = rule }
}

var (
	_ storage.Store     = (*Store)(nil)
	_ storage.LogReader = (*Store)(nil)
)

// A table holds the edges of one side: owner → other end → edge.
type table map[storage.UserID]map[end]storage.Edge

// An end is the end of an edge that is not its owner: the peer and, where there is one, the item.
type end struct {
	peer storage.UserID
	post int64
}

func endOf(side storage.Side, pair storage.Pair) end { return end{side.Peer(pair), pair.Item} }

// New returns an empty store.
func New(options ...Option) *Store {
	s := &Store{
		users:      make(map[storage.UserID]storage.User),
		passwords:  make(map[storage.UserID]string),
		handles:    make(map[string]claim),
		identities: make(map[storage.Identity]storage.LinkedIdentity),
		counts:     make(map[storage.UserID]storage.Counts),
		messages:   make(map[storage.Pair]string),
		details:    make(map[storage.Pair]storage.Detail),
		kinds:      make(map[storage.OwnerKind]storage.KindCount),
		leases:     make(map[string]map[int]lease),
		marks:      make(map[storage.Pair]storage.EdgeMark),
		firsts:     make(map[storage.Pair]storage.Micros),
		seen:       map[storage.Seen]storage.Micros{},
		imports:    map[storage.ImportID][]storage.ImportPart{},
		lists:      map[storage.ListID]storage.UserList{},
		logs:       map[int]*relationLog{},
		lives:      map[int]int64{},
		active:     make(map[storage.UserID]storage.Day),
		states:     make(map[storage.UserID]storage.StateChange),

		checkpoints: make(map[string][]byte),

		posts:    make(map[storage.PostID]*post),
		comments: make(map[storage.CommentID]comment),

		requestTTL: storage.DefaultRequestTTL,
		placed:     storage.NewShardMap(1),
		together:   func(storage.UserID, storage.UserID) bool { return true },
	}
	s.answer()
	for _, side := range storage.AllSides {
		s.tables[side] = make(table)
	}
	for _, option := range options {
		option(s)
	}
	return s
}

// Ping answers for the only shard there is.
func (s *Store) Ping(ctx context.Context) []storage.ShardHealth {
	return []storage.ShardHealth{{Shard: 0, Name: "memory", Err: ctx.Err()}}
}

// Close waits for running calls. There is nothing to release.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil
}
