package loaders

import (
	"hash/maphash"
	"math/bits"
)

// places tells for every requested key which batch holds it, and where in it.
// Most requests ask for one batch of a few keys, or of fifty, and ask for them again in
// their order. A Go map of fifty pairs of ids takes 4.5 kB. This takes one, because the keys
// stay in the batches, and nothing at all for a few.
type places[K comparable, V any] struct {
	batches []*batch[K, V]
	count   int      // of keys
	slots   []uint64 // a hash table with open addressing, twice as large as the keys at least; nil: there are few
	last    uint64   // the slot found last: usually the key behind it is requested next
}

// few is how many keys are looked through one by one.
const few = 8

// seed keeps clients from choosing ids that collide.
var seed = maphash.MakeSeed()

// slotOf is a key's place as a number other than 0.
func slotOf(batch, at int) uint64 { return uint64(batch+1)<<32 | uint64(at) }

func (p *places[K, V]) place(slot uint64) place[K, V] {
	return place[K, V]{p.batches[slot>>32-1], int(uint32(slot))}
}

func (p *places[K, V]) holds(slot uint64, key K) bool {
	in := p.batches[slot>>32-1]
	at := int(uint32(slot))
	return at < len(in.Keys) && in.Keys[at] == key
}

// find returns the place of a key; false if nobody has asked for it.
func (p *places[K, V]) find(key K) (place[K, V], bool) {
	if p.count == 0 {
		return place[K, V]{}, false
	}
	for _, slot := range [...]uint64{p.last + 1, p.last} {
		if slot>>32 != 0 && p.holds(slot, key) {
			p.last = slot
			return p.place(slot), true
		}
	}
	slot := p.search(key)
	if slot == 0 {
		return place[K, V]{}, false
	}
	p.last = slot
	return p.place(slot), true
}

func (p *places[K, V]) search(key K) uint64 {
	if p.slots == nil {
		for b, in := range p.batches {
			for at, k := range in.Keys {
				if k == key {
					return slotOf(b, at)
				}
			}
		}
		return 0
	}
	for i := maphash.Comparable(seed, key); ; i++ {
		slot := p.slots[i&uint64(len(p.slots)-1)]
		if slot == 0 || p.holds(slot, key) {
			return slot
		}
	}
}

// add appends a key, which nobody has asked for, to a batch, the last one.
func (p *places[K, V]) add(in *batch[K, V], key K) {
	if len(p.batches) == 0 || p.batches[len(p.batches)-1] != in {
		p.batches = append(p.batches, in)
	}
	in.Keys = append(in.Keys, key)
	p.count++
	if p.slots == nil && p.count <= few {
		return
	}
	if p.count*2 > len(p.slots) {
		p.room(p.count)
		return
	}
	p.insert(slotOf(len(p.batches)-1, len(in.Keys)-1), key)
}

// room makes the table large enough for a number of keys, if they are more than a few.
func (p *places[K, V]) room(keys int) {
	if keys <= few || keys*2 <= len(p.slots) {
		return
	}
	p.slots = make([]uint64, 1<<bits.Len(uint(keys*2-1)))
	for b, in := range p.batches {
		for at, key := range in.Keys {
			p.insert(slotOf(b, at), key)
		}
	}
}

func (p *places[K, V]) insert(slot uint64, key K) {
	i := maphash.Comparable(seed, key)
	for p.slots[i&uint64(len(p.slots)-1)] != 0 {
		i++
	}
	p.slots[i&uint64(len(p.slots)-1)] = slot
}
