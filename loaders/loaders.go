// Package loaders batches what the resolvers of one request read from the store, and remembers it
// during the request. Keys that are known together are read together, at once, as
// one [storage.Bundle], and so is each step of answers of many steps (send.go). Relations are
// read by graph-gophers/dataloader (following.go).
package loaders

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"kith/storage"
)

// Loaders are the loaders of one request, and other values that it keeps.
type Loaders struct {
	// Users reads users by id.
	Users Loader[storage.UserID, storage.User]
	// Handles resolves folded handles.
	Handles Loader[string, storage.UserID]
	// Counts reads the counts of users.
	Counts Loader[storage.UserID, storage.Counts]

	// Once guards work that is done once in a request, whichever field comes first.
	Once sync.Once

	ctx   context.Context    // of the request
	reads *storage.ReadStats // of the request; nil: they are not counted
	store storage.Bundler
	made  atomic.Pointer[Relations] // of the request; nil: memory has answered everything

	mu     sync.Mutex
	beside []task // batches that the next one of the relations takes along
	kept   []any  // all loaders, once they are needed, and values of packages: a few
	room   [8]any // for them
}

// init makes the loaders of one request. ctx is the request's context.
func (l *Loaders) init(ctx context.Context, store storage.Bundler) {
	l.ctx, l.store, l.reads = ctx, store, storage.ReadsOf(ctx)
	l.Users.all, l.Users.kind = l, storage.UserLookups
	l.Handles.all, l.Handles.kind = l, storage.HandleLookups
	l.Counts.all, l.Counts.kind = l, storage.CountLookups
	l.kept = append(l.room[:0], &l.Counts, &l.Users, &l.Handles)
}

// Of is the loader of a kind, made when it is first needed.
func Of[K comparable, V any](l *Loaders, kind *storage.LookupKind[K, V]) *Loader[K, V] {
	return once(l, func(made *Loader[K, V]) bool { return made.kind == kind },
		func() *Loader[K, V] { return &Loader[K, V]{all: l, kind: kind} })
}

// Kept is a package's own value for the duration of a request. It is found by its type: there is
// one value of a type, zero at first.
func Kept[T any](l *Loaders) *T {
	return once(l, func(*T) bool { return true }, func() *T { return new(T) })
}

// once is the first kept value that fits, or a new one.
func once[T any](l *Loaders, fits func(*T) bool, make func() *T) *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.kept {
		if value, ok := one.(*T); ok && fits(value) {
			return value
		}
	}
	value := make()
	l.kept = append(l.kept, value)
	return value
}

type contextKey struct{}

// Attach gives a request its loaders. The request waits for a silent shard only once.
func Attach(ctx context.Context, store storage.Bundler) context.Context {
	ctx = storage.RememberOutages(ctx)
	a := &attached{Context: ctx}
	a.loaders.init(ctx, store)
	return a
}

// attached is a context with its loaders: one allocation, because every request has one.
type attached struct {
	context.Context
	loaders Loaders
}

func (a *attached) Value(key any) any {
	if key == (contextKey{}) {
		return &a.loaders
	}
	return a.Context.Value(key)
}

// Continue is the context of another request, one at a time, with these loaders: it finds what they keep, and they
// read under its context.
func (l *Loaders) Continue(ctx context.Context) context.Context {
	l.ctx, l.reads = ctx, storage.ReadsOf(ctx)
	return context.WithValue(ctx, contextKey{}, l)
}

// For returns the loaders of the request. A context without loaders is a mistake in the program's
// wiring.
func For(ctx context.Context) *Loaders {
	return ctx.Value(contextKey{}).(*Loaders)
}

// A Loader batches and remembers one look-up during a request. No key is
// read twice: a key that has been requested is known at once, and answered when it has been
// read. The error of a shard is an answer like any other here.
type Loader[K comparable, V any] struct {
	all  *Loaders
	kind *storage.LookupKind[K, V]

	mu    sync.Mutex
	known SmallMap[K, location[K, V]] // every key that has been asked for
	next  *batch[K, V]                // keys requested and not yet sent; nil: none
}

// location is where the answer to a key is, or will be.
type location[K comparable, V any] struct {
	in *batch[K, V]
	at int
}

func (p location[K, V]) result() storage.Result[V] {
	p.in.done.Wait()
	return p.in.Results[p.at]
}

// Load answers one key: at once when it has been fetched. If it is about relations, others may ask for more within a
// millisecond.
func (l *Loader[K, V]) Load(key K) storage.Result[V] { return l.single(key, false) }

// Get answers one key, without waiting for others.
func (l *Loader[K, V]) Get(key K) storage.Result[V] { return l.single(key, true) }

func (l *Loader[K, V]) single(key K, all bool) storage.Result[V] {
	if p, ok := l.find(key); ok {
		return p.result()
	}
	asked := l.Ask([]K{key})
	l.all.send([]Question{asked}, all)
	return asked.Results()[0]
}

// Prime gives the loader an answer that was found in another way, unless it knows one already.
func (l *Loader[K, V]) Prime(key K, value V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.find(key) >= 0 {
		return
	}
	primed := &batch[K, V]{}
	primed.Results = []storage.Result[V]{{Value: value, Found: true}}
	l.known.insert(key, location[K, V]{primed, 0})
}

