package idset

import (
	"slices"

	"kith/storage"
)

// Among is the positions of a list whose users are, or are not, in a set.
type Among struct {
	Positions []storage.Position // newest first
	Examined  int                // how many positions of the list were examined
	Last      storage.Position   // the last one examined, or where the search began if there is none
	End       bool               // nothing comes after Last
}

// Among finds positions strictly after the given one, or from the newest on if that is zero, of
// users who are in a set or, if absent is true, who are not. It stops at the most-th of them, or
// after examining examine positions; most and examine are positive. It takes O(log n) to begin, and
// some nanoseconds per position: users are compared by number, and only those found are looked up.
func (t *Timeline) Among(in *Set, absent bool, after storage.Position, most, examine int) Among {
	members := membersOf(in.In(t.dir))
	r := t.slots()
	at := r.end()
	if after != (storage.Position{}) {
		at = r.find(after)
	}
	found := Among{Last: after, Positions: make([]storage.Position, 0, min(most, examine, t.Len()))}
	for found.Examined < examine && len(found.Positions) < most {
		if at = r.settled(at); at == (slot{}) {
			found.End = true
			return found
		}
		// Goes down through what is left of a block.
		low := max(0, at.entry-(examine-found.Examined))
		entry := at.entry
		for entry > low && len(found.Positions) < most {
			entry--
			if members.has(ordinal(r.blocks[at.block].people.at(entry))) != absent {
				found.Positions = append(found.Positions, r.at(slot{at.block, entry}))
			}
		}
		found.Examined += at.entry - entry
		at.entry = entry
		found.Last = r.at(at)
	}
	found.End = r.settled(at) == slot{}
	return found
}

// settled returns the same slot in another form: if the slot is at the beginning of a block, the
// slot after the last entry of the block before. The zero slot is the beginning of all.
func (r slots) settled(p slot) slot {
	for p.entry == 0 && p.block > 0 {
		p.block--
		p.entry = r.blocks[p.block].n
	}
	return p
}

// members is a set prepared for many membership tests in any order.
type members struct {
	few    []ordinal
	sketch [64]uint64 // of a list: a bit is set if any number in it ends in those 12 bits
	pages  []*chunk   // of a set in chunks, by page
}

func membersOf(s *Set) *members {
	m := &members{few: s.few}
	for _, o := range s.few {
		m.sketch[o>>6&63] |= 1 << (o & 63)
	}
	if n := len(s.chunks); n > 0 {
		m.pages = make([]*chunk, s.chunks[n-1].page+1)
		for _, c := range s.chunks {
			m.pages[c.page] = c
		}
	}
	return m
}

func (m *members) has(o ordinal) bool {
	if m.pages != nil {
		page := o.page()
		if page >= uint32(len(m.pages)) {
			return false
		}
		c := m.pages[page]
		return c != nil && c.bit(o.slot()) == 1
	}
	if m.sketch[o>>6&63]>>(o&63)&1 == 0 {
		return false
	}
	_, found := slices.BinarySearch(m.few, o)
	return found
}
