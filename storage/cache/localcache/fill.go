package localcache

import (
	"context"
	"maps"
	"runtime"
	"sync"

	"kith/storage"
)

// fills are the reads of the store that are under way: a caller that asks for the same key waits
// for the read instead of reading again.
type fills[Q comparable, V any] struct {
	mu       sync.Mutex
	open     map[key]*fill[V]
	gathered []missed[Q, V] // what the next read will read
}

// fill is one of these reads, of one key.
type fill[V any] struct {
	done    chan struct{} // closed when there is a result
	result  storage.Result[V]
	outages *storage.Outages // that the read has found

	missed bool // something changed since the read began: it is not kept

	// Rows that came since the read began, for the list that is being read: those who join then get them, whether it is kept or not.
	late []storage.Edge
}

// begin joins the read of a key, or begins one, which the caller must then end.
func (f *fills[Q, V]) begin(k key) (one *fill[V], mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one, ok := f.open[k]; ok {
		return one, false
	}
	one = &fill[V]{done: make(chan struct{})}
	if f.open == nil {
		f.open = make(map[key]*fill[V])
	}
	f.open[k] = one
	return one, true
}

// leave makes a read closed to new callers.
func (f *fills[Q, V]) leave(k key, one *fill[V]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[k] == one {
		delete(f.open, k)
	}
}

// change passes a change to the read of a key that is under way, if there is one. The caller holds
// the stripe of the key.
func (f *fills[Q, V]) change(k key, apply func(*fill[V])) {
	f.mu.Lock()
	one := f.open[k]
	f.mu.Unlock()
	if one != nil {
		apply(one)
	}
}

// abandon closes the read of a key to new callers, because it may have missed a change; those who
// wait already get its result. The caller holds the stripe of the key.
func (f *fills[Q, V]) abandon(k key) {
	f.change(k, func(one *fill[V]) {
		one.missed = true
		f.leave(k, one)
	})
}

// leaveAll closes all reads of a user's rows to new callers. Their results may be kept all the same.
func (f *fills[Q, V]) leaveAll(of storage.UserID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.open, func(k key, _ *fill[V]) bool { return k.id == of })
}

// abandonAll abandons all reads. The caller holds all stripes.
func (f *fills[Q, V]) abandonAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.open {
		one.missed = true
	}
	f.open = nil
}

// end publishes the result of a read. keep, if it is not nil, puts it into the cache if it may, which it may not if the read
// has missed something; the stripe is held meanwhile, so that no change comes in between.
func (f *fills[Q, V]) end(c *Cache, k key, one *fill[V], r storage.Result[V], keep keeper[V]) {
	lock := c.stripe(k)
	lock.Lock()
	if r.Err == nil && keep != nil {
		r = keep(k, r, one.late, !one.missed && c.IsOn() && c.hears(k.id))
	}
	one.result = r
	f.leave(k, one)
	lock.Unlock()
	close(one.done)
}

// keeper puts the result of a read into the cache, if it may, and returns it with the rows that came since the read began.
type keeper[V any] func(k key, r storage.Result[V], late []storage.Edge, may bool) storage.Result[V]

// wait returns the result of a read, or an error once the context ends.
func (one *fill[V]) wait(ctx context.Context) storage.Result[V] {
	goOn := storage.Wait(ctx)
	select {
	case <-one.done:
	case <-ctx.Done():
	}
	goOn()
	if ctx.Err() != nil {
		return storage.Result[V]{Err: context.Cause(ctx)}
	}
	if one.result.Err != nil {
		storage.OutagesOf(ctx).Add(one.outages)
	}
	return one.result
}

// source is where the keys of one kind are read from.
type source[Q comparable, V any] struct {
	*fills[Q, V]
	c    *Cache
	kind kind
	// key names the entry of an id.
	key func(Q) key
	// known reads what the cache has.
	known func(key, *storage.Result[V]) bool
	// read reads ids from the store.
	read func(context.Context, []Q) []storage.Result[V]
	keep keeper[V]
	// warming means that no request has asked for the keys.
	warming bool
}

