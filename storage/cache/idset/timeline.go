package idset

import (
	"math/bits"
	"slices"
	"sort"

	"kith/storage"
)

// blockEntries is how many entries a packed block holds at most.
const blockEntries = 512

// Timeline is an immutable list in order of time: positions, each once. Insert and Remove return
// another version, which shares all blocks but one or two with it.
//
// In memory an entry takes 6 to 8 bytes.
type Timeline struct {
	dir    *Directory
	n      int
	blocks []*block // oldest first, none empty
}

// BuildTimeline makes a list of positions in any order. It takes O(n) if they come newest first, as
// [storage.Position.Compare] orders them.
func BuildTimeline(dir *Directory, positions []storage.Position) *Timeline {
	p := packableOf(dir, positions)
	t, v := &Timeline{dir: dir, n: len(p.times)}, dir.view.Load()
	for len(p.times) > 0 {
		n := min(len(p.times), blockEntries)
		t.blocks = append(t.blocks, p.slice(0, n).block(v))
		p = p.slice(n, len(p.times))
	}
	t.blocks = slices.Clip(t.blocks)
	return t
}

// packableOf sorts positions oldest first, and numbers their users in order of their ids.
func packableOf(dir *Directory, positions []storage.Position) packable {
	dir.Learn(storage.Distinct(storage.Each(positions, func(p storage.Position) storage.UserID { return p.Peer })))

	sorted := slices.Clone(positions)
	slices.Reverse(sorted)
	slices.SortFunc(sorted, func(a, b storage.Position) int { return b.Compare(a) })
	sorted = slices.Compact(sorted)
	p := packable{make([]uint64, len(sorted)), make([]uint64, len(sorted))}
	for i, at := range sorted {
		o, _ := dir.find(at.Peer)
		p.times[i], p.people[i] = uint64(at.UpdateTime), uint64(o)
	}
	return p
}

// Len is how many positions the list has. O(1).
func (t *Timeline) Len() int { return t.n }

// Bytes is the list's size in memory, including blocks it shares with other versions. O(blocks).
func (t *Timeline) Bytes() int {
	n := 48
	for _, b := range t.blocks {
		n += b.bytes()
	}
	return n
}

// Insert returns the list with a position added, or the list itself if it has that already. It
// rewrites a block and copies 8 bytes for each of the others.
func (t *Timeline) Insert(at storage.Position) *Timeline {
	var room [1]ordinal
	time, user := uint64(at.UpdateTime), uint64(t.dir.number([]storage.UserID{at.Peer}, room[:0])[0])
	v, next := t.dir.view.Load(), &Timeline{dir: t.dir, n: t.n + 1}
	if t.n == 0 {
		next.blocks = []*block{packable{[]uint64{time}, []uint64{user}}.block(v)}
		return next
	}
	b := t.blockFor(at)
	i, found := t.blocks[b].find(v, at)
	if found {
		return t
	}
	p := t.blocks[b].entries(1)
	p.times, p.people = slices.Insert(p.times, i, time), slices.Insert(p.people, i, user)
	next.blocks = replaced(v, t.blocks, b, p)
	return next
}

// Remove returns the list without a position, or the list itself if it has no such position. It
// rewrites a block and copies 8 bytes for each of the others.
func (t *Timeline) Remove(at storage.Position) *Timeline {
	if t.n == 0 {
		return t
	}
	v, b := t.dir.view.Load(), t.blockFor(at)
	i, found := t.blocks[b].find(v, at)
	if !found {
		return t
	}
	p := t.blocks[b].entries(0)
	p.times, p.people = slices.Delete(p.times, i, i+1), slices.Delete(p.people, i, i+1)
	return &Timeline{dir: t.dir, n: t.n - 1, blocks: replaced(v, t.blocks, b, p)}
}

// replaced returns a copy of blocks in which one block holds other entries: with no entries it is
// dropped, with too many it becomes two blocks.
func replaced(v *view, blocks []*block, at int, entries packable) []*block {
	switch n := len(entries.times); {
	case n == 0:
		return slices.Concat(blocks[:at], blocks[at+1:])
	case n > blockEntries:
		blocks = inserted(blocks, at+1, entries.slice(n/2, n).block(v))
		blocks[at] = entries.slice(0, n/2).block(v)
	default:
		blocks = slices.Clone(blocks)
		blocks[at] = entries.block(v)
	}
	return blocks
}

// blockFor returns the block in which a position is or would be, if there is any.
func (t *Timeline) blockFor(at storage.Position) int {
	later := sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].oldest.Compare(at) < 0 })
	return max(later-1, 0)
}

// Page returns a range of the list, newest first: at most limit positions strictly after one
// position and strictly before another, each open if zero. If backward is set, it returns those at
// the far end of the range. It is the answer of a store to a [storage.PageQuery]. O(log n + limit).
func (t *Timeline) Page(after, before storage.Position, limit int, backward bool) []storage.Position {
	r := t.slots()
	// Slots count from the oldest: the range is [low, high).
	low, high := slot{}, r.end()
	if after != (storage.Position{}) {
		high = r.find(after)
	}
	if before != (storage.Position{}) {
		low = r.find(before)
		if r.isAt(low, before) {
			low = r.next(low)
		}
	}
	var page []storage.Position
	if backward {
		for ; low.less(high) && len(page) < limit; low = r.next(low) {
			page = append(page, r.at(low))
		}
		slices.Reverse(page)
		return page
	}
	for low.less(high) && len(page) < limit {
		high = r.previous(high)
		page = append(page, r.at(high))
	}
	return page
}

