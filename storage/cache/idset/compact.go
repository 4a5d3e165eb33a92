package idset

import (
	"encoding/binary"

	"kith/storage"
)

// Compact is a set of a directory in as few bytes as is practical: how many users it has, and the
// distances of their numbers, each in one to five bytes. Two bytes are usual for a list of some
// tens among a million users. A Compact can be expanded, nothing else; it is for sets that are kept
// by the hundred thousand and read whole.
type Compact string

// CompactOf returns ascending ids, each once, as a set of a directory. It numbers users whom the
// directory does not know. O(n).
func CompactOf(dir *Directory, ids []storage.UserID) Compact {
	ordinals := Build(dir, ids).ordinals()
	bytes := make([]byte, 0, 2+2*len(ordinals))
	bytes = binary.AppendUvarint(bytes, uint64(len(ordinals)))
	before := ordinal(0)
	for _, o := range ordinals {
		bytes = binary.AppendUvarint(bytes, uint64(o-before))
		before = o
	}
	return Compact(bytes)
}

// uvarint reads the number at a place, and returns the place behind it.
func (c Compact) uvarint(at int) (n uint32, next int) {
	b := c[at]
	at++
	n = uint32(b & 0x7f)
	for shift := 7; b >= 0x80; shift += 7 {
		b = c[at]
		at++
		n |= uint32(b&0x7f) << shift
	}
	return n, at
}

// Set is the set of a directory whose compact form is given. O(its length).
func (c Compact) Set(dir *Directory) *Set {
	n, at := c.uvarint(0)
	few, o := make([]ordinal, n), ordinal(0)
	for k := range few {
		var distance uint32
		distance, at = c.uvarint(at)
		o += ordinal(distance)
		few[k] = o
	}
	return ofOrdinals(dir, few)
}

// compactReader reads the users of a compact set, in order.
type compactReader struct {
	rest Compact // what has not been read
	next ordinal // the first of the users who are left
	left int
}

func (c Compact) reader() compactReader {
	n, at := c.uvarint(0)
	r := compactReader{left: int(n)}
	if n > 0 {
		var first uint32
		first, at = c.uvarint(at)
		r.next = ordinal(first)
	}
	r.rest = c[at:]
	return r
}

// add adds the users of a page, if the set has any, and moves on to the next page.
func (r *compactReader) add(page uint32, b *pageCounts) {
	end := ordinal(page<<pageBits | (pageSlots - 1))
	o, at, left, rest := r.next, 0, r.left, r.rest
	for o <= end {
		b.addOne(o.slot())
		if left--; left == 0 {
			break
		}
		var distance uint32
		if d := rest[at]; d < 0x80 { // spares a call
			distance, at = uint32(d), at+1
		} else if e := rest[at+1]; e < 0x80 {
			distance, at = uint32(d&0x7f)|uint32(e)<<7, at+2
		} else {
			distance, at = rest.uvarint(at)
		}
		o += ordinal(distance)
	}
	r.next, r.left, r.rest = o, left, rest[at:]
}
