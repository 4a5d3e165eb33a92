package idset

import (
	"math/bits"
	"math/rand/v2"

	"kith/storage"
)

// countTable holds the counts for the users of plain sets, by id. It is a hash table with open
// addressing, which takes a third of the time of a map if a few thousand counts are counted once.
type countTable struct {
	slots []Candidate // their number is a power of two; a slot whose id is 0 is free
	shift int         // from a hash to a slot
	count int         // of users
}

// countSeed prevents clients from choosing ids that collide.
var countSeed = rand.Uint64() | 1

func (p TopK) countPlain(top *topHeap, excluded []int) {
	rows := 0
	for _, s := range p.Sets {
		rows += s.n
	}
	var b countTable
	b.room(max(rows/2, 16))
	for i, s := range p.Sets {
		weight := int64(1)
		if p.Weights != nil {
			weight = p.Weights[i]
		}
		for _, id := range s.plain {
			b.addOne(id, weight)
		}
	}
	for i, ids := range p.Except {
		for _, id := range ids {
			if v := b.slotOf(id); v.Count > 0 {
				v.Count, v.Score = 0, 0
				excluded[i]++
			}
		}
	}
	for i := range b.slots {
		if v := &b.slots[i]; v.Count > 0 && v.Score >= top.least {
			top.enter(*v)
		}
	}
}

func (b *countTable) addOne(id storage.UserID, weight int64) {
	v := b.slotOf(id)
	if v.ID == 0 {
		if b.count++; 3*b.count > 2*len(b.slots) {
			b.room(len(b.slots))
			v = b.slotOf(id)
		}
		v.ID = id
	}
	v.Count, v.Score = v.Count+1, v.Score+weight
}

// room makes room for more than n users.
func (b *countTable) room(n int) {
	old := b.slots
	size := bits.Len(uint(n))
	b.slots, b.shift = make([]Candidate, 1<<size), 64-size
	for _, v := range old {
		if v.ID != 0 {
			*b.slotOf(v.ID) = v
		}
	}
}

// slotOf returns the slot of a user, or a free one if it has no counts.
func (b *countTable) slotOf(id storage.UserID) *Candidate {
	for i := uint64(id) * countSeed >> b.shift; ; i++ {
		if v := &b.slots[i&uint64(len(b.slots)-1)]; v.ID == id || v.ID == 0 {
			return v
		}
	}
}
