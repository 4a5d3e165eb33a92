package idset

import (
	"slices"
	"sort"

	"kith/storage"
)

const (
	// blockEntries is how many entries a packed block holds at most.
	blockEntries = 2048

	// headEntries is how many of the newest entries are kept unpacked. A new edge copies only
	// these, 12 kB at most.
	headEntries = 512
)

// Timeline is an immutable list in order of time: positions, each once. Insert and Remove return
// another version, which shares all blocks but one or two with it.
//
// In memory an entry takes 6 to 8 bytes, 24 while it is among the newest 512.
type Timeline struct {
	dir    *Directory
	n      int
	blocks []*block // oldest first, none empty
	head   []entry  // newer than all in blocks, oldest first
}

// entry is a position with the ordinal of its user.
type entry struct {
	at   storage.Position
	peer ordinal
}

// block is entries, packed, oldest first.
type block struct {
	n             int
	oldest        storage.Position
	times, people column
}

// BuildTimeline makes a list of positions in any order. It takes O(n) if they come newest first, as
// [storage.Position.Compare] orders them.
func BuildTimeline(dir *Directory, positions []storage.Position) *Timeline {
	entries := entriesOf(dir, positions)
	v := dir.view.Load()
	t := &Timeline{dir: dir, n: len(entries)}
	for len(entries) > headEntries {
		n := min(len(entries)-headEntries/2, blockEntries)
		t.blocks = append(t.blocks, packable{}.append(entries[:n]).block(v))
		entries = entries[n:]
	}
	t.blocks = slices.Clip(t.blocks)
	t.head = slices.Clone(entries)
	return t
}

// entriesOf sorts positions oldest first, and numbers their users in order of their ids.
func entriesOf(dir *Directory, positions []storage.Position) []entry {
	ids := make([]storage.UserID, len(positions))
	for i, p := range positions {
		ids[i] = p.Peer
	}
	slices.Sort(ids)
	dir.Learn(slices.Compact(ids))

	entries := make([]entry, len(positions))
	for i, p := range positions {
		o, _ := dir.find(p.Peer)
		entries[len(entries)-1-i] = entry{p, o}
	}
	if !slices.IsSortedFunc(entries, oldestFirst) {
		slices.SortFunc(entries, oldestFirst)
	}
	return slices.CompactFunc(entries, func(a, b entry) bool { return a.at == b.at })
}

func oldestFirst(a, b entry) int { return b.at.Compare(a.at) }

// packable is the times and the ordinals of entries, oldest first.
type packable struct{ times, people []uint64 }

func (p packable) append(entries []entry) packable {
	for _, e := range entries {
		p.times = append(p.times, uint64(e.at.UpdateTime))
		p.people = append(p.people, uint64(e.peer))
	}
	return p
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

// Len is how many positions the list has. O(1).
func (t *Timeline) Len() int { return t.n }

// Bytes is the list's size in memory, including blocks it shares with other versions. O(blocks).
func (t *Timeline) Bytes() int {
	n := 72 + 24*cap(t.head)
	for _, b := range t.blocks {
		n += b.bytes()
	}
	return n
}

// Insert returns the list with a position added, or the list itself if it has that already. At the
// head, where new edges belong, it copies up to 12 kB; every few hundred inserts it packs the head
// and copies 8 bytes for each block. Elsewhere it rewrites a block.
func (t *Timeline) Insert(at storage.Position) *Timeline {
	var room [1]ordinal
	e := entry{at, t.dir.number([]storage.UserID{at.Peer}, room[:0])[0]}
	b := t.blockFor(at)
	if b < 0 {
		i, found := t.inHead(at)
		if found {
			return t
		}
		next := &Timeline{dir: t.dir, n: t.n + 1, blocks: t.blocks, head: inserted(t.head, i, e)}
		if len(next.head) > headEntries {
			next.pack()
		}
		return next
	}
	v := t.dir.view.Load()
	i, found := t.blocks[b].find(v, at)
	if found {
		return t
	}
	p := t.blocks[b].entries(1)
	p.times, p.people = slices.Insert(p.times, i, uint64(at.UpdateTime)), slices.Insert(p.people, i, uint64(e.peer))
	next := &Timeline{dir: t.dir, n: t.n + 1, head: t.head}
	next.blocks = replaced(v, t.blocks, b, p)
	return next
}

// Remove returns the list without a position, or the list itself if it has no such position. It
// rewrites a block and copies 8 bytes for each of the others.
func (t *Timeline) Remove(at storage.Position) *Timeline {
	b := t.blockFor(at)
	if b < 0 {
		i, found := t.inHead(at)
		if !found {
			return t
		}
		return &Timeline{dir: t.dir, n: t.n - 1, blocks: t.blocks, head: slices.Concat(t.head[:i], t.head[i+1:])}
	}
	v := t.dir.view.Load()
	i, found := t.blocks[b].find(v, at)
	if !found {
		return t
	}
	p := t.blocks[b].entries(0)
	p.times, p.people = slices.Delete(p.times, i, i+1), slices.Delete(p.people, i, i+1)
	next := &Timeline{dir: t.dir, n: t.n - 1, head: t.head}
	next.blocks = replaced(v, t.blocks, b, p)
	return next
}

// pack moves the older half of the head into blocks. It changes the list, which must not be shared
// yet.
func (t *Timeline) pack() {
	old, rest := t.head[:len(t.head)-headEntries/2], t.head[len(t.head)-headEntries/2:]
	v, last := t.dir.view.Load(), len(t.blocks)-1
	if last >= 0 && t.blocks[last].n+len(old) <= blockEntries {
		t.blocks = replaced(v, t.blocks, last, t.blocks[last].entries(len(old)).append(old))
	} else {
		t.blocks = inserted(t.blocks, last+1, packable{}.append(old).block(v))
	}
	t.head = slices.Clone(rest)
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

// blockFor returns the block in which a position is or would be, −1 for the head.
func (t *Timeline) blockFor(at storage.Position) int {
	if len(t.blocks) == 0 || len(t.head) > 0 && at.Compare(t.head[0].at) <= 0 {
		return -1
	}
	later := sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].oldest.Compare(at) < 0 })
	if later == len(t.blocks) && len(t.head) == 0 && at.Compare(t.newestPacked()) < 0 {
		return -1
	}
	return max(later-1, 0)
}

func (t *Timeline) newestPacked() storage.Position {
	last := t.blocks[len(t.blocks)-1]
	return last.at(t.dir.view.Load(), last.n-1)
}

func (t *Timeline) inHead(at storage.Position) (int, bool) {
	return slices.BinarySearchFunc(t.head, entry{at: at}, oldestFirst)
}
