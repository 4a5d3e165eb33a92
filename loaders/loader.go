package loaders

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
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

// queue is how many keys may stand between Load and the goroutine that collects late
// ones. The library's 1,000 are 8 kB for every batch.
const queue = 64

// A Loader batches and remembers one look-up for the length of a request. No key is
// read twice: what has been asked for is known at once, and answered when it has been
// read. What a shard failed to answer is an answer like any other here.
type Loader[K comparable, V any] struct {
	all  *Loaders
	read lookup[K, V]
	near near[K, V] // nil: it is never at hand

	mu    sync.Mutex
	known places[K, V] // every key that has been asked for
	next  *batch[K, V] // of what has been asked and not been sent; nil: nothing
	late  *dataloader.Loader[K, storage.Result[V]]
}

// lookup is a method of the store that answers keys in their order.
type lookup[K comparable, V any] func(storage.Reader, context.Context, []K) []storage.Result[V]

// place is where the answer to a key is, or will be.
type place[K comparable, V any] struct {
	in *batch[K, V]
	at int
}

func (p place[K, V]) result() storage.Result[V] {
	p.in.done.Wait()
	return p.in.results[p.at]
}

// Load answers one key: at once when it has been fetched, otherwise together with
// the keys that others ask for within a millisecond.
func (l *Loader[K, V]) Load(ctx context.Context, key K) storage.Result[V] {
	if p, ok := l.find(key); ok {
		return p.result()
	}
	late := l.lateOnes()
	thunk := late.Load(ctx, key)
	timer := time.AfterFunc(wait, late.Flush)
	defer timer.Stop()
	r, err := thunk()
	if err != nil {
		return storage.Result[V]{Err: err}
	}
	return r
}

// lateOnes collects keys that come alone. Most requests have none.
func (l *Loader[K, V]) lateOnes() *dataloader.Loader[K, storage.Result[V]] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.late != nil {
		return l.late
	}
	collected := func(_ context.Context, keys []K) []*dataloader.Result[storage.Result[V]] {
		results := l.fetch(keys)
		answers := make([]*dataloader.Result[storage.Result[V]], len(keys))
		for i, r := range results {
			answers[i] = &dataloader.Result[storage.Result[V]]{Data: r}
		}
		return answers
	}
	l.late = dataloader.NewBatchedLoader(collected,
		dataloader.WithCache(&dataloader.NoCache[K, storage.Result[V]]{}), // known remembers
		dataloader.WithWait[K, storage.Result[V]](never),
		dataloader.WithInputCapacity[K, storage.Result[V]](queue),
	)
	return l.late
}

// Get answers one key without company: at once when it has been fetched, otherwise as
// [Loader.Fetch] does.
func (l *Loader[K, V]) Get(ctx context.Context, key K) storage.Result[V] {
	if p, ok := l.find(key); ok {
		return p.result()
	}
	return l.Fetch(ctx, []K{key})[0]
}

// Prime has the loader know an answer that was come by in another way, unless it
// knows one already.
func (l *Loader[K, V]) Prime(key K, value V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.known.find(key); ok {
		return
	}
	l.known.add(&batch[K, V]{results: []storage.Result[V]{{Value: value, Found: true}}}, key)
}

// Fetch answers many keys, in their order, in one batch that leaves at once. What has
// been fetched already is answered without one.
func (l *Loader[K, V]) Fetch(ctx context.Context, keys []K) []storage.Result[V] {
	if !l.all.isMember(ctx) {
		return l.fetch(keys)
	}
	asked := l.Ask(keys)
	if !l.knows(keys) {
		l.all.Dispatch(ctx, asked)
	}
	return asked.Results()
}

// Have makes sure that keys have been asked for, for those who load them one by one.
func (l *Loader[K, V]) Have(ctx context.Context, keys []K) {
	if l.knows(keys) {
		return
	}
	asked := l.Ask(keys)
	l.all.Dispatch(ctx, asked)
	asked.Wait()
}

