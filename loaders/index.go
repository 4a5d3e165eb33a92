package loaders

import (
	"hash/maphash"
	"math/bits"
)

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
