package idset

import "kith/storage"

// Find returns the position of a user, and so the time of its edge. O(n): it looks through the
// list, the newest 512 first and then the packed rest. [Set.Contains] reports at once whether there
// is one, and [Timeline.Has] finds a known position at once.
func (t *Timeline) Find(peer storage.UserID) (at storage.Position, found bool) {
	o, known := t.dir.find(peer)
	if !known {
		return at, false
	}
	for i := len(t.head) - 1; i >= 0; i-- {
		if t.head[i].peer == o {
			return t.head[i].at, true
		}
	}
	v := t.dir.view.Load()
	for b := len(t.blocks) - 1; b >= 0; b-- {
		block := t.blocks[b]
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