func (l *Loader[K, V]) fetch(keys []K) []storage.Result[V] {
	own := l.claim(keys)
	if b := l.take(); b != nil && !b.answer() {
		b.run()
	}
	if own != nil && slices.Equal(own.keys, keys) {
		own.done.Wait()
		return slices.Clone(own.results)
	}
	return l.results(keys)
}

// Ask prepares to fetch keys together with what is asked of other loaders.
func (l *Loader[K, V]) Ask(keys []K) *Asked[K, V] {
	return &Asked[K, V]{loader: l, keys: keys}
}

// Asked is keys of one loader on their way: Ask, then [Loaders.Dispatch], then
// Results.
type Asked[K comparable, V any] struct {
	loader *Loader[K, V]
	keys   []K
	own    *batch[K, V] // that holds them all; nil: there is none
}

func (a *Asked[K, V]) claim() { a.own = a.loader.claim(a.keys) }

func (a *Asked[K, V]) take() task {
	if b := a.loader.take(); b != nil {
		return b
	}
	return nil
}

// Results waits for the answers, in the order of the keys.
func (a *Asked[K, V]) Results() []storage.Result[V] { return a.loader.results(a.keys) }

// Wait waits for the answers, for those who load them one by one.
func (a *Asked[K, V]) Wait() {
	if a.own != nil {
		a.own.done.Wait()
		return
	}
	for _, k := range a.keys {
		p, _ := a.loader.find(k)
		p.in.done.Wait()
	}
}

func (l *Loader[K, V]) find(key K) (p place[K, V], ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.find(key)
}

// knows tells whether all keys have been asked for.
func (l *Loader[K, V]) knows(keys []K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		if _, ok := l.known.find(k); !ok {
			return false
		}
	}
	return true
}

// results waits for the answers to keys that have been asked for.
func (l *Loader[K, V]) results(keys []K) []storage.Result[V] {
	results := make([]storage.Result[V], len(keys))
	for i, k := range keys {
		p, _ := l.find(k)
		results[i] = p.result()
	}
	return results
}

// claim puts those of the keys that nobody has asked for into the next batch. It returns
// that batch when it holds all of the keys.
func (l *Loader[K, V]) claim(keys []K) (own *batch[K, V]) {
	if len(keys) == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := true
	for _, k := range keys {
		if p, ok := l.known.find(k); ok {
			all = all && p.in == l.next
			continue
		}
		if l.next == nil {
			l.next = &batch[K, V]{loader: l, keys: make([]K, 0, len(keys))}
			l.next.done.Add(1)
			l.known.room(l.known.count + len(keys))
		}
		l.known.add(l.next, k)
	}
	if !all {
		return nil
	}
	return l.next
}

// take takes the next batch, to run it; nil if there is none, or somebody else has
// taken it.
func (l *Loader[K, V]) take() *batch[K, V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.next
	l.next = nil
	return b
}

// batch is keys that are read together.
type batch[K comparable, V any] struct {
	loader  *Loader[K, V]
	keys    []K
	results []storage.Result[V] // of the keys, when it is done
	done    sync.WaitGroup
}

// answer answers the keys from memory, where the store has all of them at hand. One that
// panics has not: reading them tells why.
func (b *batch[K, V]) answer() (done bool) {
	l := b.loader
	if l.near == nil || l.all.atHand == nil {
		return false
	}
	defer func() {
		if reason := recover(); reason != nil {
			done = false
		}
	}()
	results, ok := l.near(l.all.atHand, b.keys)
	if !ok {
		return false
	}
	b.results = results
	b.done.Done()
	return true
}

// run reads the keys, under the context of the request: others than who asked first may
// wait for them. A look-up that panics has failed.
func (b *batch[K, V]) run() {
	defer b.done.Done()
	defer func() {
		if reason := recover(); reason != nil {
			err := fmt.Errorf("a look-up panicked: %v\n%s", reason, debug.Stack())
			b.results = failures[V](len(b.keys), err)
		}
	}()
	b.results = b.loader.read(b.loader.all.store, b.loader.all.ctx, b.keys)
}

// fail answers all keys with an error.
func (b *batch[K, V]) fail(err error) {
	b.results = failures[V](len(b.keys), err)
	b.done.Done()
}
