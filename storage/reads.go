package storage

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// ReadStats are what is done for an operation, for the lifetime of a context: how many statements engines of SQL have run, on
// which shards, how many rows these have returned, and how many keys caches have answered. A read that several requests
// wait for counts for the request that asked first.
type ReadStats struct {
	statements, rows, memory, redis atomic.Int64

	mu     sync.Mutex
	shards []int // of the statements, ascending, each once

	log    *readLog   // nil: only the totals are wanted
	bundle int        // the index in log.Bundles of the bundle that this counts for; -1 if for none
	whole  *ReadStats // the operation's, if this counts for a bundle
}

// ReadLog is what was done for an operation.
type ReadLog struct {
	Statements, Rows int64
	Memory, Redis    int64 // keys that were answered from the gateway's memory, and from Redis
	Shards           []int // of the statements, ascending

	// One by one, if it is logged: in the order in which it began or, for reads, ended.
	Bundles []ReadBundle
	Reads   []Read
	LeftOut int // bundles and reads beyond what is kept
}

// ReadBundle is a bundle that was asked for.
type ReadBundle struct {
	Asked         []Read    // of each kind, the Lookup and how many Keys
	Began, Ended  time.Time // Ended is zero as long as it is being read
	Memory, Redis int       // keys that were answered from the gateway's memory, and from Redis
}

// A Read is a statement that has ended. It has neither the text nor its arguments.
type Read struct {
	Lookup string // what it was for, such as "users" or "edges.following"
	Shard  int
	Keys   int // how many keys it asked for, or rows it wrote
	Rows   int // that it returned, so 0 of a write
	Ended  time.Time
	Took   time.Duration
	Err    error
	Bundle int // the index of its bundle; -1: it belongs to none
}

// How many bundles and statements of an operation are kept at most. An operation of usual size has fewer than ten; a set
// answer can have hundreds.
const (
	maxReadBundles    = 128
	maxReadStatements = 256
)

type readLog struct {
	mu sync.Mutex
	ReadLog
}

type readsKey struct{}

// CountReads has engines count what they do under a context. If they log it, engines and loaders also note it one by one.
func CountReads(ctx context.Context, log bool) (context.Context, *ReadStats) {
	reads := &ReadStats{bundle: -1}
	if log {
		reads.log = new(readLog)
	}
	return context.WithValue(ctx, readsKey{}, reads), reads
}

// ReadsOf returns what a context counts. If [CountReads] was not called, it returns nil, which counts nothing.
func ReadsOf(ctx context.Context) *ReadStats {
	r, _ := ctx.Value(readsKey{}).(*ReadStats)
	return r
}

// Note counts a statement that has just ended.
func (r *ReadStats) Note(s Read) {
	if r == nil {
		return
	}
	whole := r.operation()
	whole.statements.Add(1)
	whole.rows.Add(int64(s.Rows))
	whole.on(s.Shard)
	if r.log == nil {
		return
	}
	s.Ended, s.Bundle = time.Now(), r.bundle
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if len(r.log.Reads) == maxReadStatements {
		r.log.LeftOut++
		return
	}
	r.log.Reads = append(r.log.Reads, s)
}

// on notes a shard.
func (r *ReadStats) on(shard int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, found := slices.BinarySearch(r.shards, shard); !found {
		r.shards = slices.Insert(r.shards, at, shard)
	}
}

// InMemory counts keys that the gateway's memory has answered.
func (r *ReadStats) InMemory(keys int) {
	if r != nil {
		r.operation().memory.Add(int64(keys))
		r.answered(func(b *ReadBundle) { b.Memory += keys })
	}
}

// InRedis counts keys that Redis has answered.
func (r *ReadStats) InRedis(keys int) {
	if r != nil {
		r.operation().redis.Add(int64(keys))
		r.answered(func(b *ReadBundle) { b.Redis += keys })
	}
}

