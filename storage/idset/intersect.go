package idset

import (
	"slices"

	"kith/storage"
)

// Common counts the users that two sets have in common. O(chunks) with 0.1 to 0.4 µs for a pair of
// bitmaps; O(the smaller set) if one is a list.
func Common(a, b *Set) int {
	_, total := Intersect(a, b, 0, 0)
	return total
}

// Intersect returns the first users that two sets have in common, ascending, among those with ids
// greater than after. It also returns how many users they have in common in all, whatever their
// ids. It counts as fast as [Common] does; the users themselves cost O(first), besides a look at
// all common ones that are late in the directory.
func Intersect(a, b *Set, after storage.UserID, first int) (ids []storage.UserID, total int) {
	b = b.In(a.dir)
	found := newFirstIDs(a.dir.view.Load(), after, first)
	switch {
	case a.chunks != nil && b.chunks != nil:
		total = intersectChunks(a.chunks, b.chunks, found)
	case a.chunks != nil:
		total = probeFew(b.few, a, found)
	case b.chunks != nil:
		total = probeFew(a.few, b, found)
	default:
		total = intersectFew(a.few, b.few, found)
	}
	return found.inOrder(), total
}

func intersectChunks(a, b []*chunk, found *firstIDs) int {
	total := 0
	var scratch scratch
	for len(a) > 0 && len(b) > 0 {
		x, y := a[0], b[0]
		if x.page == y.page {
			n := commonSlots(x, y, &scratch)
			if total += n; n > 0 {
				found.inChunks(x, y, &scratch)
			}
		}
		if x.page <= y.page {
			a = a[1:]
		}
		if y.page <= x.page {
			b = b[1:]
		}
	}
	scratch.release()
	return total
}

// probeFew intersects a list with a set in chunks.
func probeFew(few []ordinal, in *Set, found *firstIDs) int {
	total, chunks := 0, in.chunks
	for len(few) > 0 && len(chunks) > 0 {
		switch c, page := chunks[0], few[0].page(); {
		case c.page < page:
			chunks = chunks[1:]
		case c.page > page:
			few = few[pageEnd(few):]
		default:
			n, end := c.probe(few)
			if total += n; n > 0 {
				found.inChunk(c, few[:end])
			}
			few = few[end:]
		}
	}
	return total
}

// probe takes the ordinals of its page, with which the list begins. It counts how many of them the
// chunk contains, and how many there are; if possible, without a branch for each.
func (c *chunk) probe(few []ordinal) (n, end int) {
	last := ordinal(c.page<<pageBits | (pageSlots - 1))
	if c.bits == nil {
		for ; end < len(few) && few[end] <= last; end++ {
			if c.contains(few[end].slot()) {
				n++
			}
		}
		return n, end
	}
	for _, o := range few {
		if o > last {
			break
		}
		s := o.slot()
		n += int(c.bits[s/64] >> (s % 64) & 1)
		end++
	}
	return n, end
}

// intersectFew intersects two lists, and gallops if one is far longer.
func intersectFew(a, b []ordinal, found *firstIDs) int {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a)*16 >= len(b) {
		return mergeFew(a, b, found)
	}
	total, at := 0, 0
	for _, o := range a {
		at = gallop(b, at, o)
		if at == len(b) {
			break
		}
		if b[at] == o {
			total++
			found.add(o)
		}
	}
	return total
}

func mergeFew(a, b []ordinal, found *firstIDs) int {
	i, j, total := 0, 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		if x == y {
			total++
			found.add(x)
		}
		var forward, onward int // without a branch, see commonLists
		if x <= y {
			forward = 1
		}
		if y <= x {
			onward = 1
		}
		i, j = i+forward, j+onward
	}
	return total
}

// firstIDs collects the first of some users in order of their ids. The users come by ascending
// ordinal.
type firstIDs struct {
	view  *view
	after storage.UserID
	from  ordinal // of the first user who is not late and whose id is greater than after
	want  int
	ids   []storage.UserID // not late, so they come in order
	late  []storage.UserID
	slots []uint16
}

// newFirstIDs returns nil if no users are wanted.
func newFirstIDs(v *view, after storage.UserID, want int) *firstIDs {
	if want <= 0 {
		return nil
	}
	return &firstIDs{view: v, after: after, want: want, from: firstOf(v, after)}
}

// add takes a user if it is one of the first.
func (f *firstIDs) add(o ordinal) {
	if f == nil {
		return
	}
	p := f.view.pages[o.page()]
	id := p.ids[o.slot()]
	switch {
	case id <= f.after:
	case p.late:
		f.late = append(f.late, id)
	case len(f.ids) < f.want:
		if f.ids == nil {
			f.ids = make([]storage.UserID, 0, min(f.want, 32))
		}
		f.ids = append(f.ids, id)
	}
}

// inChunks takes those users that two chunks have in common and that may be among the first.
func (f *firstIDs) inChunks(a, b *chunk, scratch *scratch) {
	if f == nil {
		return
	}
	if from, enough := f.room(a.page); enough > 0 {
		f.slots = appendCommon(f.slots[:0], a, b, from, enough, scratch)
		f.addSlots(a.page, f.slots)
	}
}

// room returns the slot from which on a page has users who may be among the first, and how many of
// them are enough.
func (f *firstIDs) room(page uint32) (from uint16, enough int) {
	switch {
	case f.view.pages[page].late:
		return 0, pageSlots
	case page < f.from.page():
		return 0, 0
	case page == f.from.page():
		from = f.from.slot()
	}
	return from, f.want - len(f.ids)
}

func (f *firstIDs) addSlots(page uint32, slots []uint16) {
	for _, slot := range slots {
		f.add(ordinal(page<<pageBits | uint32(slot)))
	}
}

// inChunk takes those ordinals that a chunk contains and that may be among the first.
func (f *firstIDs) inChunk(c *chunk, few []ordinal) {
	if f == nil {
		return
	}
	late := f.view.pages[c.page].late
	for _, o := range few {
		if !late && len(f.ids) >= f.want {
			return
		}
		if c.contains(o.slot()) {
			f.add(o)
		}
	}
}

// inOrder returns the first users.
func (f *firstIDs) inOrder() []storage.UserID {
	if f == nil {
		return nil
	}
	if len(f.late) > 0 {
		f.ids = append(f.ids, f.late...)
		slices.Sort(f.ids)
	}
	return f.ids[:min(len(f.ids), f.want)]
}
