package loaders

import (
	"context"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"kith/storage"
)

const (
	// wait is how long a lone Load waits for company. It is only the fallback: a
	// resolver that knows the keys of the level below fetches them all at once.
	wait = time.Millisecond

	// capacity bounds one batch; the store splits it into statements by shard.
	capacity = 10_000

	// queue is how many keys may stand between Load and the goroutine that collects
	// a batch. The library's 1,000 are 8 kB for every batch.
	queue = 64
)

// A Loader batches and remembers one look-up for the length of a request.
type Loader[K comparable, V any] struct {
	batched *dataloader.Loader[K, storage.Result[V]]
}

// newLoader makes a loader whose batches run under the request's context. (The
// library would hand over that of whoever asked first.) What a shard failed to
// answer is an answer like any other here: within one request it is not asked
// again.
func newLoader[K comparable, V any](ctx context.Context, read func(context.Context, []K) []storage.Result[V]) *Loader[K, V] {
	batch := func(_ context.Context, keys []K) []*dataloader.Result[storage.Result[V]] {
		answers := make([]*dataloader.Result[storage.Result[V]], len(keys))
		store := make([]dataloader.Result[storage.Result[V]], len(keys))
		for i, r := range read(ctx, keys) {
			store[i].Data = r
			answers[i] = &store[i]
		}
		return answers
	}
	return &Loader[K, V]{dataloader.NewBatchedLoader(batch,
		dataloader.WithWait[K, storage.Result[V]](wait),
		dataloader.WithBatchCapacity[K, storage.Result[V]](capacity),
		dataloader.WithInputCapacity[K, storage.Result[V]](queue),
	)}
}

// Load answers one key: at once when it has been fetched, otherwise together with
// the keys that others ask for within a millisecond.
func (l *Loader[K, V]) Load(ctx context.Context, key K) storage.Result[V] {
	r, err := l.batched.Load(ctx, key)()
	if err != nil { // the batch function panicked
		return storage.Result[V]{Err: err}
	}
	return r
}

// Fetch answers many keys, in their order, in one batch that leaves at once.
func (l *Loader[K, V]) Fetch(ctx context.Context, keys []K) []storage.Result[V] {
	results := make([]storage.Result[V], len(keys))
	thunks := make([]dataloader.Thunk[storage.Result[V]], len(keys))
	for i, k := range keys {
		thunks[i] = l.batched.Load(ctx, k)
	}
	l.batched.Flush()
	for i, thunk := range thunks {
		r, err := thunk()
		if err != nil {
			r.Err = err
		}
		results[i] = r
	}
	return results
}
