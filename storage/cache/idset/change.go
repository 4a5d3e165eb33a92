package idset

import (
	"slices"

	"kith/storage"
)

// Insert returns the set with a user added, or the set itself if it has that user already. It
// copies one chunk, of 8 kB at most, and 8 bytes for each of the others.
func (s *Set) Insert(id storage.UserID) *Set {
	var room [1]ordinal
	o := s.dir.number([]storage.UserID{id}, room[:0])[0]
	if s.has(o) {
		return s
	}
	if s.chunks == nil {
		return ofOrdinals(s.dir, inserted(s.few, gallop(s.few, 0, o), o)) // in chunks, if there are now too many users for a list
	}
	next := &Set{dir: s.dir, n: s.n + 1}
	at, found := s.chunkAt(o.page())
	if found {
		next.chunks = slices.Clone(s.chunks)
		next.chunks[at] = s.chunks[at].with(o.slot())
	} else {
		next.chunks = inserted(s.chunks, at, chunkOf([]ordinal{o}))
	}
	return next
}

// Remove returns the set without a user, or the set itself if it has no such user. It costs as much
// as Insert.
func (s *Set) Remove(id storage.UserID) *Set {
	o, known := s.dir.find(id)
	if !known || !s.has(o) {
		return s
	}
	next := &Set{dir: s.dir, n: s.n - 1}
	if s.chunks == nil {
		at := gallop(s.few, 0, o)
		next.few = slices.Concat(s.few[:at], s.few[at+1:])
		return next
	}
	at, _ := s.chunkAt(o.page())
	if s.chunks[at].n == 1 {
		next.chunks = slices.Concat(s.chunks[:at], s.chunks[at+1:])
	} else {
		next.chunks = slices.Clone(s.chunks)
		next.chunks[at] = s.chunks[at].without(o.slot())
	}
	if next.n < minChunks {
		next.few, next.chunks = next.ordinals(), nil
	}
	return next
}

// ordinals are the ordinals of the set's users, ascending.
func (s *Set) ordinals() []ordinal {
	if s.chunks == nil {
		return s.few
	}
	all := make([]ordinal, 0, s.n)
	var slots []uint16
	for _, c := range s.chunks {
		slots = c.appendSlots(slots[:0])
		for _, slot := range slots {
			all = append(all, ordinal(c.page<<pageBits|uint32(slot)))
		}
	}
	return all
}

// inserted returns a copy of a slice with one more element.
func inserted[T any](in []T, at int, element T) []T {
	out := make([]T, len(in)+1)
	copy(out, in[:at])
	out[at] = element
	copy(out[at+1:], in[at:])
	return out
}
