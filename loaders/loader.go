package loaders

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"kith/storage"
)

// wait is how long a lone Load waits for company. It is only the fallback: a
// resolver that knows the keys of the level below fetches them all at once.
var wait = time.Millisecond

const (
	// capacity bounds one batch; the store splits it into statements by shard.
	capacity = 10_000

	// queue is how many keys may stand between Load and the goroutine that collects
	// a batch. The library's 1,000 are 8 kB for every batch.
	queue = 64
)

// A Loader batches and remembers one look-up for the length of a request.
type Loader[K comparable, V any] struct {
	batched *dataloader.Loader[K, storage.Result[V]]
	known   *cache[K, V]
	read    func([]K) []storage.Result[V]
}

// newLoader makes a loader whose batches run under the request's context. (The
// library would hand over that of whoever asked first.) What a shard failed to
// answer is an answer like any other here: within one request it is not asked
// again.
func newLoader[K comparable, V any](ctx context.Context, read func(context.Context, []K) []storage.Result[V]) *Loader[K, V] {
	l := &Loader[K, V]{
		known: &cache[K, V]{thunks: make(map[K]thunk[V])},
		read:  func(keys []K) []storage.Result[V] { return read(ctx, keys) },
	}
	batch := func(_ context.Context, keys []K) []*dataloader.Result[storage.Result[V]] {
		answers := make([]*dataloader.Result[storage.Result[V]], len(keys))
		store := make([]dataloader.Result[storage.Result[V]], len(keys))
		for i, r := range l.read(keys) {
			store[i].Data = r
			answers[i] = &store[i]
		}
		return answers
	}
	l.batched = dataloader.NewBatchedLoader(batch,
		dataloader.WithCache[K, storage.Result[V]](l.known),
		dataloader.WithWait[K, storage.Result[V]](wait),
		dataloader.WithBatchCapacity[K, storage.Result[V]](capacity),
		dataloader.WithInputCapacity[K, storage.Result[V]](queue),
	)
	return l
}

// Load answers one key: at once when it has been fetched, otherwise together with
// the keys that others ask for within a millisecond.
func (l *Loader[K, V]) Load(ctx context.Context, key K) storage.Result[V] {
	return await(l.batched.Load(ctx, key))
}

// Fetch answers many keys, in their order: those that nobody has asked for yet in
// one batch that leaves at once. That batch does not go through the library, whose
// timer runs while keys are handed over one by one: it cut 300 keys in two.
func (l *Loader[K, V]) Fetch(keys []K) []storage.Result[V] {
	thunks, missing, answer := l.known.claim(keys)
	if len(missing) > 0 {
		answer(l.readAll(missing))
	}
	l.batched.Flush() // the others may wait there
	results := make([]storage.Result[V], len(keys))
	for i, t := range thunks {
		results[i] = await(t)
	}
	return results
}

// readAll reads keys. As in the library, a panic is an error of each of them.
func (l *Loader[K, V]) readAll(keys []K) (results []storage.Result[V]) {
	defer func() {
		if reason := recover(); reason != nil {
			results = make([]storage.Result[V], len(keys))
			for i := range results {
				results[i].Err = fmt.Errorf("panic while reading: %v", reason)
			}
		}
	}()
	return l.read(keys)
}

func await[V any](t thunk[V]) storage.Result[V] {
	r, err := t()
	if err != nil { // the batch function panicked
		return storage.Result[V]{Err: err}
	}
	return r
}

type thunk[V any] = dataloader.Thunk[storage.Result[V]]

// cache holds what has been asked for, by key. The library uses it, too.
type cache[K comparable, V any] struct {
	mu     sync.Mutex
	thunks map[K]thunk[V]
}

// claim returns the thunks of keys. Of keys that are new it makes them, and returns
// these keys, each once; answer must then be called with their results.
func (c *cache[K, V]) claim(keys []K) (thunks []thunk[V], missing []K, answer func([]storage.Result[V])) {
	var results []storage.Result[V]
	done := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	thunks = make([]thunk[V], len(keys))
	for i, k := range keys {
		t, ok := c.thunks[k]
		if !ok {
			at := len(missing)
			t = func() (storage.Result[V], error) {
				<-done
				return results[at], nil
			}
			c.thunks[k] = t
			missing = append(missing, k)
		}
		thunks[i] = t
	}
	return thunks, missing, func(r []storage.Result[V]) {
		results = r
		close(done)
	}
}

// Get implements [dataloader.Cache].
func (c *cache[K, V]) Get(_ context.Context, key K) (thunk[V], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.thunks[key]
	return t, ok
}

// Set implements [dataloader.Cache].
func (c *cache[K, V]) Set(_ context.Context, key K, t thunk[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.thunks[key] = t
}

// Delete implements [dataloader.Cache].
func (c *cache[K, V]) Delete(_ context.Context, key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.thunks[key]
	delete(c.thunks, key)
	return ok
}

// Clear implements [dataloader.Cache].
func (c *cache[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.thunks)
}
