package idset

import (
	"slices"
	"sort"

	"kith/storage"
)

// Forms of a set. Up to maxFew users are a list of 4 bytes each: chunks would be nearly empty, each
// with its overhead.
const (
	maxFew    = 2048
	minChunks = maxFew / 2
)

// Set is an immutable set of users: Insert and Remove return another version, which shares all
// chunks but one with it. So any number of goroutines may use a version while others make the next.
//
// In memory a user takes from 0.13 bytes, if a set holds nearly all users, to 8, and more only if a
// few thousand are scattered over hundreds of pages; [Set.Bytes] reports it. All sets share the
// directory and its memory.
type Set struct {
	dir    *Directory // nil: the set is plain, see [Of]
	n      int
	few    []ordinal        // ascending, if there are no chunks
	chunks []*chunk         // by page
	plain  []storage.UserID // ascending
}

// Build makes a set of users, who may come in any order and more than once. Ids are positive. It
// numbers users whom the directory does not know. O(n) for ascending ids, else O(n·log n).
func Build(dir *Directory, ids []storage.UserID) *Set {
	if !slices.IsSorted(ids) {
		ids = slices.Clone(ids)
		slices.Sort(ids)
	}
	ordinals := dir.number(ids, make([]ordinal, 0, len(ids)))
	slices.Sort(ordinals) // late users are numbered out of order
	return ofOrdinals(dir, slices.Compact(ordinals))
}

// ofOrdinals makes a set of ascending ordinals and keeps the slice.
func ofOrdinals(dir *Directory, ordinals []ordinal) *Set {
	s := &Set{dir: dir, n: len(ordinals)}
	if len(ordinals) <= maxFew {
		s.few = slices.Clip(ordinals)
		return s
	}
	for len(ordinals) > 0 {
		page := ordinals[0].page()
		end := sort.Search(len(ordinals), func(i int) bool { return ordinals[i].page() > page })
		s.chunks = append(s.chunks, chunkOf(ordinals[:end]))
		ordinals = ordinals[end:]
	}
	s.chunks = slices.Clip(s.chunks)
	return s
}

// Len is how many users are in the set. O(1).
func (s *Set) Len() int { return s.n }

// Contains reports whether a user is in the set. O(log of the directory's length).
func (s *Set) Contains(id storage.UserID) bool {
	if s.dir == nil {
		_, found := slices.BinarySearch(s.plain, id)
		return found
	}
	o, known := s.dir.find(id)
	return known && s.has(o)
}

func (s *Set) has(o ordinal) bool {
	if s.chunks == nil {
		_, found := slices.BinarySearch(s.few, o)
		return found
	}
	c := s.chunk(o.page())
	return c != nil && c.bit(o.slot()) == 1
}

// chunk returns the chunk of a page, or nil.
func (s *Set) chunk(page uint32) *chunk {
	if at, found := s.chunkAt(page); found {
		return s.chunks[at]
	}
	return nil
}

// chunkAt returns where the chunk of a page is or would be.
func (s *Set) chunkAt(page uint32) (int, bool) {
	return slices.BinarySearchFunc(s.chunks, page, func(c *chunk, page uint32) int { return int(c.page) - int(page) })
}

// Bytes is the set's size in memory, chunks it shares with other versions included.
// O(chunks).
func (s *Set) Bytes() int {
	n := 72 + 4*cap(s.few)
	for _, c := range s.chunks {
		n += c.bytes()
	}
	return n
}

// In returns the set with the numbers of a directory: itself if that is its own. O(n).
func (s *Set) In(dir *Directory) *Set {
	if s.dir == dir {
		return s
	}
	return Build(dir, s.IDs())
}

// IDs returns the users in ascending order; the caller must not change them. O(n), or O(n·log n) if some are late in the directory.
func (s *Set) IDs() []storage.UserID {
	if s.dir == nil {
		return s.plain
	}
	v, ids := s.dir.view.Load(), make([]storage.UserID, 0, s.n)
	for _, o := range s.few {
		ids = append(ids, v.id(o))
	}
	var slots []uint16
	for _, c := range s.chunks {
		slots = c.appendSlots(slots[:0])
		for _, slot := range slots {
			ids = append(ids, v.pages[c.page].ids[slot])
		}
	}
	slices.Sort(ids)
	return ids
}

// firstOf returns the ordinal of the first user not late whose id is greater than after; if its
// page has none, the ordinal after the page's users.
func firstOf(v *view, after storage.UserID) ordinal {
	at := sort.Search(len(v.firsts), func(i int) bool { return v.firsts[i] > after })
	if at == 0 {
		return 0
	}
	p := v.order[at-1]
	users := p.users()
	slot := sort.Search(len(users), func(i int) bool { return users[i] > after })
	if slot == pageSlots {
		return ordinal((p.number + 1) << pageBits)
	}
	return ordinal(p.number<<pageBits | uint32(slot))
}

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
