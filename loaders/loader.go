package loaders

import (
	"context"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"kith/storage"
)

// wait is how long a lone Load waits for company. It is only the fallback: a
// resolver that knows the keys of the level below fetches them all at once.
var wait = time.Millisecond

// never is the wait of the library's own timer. It would run while many keys are
// handed over one by one, and cut them in two.
const never = time.Hour

const (
	// capacity bounds one batch; the store splits it into statements by shard.
	capacity = 10_000

	// queue is how many keys may stand between Load and the goroutine that collects
	// a batch. The library's 1,000 are 8 kB for every batch.
	queue = 64
)

// A Loader batches and remembers one look-up for the length of a request.
type Loader[K comparable, V any] struct {
	all     *Loaders
	batched *dataloader.Loader[K, storage.Result[V]]
	known   *dataloader.InMemoryCache[K, storage.Result[V]] // what has been asked for
}

// newLoader makes a loader whose batches run under the request's context. (The
// library would hand over that of whoever asked first.) What a shard failed to
// answer is an answer like any other here: within one request it is not asked
// again.
func newLoader[K comparable, V any](ctx context.Context, all *Loaders, read func(context.Context, []K) []storage.Result[V]) *Loader[K, V] {
	batch := func(_ context.Context, keys []K) []*dataloader.Result[storage.Result[V]] {
		answers := make([]*dataloader.Result[storage.Result[V]], len(keys))
		store := make([]dataloader.Result[storage.Result[V]], len(keys))
		for i, r := range read(ctx, keys) {
			store[i].Data = r
			answers[i] = &store[i]
		}
		return answers
	}
	known := dataloader.NewCache[K, storage.Result[V]]()
	l := &Loader[K, V]{all: all, known: known, batched: dataloader.NewBatchedLoader(batch,
		dataloader.WithCache[K, storage.Result[V]](known),
		dataloader.WithWait[K, storage.Result[V]](never),
		dataloader.WithBatchCapacity[K, storage.Result[V]](capacity),
		dataloader.WithInputCapacity[K, storage.Result[V]](queue),
	)}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.flushes = append(all.flushes, l.batched.Flush)
	return l
}

// Load answers one key: at once when it has been fetched, otherwise together with
// the keys that others ask for within a millisecond.
func (l *Loader[K, V]) Load(ctx context.Context, key K) storage.Result[V] {
	if thunk, ok := l.known.Get(ctx, key); ok {
		return resultOf(thunk)
	}
	thunk := l.batched.Load(ctx, key)
	timer := time.AfterFunc(wait, l.batched.Flush)
	defer timer.Stop()
	return resultOf(thunk)
}

// Prime has the loader know an answer that was come by in another way, unless it
// knows one already.
func (l *Loader[K, V]) Prime(ctx context.Context, key K, value V) {
	l.batched.Prime(ctx, key, storage.Result[V]{Value: value, Found: true})
}

// Fetch answers many keys, in their order, in one batch that leaves at once. What has
// been fetched already is answered without one.
func (l *Loader[K, V]) Fetch(ctx context.Context, keys []K) []storage.Result[V] {
	asked := l.Ask(ctx, keys)
	if !asked.known() {
		l.all.Dispatch(ctx, asked)
	}
	return asked.Results()
}

// Ask prepares to fetch keys together with what is asked of other loaders.
func (l *Loader[K, V]) Ask(ctx context.Context, keys []K) *Asked[K, V] {
	return &Asked[K, V]{loader: l, ctx: ctx, keys: keys}
}

// Asked is keys of one loader on their way: Ask, then [Loaders.Dispatch], then
// Results.
type Asked[K comparable, V any] struct {
	loader *Loader[K, V]
	ctx    context.Context
	keys   []K
	thunks []dataloader.Thunk[storage.Result[V]]
}

// known finds the answers to keys that have been asked before; it tells whether there
// are answers to all of them.
func (a *Asked[K, V]) known() bool {
	thunks := make([]dataloader.Thunk[storage.Result[V]], len(a.keys))
	for i, k := range a.keys {
		thunk, ok := a.loader.known.Get(a.ctx, k)
		if !ok {
			return false
		}
		thunks[i] = thunk
	}
	a.thunks = thunks
	return true
}

func (a *Asked[K, V]) enqueue() {
	a.thunks = make([]dataloader.Thunk[storage.Result[V]], len(a.keys))
	for i, k := range a.keys {
		a.thunks[i] = a.loader.batched.Load(a.ctx, k)
	}
}

// Results waits for the answers, in the order of the keys.
func (a *Asked[K, V]) Results() []storage.Result[V] {
	results := make([]storage.Result[V], len(a.thunks))
	for i, thunk := range a.thunks {
		results[i] = resultOf(thunk)
	}
	return results
}

func resultOf[V any](thunk dataloader.Thunk[storage.Result[V]]) storage.Result[V] {
	r, err := thunk()
	if err != nil { // the look-up panicked
		return storage.Result[V]{Err: err}
	}
	return r
}
