package idset

import (
	"encoding/binary"
	"fmt"
	"iter"

	"kith/storage"
)

// Chunks yields the users in ascending order, [ChunkSize] at a time: what to write into
// rows of a table, so that a change has to rewrite one of them. The slice is used again.
func (s *Set) Chunks() iter.Seq[[]storage.UserID] {
	return func(yield func([]storage.UserID) bool) {
		chunk := make([]storage.UserID, 0, min(s.n, ChunkSize))
		for id := range s.Above(0) {
			if len(chunk) == ChunkSize {
				if !yield(chunk) {
					return
				}
				chunk = chunk[:0]
			}
			chunk = append(chunk, id)
		}
		if len(chunk) > 0 {
			yield(chunk)
		}
	}
}

// AppendSet appends the binary form of a set: byte 0xC2, uvarint Len, and the chunks,
// each with its length in bytes as a uvarint before it. O(n).
func AppendSet(to []byte, s *Set) []byte {
	to = append(to, formSet)
	to = binary.AppendUvarint(to, uint64(s.n))
	var one []byte
	for ids := range s.Chunks() {
		one = AppendChunk(one[:0], ids)
		to = binary.AppendUvarint(to, uint64(len(one)))
		to = append(to, one...)
	}
	return to
}

// ParseSet reads a set of at most so many users. The error wraps [ErrMalformed]; then
// the directory has not learned of anybody. O(n).
func ParseSet(dir *Directory, data []byte, most int) (*Set, error) {
	n, err := walkSet(data, most, func([]storage.UserID) {})
	if err != nil {
		return nil, fmt.Errorf("read a set of %d bytes: %w", len(data), err)
	}
	ids := make([]storage.UserID, 0, n)
	if _, err := walkSet(data, most, func(chunk []storage.UserID) { ids = append(ids, chunk...) }); err != nil {
		return nil, fmt.Errorf("read a set of %d bytes: %w", len(data), err)
	}
	return Build(dir, ids), nil
}

// walkSet visits the chunks, and tells how many ids there are in all. It takes no more
// memory than a chunk does.
func walkSet(data []byte, most int, visit func([]storage.UserID)) (int, error) {
	s, n := unframe(data, formSet, most)
	last, found := storage.UserID(0), 0
	var ids []storage.UserID
	for len(s.left) > 0 && s.err == nil {
		var err error
		if ids, err = ParseChunk(ids[:0], s.frame()); err != nil {
			return 0, err
		}
		if ids[0] <= last {
			s.fail("chunks are out of order")
		}
		if found += len(ids); found > n {
			s.fail("more than the %d users it tells of", n)
		}
		last = ids[len(ids)-1]
		visit(ids)
	}
	if s.err == nil && found != n {
		s.fail("%d of %d users", found, n)
	}
	return n, s.err
}

// unframe begins to read a form that is a number of elements, and frames.
func unframe(data []byte, form byte, most int) (*scanner, int) {
	s := &scanner{}
	if len(data) == 0 || data[0] != form {
		s.fail("%d bytes do not begin with %#x", len(data), form)
		return s, 0
	}
	s.left = data[1:]
	return s, int(s.number(uint64(max(most, 0))))
}

// frame reads the bytes of the next frame.
func (s *scanner) frame() []byte { return s.bytes(int(s.number(uint64(len(s.left))))) }