// Fetch answers many keys, in their order, in one batch that is sent at once. Keys that
// were fetched before need none.
func (l *Loader[K, V]) Fetch(keys []K) []storage.Result[V] { return fetch(l.all.Reader(), l, keys) }

// Ask prepares to fetch keys together with those of other loaders.
func (l *Loader[K, V]) Ask(keys []K) *Asked[K, V] {
	return &Asked[K, V]{loader: l, keys: keys}
}

// Asked is keys of one loader that are being read: Ask, then [Loaders.Dispatch], then Results.
type Asked[K comparable, V any] struct {
	loader *Loader[K, V]
	keys   []K
}

// claim puts those keys into the loader's next batch that have not been asked for.
func (a *Asked[K, V]) claim() {
	l := a.loader
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range a.keys {
		if l.known.find(k) >= 0 {
			continue
		}
		if l.next == nil {
			l.next = &batch[K, V]{loader: l}
			l.next.Keys = make([]K, 0, len(a.keys))
			l.next.done.Add(1)
			l.known.room(len(a.keys))
		}
		l.known.insert(k, location[K, V]{l.next, len(l.next.Keys)})
		l.next.Keys = append(l.next.Keys, k)
	}
}

// take takes the loader's next batch, to have it read; nil if there is none, or another caller has taken it.
func (a *Asked[K, V]) take() task {
	l := a.loader
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.next
	if l.next = nil; b == nil {
		return nil
	}
	return b
}

// Results waits for the answers, in the order of the keys.
func (a *Asked[K, V]) Results() []storage.Result[V] {
	results := make([]storage.Result[V], len(a.keys))
	for i, k := range a.keys {
		p, _ := a.loader.find(k)
		results[i] = p.result()
	}
	return results
}

func (l *Loader[K, V]) find(key K) (p location[K, V], ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.Get(key)
}

// knows reports whether all keys have been requested.
func (l *Loader[K, V]) knows(keys []K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range keys {
		if l.known.find(k) < 0 {
			return false
		}
	}
	return true
}

// batch is keys that are read together.
type batch[K comparable, V any] struct {
	storage.Lookup[K, V]
	loader *Loader[K, V]
	done   sync.WaitGroup
	whole  *ownedKeys[K, V] // all of it, once it has joined a bundle
}

func (b *batch[K, V]) into(all *storage.Bundle) { b.loader.kind.Put(all, &b.Lookup) }

func (b *batch[K, V]) isOfRelations() bool { return b.loader.kind.Owner != nil }

func (b *batch[K, V]) join(all *storage.Bundle) {
	b.whole = &ownedKeys[K, V]{of: b, to: len(b.Keys)}
	b.whole.join(all)
}

func (b *batch[K, V]) settle(err error) {
	b.Results = b.whole.results(err)
	b.end(nil)
}

func (b *batch[K, V]) wait() { b.done.Wait() }

func (b *batch[K, V]) recalled(reads *storage.ReadStats) bool {
	if b.Results == nil {
		return false
	}
	reads.InMemory(len(b.Keys))
	b.end(nil)
	return true
}

// end lets the waiting callers continue. The error is for a batch that is not answered.
func (b *batch[K, V]) end(err error) {
	if b.Results == nil {
		b.Fail(err)
	}
	b.done.Done()
}

// A SmallMap is a map of few keys, in the order in which they came: most requests ask for one, or for fifty. A Go map of a single page of a list takes as much as one of eight, 1.4 kB. A SmallMap takes no more than its keys and
// values while these are few.
type SmallMap[K comparable, V any] struct {
	keys   []K
	values []V
	places map[K]int32 // of the keys, from 0 on; nil: there are few
}

// few is the number of keys up to which they are searched one by one.
const few = 8

// Keys are all keys. The caller does not change them.
func (m *SmallMap[K, V]) Keys() []K { return m.keys }

// Get returns the value of a key.
func (m *SmallMap[K, V]) Get(key K) (value V, ok bool) {
	if at := m.find(key); at >= 0 {
		return m.values[at], true
	}
	return value, false
}

// Put sets the value of a key.
func (m *SmallMap[K, V]) Put(key K, value V) {
	if at := m.find(key); at >= 0 {
		m.values[at] = value
		return
	}
	m.insert(key, value)
}

// Add puts a value unless the key exists already; then it returns false.
func (m *SmallMap[K, V]) Add(key K, value V) bool {
	if m.find(key) >= 0 {
		return false
	}
	m.insert(key, value)
	return true
}

// find is the place of a key; negative if the map does not have it.
func (m *SmallMap[K, V]) find(key K) int {
	if m.places == nil {
		return slices.Index(m.keys, key)
	}
	if at, ok := m.places[key]; ok {
		return int(at)
	}
	return -1
}

// insert adds a key that the map does not have.
func (m *SmallMap[K, V]) insert(key K, value V) {
	m.room(1)
	if m.places != nil {
		m.places[key] = int32(len(m.keys))
	}
	m.keys, m.values = append(m.keys, key), append(m.values, value)
}

// room makes room for more keys.
func (m *SmallMap[K, V]) room(more int) {
	m.keys, m.values = slices.Grow(m.keys, more), slices.Grow(m.values, more)
	if n := len(m.keys) + more; n > few && m.places == nil {
		m.places = make(map[K]int32, n)
		for at, key := range m.keys {
			m.places[key] = int32(at)
		}
	}
}
