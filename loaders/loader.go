package loaders

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"

	"kith/storage"
)

// A Loader batches and remembers one look-up during a request. No key is
// read twice: a key that has been requested is known at once, and answered when it has been
// read. The error of a shard is an answer like any other here.
type Loader[K comparable, V any] struct {
	all  *Loaders
	side storage.Side
	kind *storage.LookupKind[K, V]

	mu    sync.Mutex
	known index[K, V]  // every key that has been asked for
	next  *batch[K, V] // keys requested and not yet sent; nil: none
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
	if _, ok := l.known.find(key); ok {
		return
	}
	primed := &batch[K, V]{}
	primed.Results = []storage.Result[V]{{Value: value, Found: true}}
	l.known.add(primed, key)
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
	own    *batch[K, V] // the batch that holds them all; nil: there is none
}

func (a *Asked[K, V]) claim() { a.own = a.loader.claim(a.keys) }

func (a *Asked[K, V]) take() task {
	if b := a.loader.take(); b != nil {
		return b
	}
	return nil
}

// Results waits for the answers, in the order of the keys.
func (a *Asked[K, V]) Results() []storage.Result[V] {
	if a.own != nil && slices.Equal(a.own.Keys, a.keys) {
		a.own.done.Wait()
		return slices.Clone(a.own.Results)
	}
	results := make([]storage.Result[V], len(a.keys))
	for i, k := range a.keys {
		p, _ := a.loader.find(k)
		results[i] = p.result()
	}
	return results
}

// Wait waits for the answers, for callers that load them one by one.
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

func (l *Loader[K, V]) find(key K) (p location[K, V], ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.find(key)
}

// knows reports whether all keys have been requested.
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

// claim puts those keys into the next batch that have not been asked for. It returns that batch
// when it holds all of the keys.
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
			l.next = &batch[K, V]{loader: l}
			l.next.Keys = make([]K, 0, len(keys))
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

// take takes the next batch, to have it read; nil if there is none, or another caller has
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
	storage.Lookup[K, V]
	loader *Loader[K, V]
	done   sync.WaitGroup
	whole  *ownedKeys[K, V] // all of it, once it has joined a bundle
}

// in is where a bundle has the look-up.
func (b *batch[K, V]) in(all *storage.Bundle) **storage.Lookup[K, V] {
	return b.loader.kind.In(all, b.loader.side)
}

func (b *batch[K, V]) into(all *storage.Bundle) { *b.in(all) = &b.Lookup }

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

// index finds for every requested key the batch that holds it, and where in it.
// Most requests ask for one batch of a few keys, or of fifty, and ask for them again in their
// order. A Go map of fifty pairs of ids takes 4.5 kB. The index takes 1 kB, because the keys stay
// in the batches, and nothing for a few keys.
type index[K comparable, V any] struct {
	batches []*batch[K, V]
	count   int      // of keys
	slots   []uint64 // a hash table with open addressing, twice as large as the keys at least; nil: there are few
	last    uint64   // the slot found last: usually the key behind it is requested next
}

// few is the number of keys up to which they are searched one by one.
const few = 8

// seed keeps clients from choosing ids that collide.
var seed = maphash.MakeSeed()

// slotOf is a location as a number other than 0.
func slotOf(batch, at int) uint64 { return uint64(batch+1)<<32 | uint64(at) }

func (x *index[K, V]) location(slot uint64) location[K, V] {
	return location[K, V]{x.batches[slot>>32-1], int(uint32(slot))}
}

func (x *index[K, V]) holds(slot uint64, key K) bool {
	in := x.batches[slot>>32-1]
	at := int(uint32(slot))
	return at < len(in.Keys) && in.Keys[at] == key
}

// find returns the location of a key; false if it has not been asked for.
func (x *index[K, V]) find(key K) (location[K, V], bool) {
	if x.count == 0 {
		return location[K, V]{}, false
	}
	for _, slot := range [...]uint64{x.last + 1, x.last} {
		if slot>>32 != 0 && x.holds(slot, key) {
			x.last = slot
			return x.location(slot), true
		}
	}
	slot := x.search(key)
	if slot == 0 {
		return location[K, V]{}, false
	}
	x.last = slot
	return x.location(slot), true
}

func (x *index[K, V]) search(key K) uint64 {
	if x.slots == nil {
		for b, in := range x.batches {
			for at, k := range in.Keys {
				if k == key {
					return slotOf(b, at)
				}
			}
		}
		return 0
	}
	for i := maphash.Comparable(seed, key); ; i++ {
		slot := x.slots[i&uint64(len(x.slots)-1)]
		if slot == 0 || x.holds(slot, key) {
			return slot
		}
	}
}

// add appends a key that has not been asked for to a batch, which is the last one.
func (x *index[K, V]) add(in *batch[K, V], key K) {
	if len(x.batches) == 0 || x.batches[len(x.batches)-1] != in {
		x.batches = append(x.batches, in)
	}
	in.Keys = append(in.Keys, key)
	x.count++
	if x.slots == nil && x.count <= few {
		return
	}
	if x.count*2 > len(x.slots) {
		x.room(x.count)
		return
	}
	x.insert(slotOf(len(x.batches)-1, len(in.Keys)-1), key)
}

// room makes the table large enough for a number of keys, if they are more than a few.
func (x *index[K, V]) room(keys int) {
	if keys <= few || keys*2 <= len(x.slots) {
		return
	}
	x.slots = make([]uint64, 1<<bits.Len(uint(keys*2-1)))
	for b, in := range x.batches {
		for at, key := range in.Keys {
			x.insert(slotOf(b, at), key)
		}
	}
}

func (x *index[K, V]) insert(slot uint64, key K) {
	i := maphash.Comparable(seed, key)
	for x.slots[i&uint64(len(x.slots)-1)] != 0 {
		i++
	}
	x.slots[i&uint64(len(x.slots)-1)] = slot
}
