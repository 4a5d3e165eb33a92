package idset

import (
	"encoding/binary"
	"unsafe"

	"kith/storage"
)

// The flat form of a list is for the memory of the process that made it: sets are used in place, without being decoded
// first. It is
//
//	8 bytes   the directory that numbers its users
//	4 bytes   how many users it has, up to FlatLength
//	2 bytes   widths of the columns of times and of numbers; 2 more are 0
//	16 bytes  the least time and the least number
//	words     of both columns
//	4 bytes   for each user its number, ascending
//
// in the order of bytes of the machine. It takes 11 to 14 bytes an edge and 32 more.
const flatHead = 32

// FlatLength is how many users a list may have for a flat form.
const FlatLength = maxFew

// AppendFlat appends the flat form of a list of at most FlatLength users to bytes whose length is a multiple of 8, and pads
// it to one.
func (n List) AppendFlat(to []byte) []byte {
	t := n.Order
	var all block
	if len(t.blocks) == 1 {
		all = *t.blocks[0] // as most are
	} else {
		var p packable
		for _, b := range t.blocks {
			p = p.append(b.entries(0))
		}
		all.times, all.people = columnOf(p.times), columnOf(p.people)
	}
	to = binary.NativeEndian.AppendUint64(to, t.dir.serial)
	to = binary.NativeEndian.AppendUint32(to, uint32(t.n))
	to = append(to, all.times.width, all.people.width, 0, 0)
	to = binary.NativeEndian.AppendUint64(to, all.times.least)
	to = binary.NativeEndian.AppendUint64(to, all.people.least)
	for _, c := range [...]column{all.times, all.people} {
		for _, w := range c.words {
			to = binary.NativeEndian.AppendUint64(to, w)
		}
	}
	for _, o := range n.Peers.ordinals() {
		to = binary.NativeEndian.AppendUint32(to, uint32(o))
	}
	return append(to, make([]byte, -len(to)&7)...)
}

// flatList is all that a list in flat form needs besides its bytes, in one piece.
type flatList struct {
	set    Set
	order  Timeline
	block  block
	blocks [1]*block
}

// FlatList is the list whose flat form the bytes begin with; false if another directory numbers it. The list uses the bytes,
// which must not change, and which must begin at a multiple of 8.
func FlatList(dir *Directory, bytes []byte) (List, bool) {
	if binary.NativeEndian.Uint64(bytes) != dir.serial {
		return List{}, false
	}
	n := int(binary.NativeEndian.Uint32(bytes[8:]))
	f := &flatList{set: Set{dir: dir, n: n}, order: Timeline{dir: dir, n: n}}
	if n == 0 {
		return List{&f.set, &f.order}, true
	}
	times := column{width: bytes[12], least: binary.NativeEndian.Uint64(bytes[16:])}
	people := column{width: bytes[13], least: binary.NativeEndian.Uint64(bytes[24:])}
	rest := bytes[flatHead:]
	for _, c := range [...]*column{&times, &people} {
		if words := (n*int(c.width) + 63) / 64; words > 0 {
			c.words = unsafe.Slice((*uint64)(unsafe.Pointer(&rest[0])), words) //nolint:gosec // AppendFlat has written so many
			rest = rest[8*words:]
		}
	}
	f.set.few = unsafe.Slice((*ordinal)(unsafe.Pointer(&rest[0])), n) //nolint:gosec // as many as before
	f.block = block{n: n, times: times, people: people}
	f.block.oldest = storage.Position{UpdateTime: storage.Micros(times.at(0)), Peer: dir.view.Load().id(ordinal(people.at(0)))}
	f.blocks[0] = &f.block
	f.order.blocks = f.blocks[:]
	return List{&f.set, &f.order}, true
}
