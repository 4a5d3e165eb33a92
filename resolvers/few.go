package resolvers

import (
	"slices"

	"kith/storage"
)

// few is a map that most often holds one or two values. A Go map makes room for eight, and eight
// pages of lists, for example, take 1.4 kB.
type few[K comparable, V any] struct {
	keys   []K
	values []V
	index  map[K]int // of the keys, when there are many
}

// distinct is ids, each once, in the order in which they came.
type distinct = few[storage.UserID, struct{}]

// many is the number of keys from which they are no longer searched one by one.
const many = 8

func (f *few[K, V]) get(key K) (value V, ok bool) {
	if at := f.at(key); at >= 0 {
		return f.values[at], true
	}
	return value, false
}

// at is the index of a key; negative if the map does not have it.
func (f *few[K, V]) at(key K) int {
	if f.index != nil {
		if at, ok := f.index[key]; ok {
			return at
		}
		return -1
	}
	return slices.Index(f.keys, key)
}

func (f *few[K, V]) put(key K, value V) {
	if !f.add(key, value) {
		f.values[f.at(key)] = value
	}
}

// add puts a value unless the key exists already; then it returns false.
func (f *few[K, V]) add(key K, value V) bool {
	if f.at(key) >= 0 {
		return false
	}
	f.keys, f.values = append(f.keys, key), append(f.values, value)
	switch n := len(f.keys); {
	case f.index != nil:
		f.index[key] = n - 1
	case n > many:
		f.index = make(map[K]int, 2*n)
		for at, k := range f.keys {
			f.index[k] = at
		}
	}
	return true
}