// Begin notes a bundle that is about to be read under ctx, and returns the context to read it under and the function
// to call once it has been read. Unless they are logged, the context is the same.
func (r *ReadStats) Begin(ctx context.Context, b *Bundle) (reading context.Context, of *ReadStats, end func()) {
	if r == nil || r.log == nil {
		return ctx, r, func() {}
	}
	return r.begin(ctx, b) // a function of its own: the variables of its closure are on the heap from its first line
}

func (r *ReadStats) begin(ctx context.Context, b *Bundle) (reading context.Context, of *ReadStats, end func()) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if len(r.log.Bundles) == maxReadBundles {
		r.log.LeftOut++
		return ctx, r, func() {}
	}
	of = &ReadStats{log: r.log, bundle: len(r.log.Bundles), whole: r.operation()}
	r.log.Bundles = append(r.log.Bundles, ReadBundle{Asked: b.asked(), Began: time.Now()})
	return context.WithValue(ctx, readsKey{}, of), of, func() {
		of.answered(func(b *ReadBundle) { b.Ended = time.Now() })
	}
}

// Log is what was done so far. A read that other requests wait for may continue after the operation.
func (r *ReadStats) Log() (log ReadLog) {
	whole := r.operation()
	if r.log != nil {
		r.log.mu.Lock()
		defer r.log.mu.Unlock()
		log = ReadLog{Bundles: slices.Clone(r.log.Bundles), Reads: slices.Clone(r.log.Reads), LeftOut: r.log.LeftOut}
	}
	whole.mu.Lock()
	defer whole.mu.Unlock()
	log.Statements, log.Rows, log.Memory, log.Redis = whole.statements.Load(), whole.rows.Load(), whole.memory.Load(), whole.redis.Load()
	log.Shards = slices.Clone(whole.shards)
	return log
}

// operation is what counts for the whole operation.
func (r *ReadStats) operation() *ReadStats {
	if r.whole != nil {
		return r.whole
	}
	return r
}

func (r *ReadStats) answered(note func(*ReadBundle)) {
	if r.bundle < 0 {
		return
	}
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	note(&r.log.Bundles[r.bundle])
}

// RememberOutages lets engines remember, for the lifetime of the context, which shards did not
// answer in time. One request then waits for a silent shard once, and not again on every level of
// its query.
func RememberOutages(ctx context.Context) context.Context {
	return context.WithValue(ctx, outagesKey{}, new(Outages))
}

type outagesKey struct{}

// Outages are the shards that did not answer.
type Outages struct {
	mu     sync.Mutex
	shards map[int]error
}

// OutagesOf returns what a context remembers. If [RememberOutages] was not called, it returns nil,
// which remembers nothing.
func OutagesOf(ctx context.Context) *Outages {
	o, _ := ctx.Value(outagesKey{}).(*Outages)
	return o
}

type waitKey struct{}

// WithWait returns the context of a request. wait is called when it waits for a server, and goOn when it has got what it waited for:
// goOn returns when it may go on.
func WithWait(ctx context.Context, wait func(context.Context) (goOn func())) context.Context {
	return context.WithValue(ctx, waitKey{}, wait)
}

// Wait says that the request of a context waits for a server, until goOn is called.
func Wait(ctx context.Context) (goOn func()) {
	if wait, ok := ctx.Value(waitKey{}).(func(context.Context) (goOn func())); ok {
		return wait(ctx)
	}
	return func() {}
}

// Note remembers that a shard did not answer in time.
func (o *Outages) Note(shard int, err error) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shards == nil {
		o.shards = map[int]error{}
	}
	o.shards[shard] = err
}

// Add remembers what others remember.
func (o *Outages) Add(others *Outages) {
	if others == nil {
		return
	}
	others.mu.Lock()
	shards := maps.Clone(others.shards)
	others.mu.Unlock()
	for shard, err := range shards {
		o.Note(shard, err)
	}
}

// Of returns why a shard should not be asked, or nil if it may be.
func (o *Outages) Of(shard int) error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shards[shard]
}
