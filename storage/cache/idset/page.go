package idset

import (
	"slices"

	"kith/storage"
)

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
