package storage

import (
	"context"
	"maps"
	"sync"
)

// RememberOutages lets engines remember, for the lifetime of the context, which shards did not
// answer in time. One request then waits for a silent shard once, and not again on every level of
// its query.
func RememberOutages(ctx context.Context) context.Context {
	return &remembering{Context: ctx}
}

// remembering is a context together with its outages: one allocation, since every request makes
// one.
type remembering struct {
	context.Context
	outages Outages
}

func (r *remembering) Value(key any) any {
	if key == (outagesKey{}) {
		return &r.outages
	}
	return r.Context.Value(key)
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
