package loaders

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// A SmallMap is a map of few keys, in the order in which they came: most requests ask for one, or for fifty, and ask for them again in
// their order. A Go map of fifty pairs of ids takes 4.5 kB, and one of a single page of a list as much as one of eight, 1.4 kB. A
// SmallMap takes no more than its keys and values while these are few, and 8 to 16 bytes a key if they are many.
type SmallMap[K comparable, V any] struct {
	keys   []K
	values []V
	slots  []uint32 // a hash table with open addressing, at least twice as large as the keys: places, from 1 on; nil: there are few
	last   int      // the place found last, from 0 on: usually the key behind it is requested next
}

// few is the number of keys up to which they are searched one by one.
const few = 8

// seed keeps clients from choosing ids that collide.
var seed = maphash.MakeSeed()

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
	if !m.Add(key, value) {
		m.values[m.last] = value
	}
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
	for _, at := range [...]int{m.last + 1, m.last} {
		if at < len(m.keys) && m.keys[at] == key {
			m.last = at
			return at
		}
	}
	at := -1
	if m.slots == nil {
		at = slices.Index(m.keys, key)
	} else {
		at = int(m.slots[m.slot(key)]) - 1
	}
	if at >= 0 {
		m.last = at
	}
	return at
}

// slot is the slot of a key or, if the map does not have it, the one that it would take.
func (m *SmallMap[K, V]) slot(key K) uint64 {
	mask := uint64(len(m.slots) - 1)
	for i := maphash.Comparable(seed, key) & mask; ; i = (i + 1) & mask {
		if at := m.slots[i]; at == 0 || m.keys[at-1] == key {
			return i
		}
	}
}

// insert adds a key that the map does not have.
func (m *SmallMap[K, V]) insert(key K, value V) {
	m.keys, m.values = append(m.keys, key), append(m.values, value)
	switch n := len(m.keys); {
	case n <= few && m.slots == nil:
	case 2*n > len(m.slots):
		m.index(n)
	default:
		m.slots[m.slot(key)] = uint32(n)
	}
}

// room makes room for more keys.
func (m *SmallMap[K, V]) room(more int) {
	m.keys, m.values = slices.Grow(m.keys, more), slices.Grow(m.values, more)
	if n := len(m.keys) + more; n > few && 2*n > len(m.slots) {
		m.index(n)
	}
}

// index makes the table large enough for a number of keys.
func (m *SmallMap[K, V]) index(keys int) {
	m.slots = make([]uint32, 1<<bits.Len(uint(2*keys-1)))
	for at, key := range m.keys {
		m.slots[m.slot(key)] = uint32(at + 1)
	}
}