// saying is where keys are read from whose answers are kept in a form. lives says how long; the zero lifetime: not at all.
func saying[Q comparable, V any](
	c *Cache, kind kind, keyOf func(Q) key, form form[V], lives func(key, storage.Result[V]) lifetime, read func(context.Context, []Q) []storage.Result[V],
) source[Q, V] {
	return source[Q, V]{
		fills: new(fills[Q, V]), c: c, kind: kind, key: keyOf, read: read,
		known: func(k key, r *storage.Result[V]) bool {
			s, ok := get[*said](c, k)
			if ok {
				form.result(k, s, r)
			}
			return ok
		},
		keep: func(k key, r storage.Result[V], _ []storage.Edge, may bool) storage.Result[V] {
			if may {
				if life := lives(k, r); life != (lifetime{}) {
					c.set(k, form.said(r, life))
				}
			}
			return r
		},
	}
}

// readFrom reads a kind of look-up from a store.
func readFrom[Q, V any](store storage.Bundler, kind *storage.LookupKind[Q, V]) func(context.Context, []Q) []storage.Result[V] {
	return func(ctx context.Context, ids []Q) []storage.Result[V] { return kind.Read(ctx, store, ids...) }
}

// inMemory answers one key, if the cache has the answer.
func (from *source[Q, V]) inMemory(id Q, r *storage.Result[V]) bool {
	return from.known(from.key(id), r)
}

// fetch answers what is known at once, and the rest by reads of those keys that are not being read
// yet.
func (from *source[Q, V]) fetch(ctx context.Context, ids []Q) []storage.Result[V] {
	c := from.c
	results := make([]storage.Result[V], len(ids))
	outages := storage.OutagesOf(ctx)
	var alone []int // indexes
	var waiting []awaited[V]
	var missing []missed[Q, V]
	for i, id := range ids {
		k := from.key(id)
		if from.known(k, &results[i]) {
			continue
		}
		if outages.Of(c.shardOf(k.id)) != nil || !c.hears(k.id) {
			alone = append(alone, i)
			continue
		}
		one, mine := from.begin(k)
		if mine {
			if from.known(k, &results[i]) { // another's read has ended in between
				from.end(c, k, one, results[i], nil)
				continue
			}
			missing = append(missing, missed[Q, V]{id, k, one})
		}
		waiting = append(waiting, awaited[V]{i, one})
	}
	hits := len(ids) - len(waiting) - len(alone)
	if !from.warming {
		c.asked(from.kind, hits, len(missing)+len(alone))
	}
	storage.ReadsOf(ctx).InMemory(hits)
	if len(missing) > 0 {
		from.readTogether(ctx, missing)
	}
	if len(alone) > 0 { // from a shard that the request has found silent: it does not wait for it again, and others are not refused because of that; or from one that is not heard
		for j, r := range from.read(ctx, storage.Chosen(ids, alone)) {
			results[alone[j]] = r
		}
	}
	for _, w := range waiting {
		results[w.index] = w.fill.wait(ctx)
	}
	return results
}

// awaited is a key of a request that is being read.
type awaited[V any] struct {
	index int
	fill  *fill[V]
}

// missed is a key to be read.
type missed[Q comparable, V any] struct {
	id   Q
	key  key
	fill *fill[V]
}

// readTogether reads missing keys in its own goroutine, because callers may not wait to the end. Keys that
// other callers miss before it begins are read together with them.
func (from *source[Q, V]) readTogether(ctx context.Context, missing []missed[Q, V]) {
	from.mu.Lock()
	first := len(from.gathered) == 0
	from.gathered = append(from.gathered, missing...)
	from.mu.Unlock()
	if !first {
		return
	}
	from.c.background.start(func() {
		runtime.Gosched() // lets others that ask at the same time join
		from.mu.Lock()
		all := from.gathered
		from.gathered = nil
		from.mu.Unlock()
		from.readAll(ctx, all)
	})
}

func (from *source[Q, V]) readAll(ctx context.Context, all []missed[Q, V]) {
	c := from.c
	reading, cancel := c.background.onBehalfOf(ctx, fillTime)
	defer cancel()
	answered := 0
	defer func() { // also if the store panics: no caller may wait forever
		for _, m := range all[answered:] {
			from.end(c, m.key, m.fill, storage.Result[V]{Err: errFill}, nil)
		}
	}()
	ids := make([]Q, len(all))
	for i, m := range all {
		ids[i], m.fill.outages = m.id, storage.OutagesOf(reading)
	}
	for i, r := range from.read(reading, ids) {
		from.end(c, all[i].key, all[i].fill, r, from.keep)
		answered++
	}
}