// slot is where an entry of a list is, counted from the oldest: a block, and the index of an entry there.
type slot struct{ block, entry int }

func (p slot) less(q slot) bool {
	return p.block < q.block || p.block == q.block && p.entry < q.entry
}

// slots reads a list by slots.
type slots struct {
	*Timeline
	view *view
}

func (t *Timeline) slots() slots { return slots{t, t.dir.view.Load()} }

func (r slots) at(p slot) storage.Position { return r.blocks[p.block].at(r.view, p.entry) }

// end is the slot behind the newest.
func (r slots) end() slot { return slot{len(r.blocks), 0} }

func (r slots) next(p slot) slot {
	if p.entry++; p.entry == r.blocks[p.block].n {
		return slot{p.block + 1, 0}
	}
	return p
}

func (r slots) previous(p slot) slot {
	if p.entry == 0 {
		p.block--
		p.entry = r.blocks[p.block].n
	}
	p.entry--
	return p
}

// find returns the first slot whose position is not older than the given one.
func (r slots) find(at storage.Position) slot {
	if r.n == 0 {
		return r.end()
	}
	b := r.blockFor(at)
	i, _ := r.blocks[b].find(r.view, at)
	if i == r.blocks[b].n {
		return slot{b + 1, 0}
	}
	return slot{b, i}
}

func (r slots) isAt(p slot, at storage.Position) bool {
	return p.less(r.end()) && r.at(p) == at
}

// Find returns the position of a user, and so the time of its edge. O(n): it looks through the
// list. [Set.Contains] reports at once whether there is one, and [Timeline.Has] finds a known
// position at once.
func (t *Timeline) Find(peer storage.UserID) (at storage.Position, found bool) {
	o, known := t.dir.find(peer)
	if !known {
		return at, false
	}
	v := t.dir.view.Load()
	for _, block := range slices.Backward(t.blocks) {
		for i := range block.n {
			if block.people.at(i) == uint64(o) {
				return block.at(v, i), true
			}
		}
	}
	return at, false
}

// Has reports whether the list has a position. O(log n).
func (t *Timeline) Has(at storage.Position) bool {
	r := t.slots()
	return r.isAt(r.find(at), at)
}

// block is entries, packed, oldest first.
type block struct {
	n             int
	oldest        storage.Position
	times, people column
}

// packable is the times and the ordinals of entries, oldest first.
type packable struct{ times, people []uint64 }

func (p packable) append(q packable) packable {
	return packable{append(p.times, q.times...), append(p.people, q.people...)}
}

func (p packable) slice(from, to int) packable { return packable{p.times[from:to], p.people[from:to]} }

// block packs the entries, of which there is at least one.
func (p packable) block(v *view) *block {
	b := &block{n: len(p.times), times: columnOf(p.times), people: columnOf(p.people)}
	b.oldest = b.at(v, 0)
	return b
}

func (b *block) at(v *view, i int) storage.Position {
	return storage.Position{
		UpdateTime: storage.Micros(b.times.at(i)),
		Peer:       v.id(ordinal(b.people.at(i))),
	}
}

// find returns where a position is or would be, and whether it is there.
func (b *block) find(v *view, at storage.Position) (int, bool) {
	i := sort.Search(b.n, func(i int) bool { return b.at(v, i).Compare(at) <= 0 })
	return i, i < b.n && b.at(v, i) == at
}

// entries unpacks the block, with room for more entries.
func (b *block) entries(more int) packable {
	p := packable{make([]uint64, b.n, b.n+more), make([]uint64, b.n, b.n+more)}
	for i := range b.n {
		p.times[i], p.people[i] = b.times.at(i), b.people.at(i)
	}
	return p
}

func (b *block) bytes() int {
	return 8 + 112 + 8*(len(b.times.words)+len(b.people.words))
}

// column is whole numbers, each stored as its distance from the smallest, in as many bits as the
// largest distance needs (frame of reference). So any one of them is found at once.
type column struct {
	least uint64
	width uint8 // bits, 0 … 64
	words []uint64
}

func columnOf(values []uint64) column {
	if len(values) == 0 {
		return column{}
	}
	least, most := values[0], values[0]
	for _, v := range values {
		least, most = min(least, v), max(most, v)
	}
	c := column{least: least, width: uint8(bits.Len64(most - least))}
	c.words = make([]uint64, (len(values)*int(c.width)+63)/64)
	for i, v := range values {
		c.put(i, v-least)
	}
	return c
}

// put writes a distance into bits that are still 0.
func (c column) put(i int, distance uint64) {
	if c.width == 0 {
		return
	}
	bit := i * int(c.width)
	word, shift := bit/64, bit%64
	c.words[word] |= distance << shift
	if shift+int(c.width) > 64 {
		c.words[word+1] |= distance >> (64 - shift)
	}
}

// at is the i-th number. O(1).
func (c column) at(i int) uint64 {
	if c.width == 0 {
		return c.least
	}
	bit := i * int(c.width)
	word, shift := bit/64, bit%64
	distance := c.words[word] >> shift
	if shift+int(c.width) > 64 {
		distance |= c.words[word+1] << (64 - shift)
	}
	return c.least + distance&(1<<c.width-1)
}
