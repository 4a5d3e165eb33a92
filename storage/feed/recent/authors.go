package recent

import (
	"math/bits"

	"kith/storage"
)

// authors numbers those who have recent posts. Numbers of authors who no longer have recent posts
// are assigned again.
type authors struct {
	ids   []storage.UserID // by number; 0: free
	heads []position       // the newest post, by number
	free  []uint32         // numbers

	slots []uint32 // a hash table by id, with linear probing: a number plus 1, or 0
	n     int      // how many of them are taken
}

func (a *authors) bytes() int {
	return 8*cap(a.ids) + 4*cap(a.heads) + 4*cap(a.free) + 4*len(a.slots)
}

// home is the slot where the search for an id begins.
func (a *authors) home(id storage.UserID) int {
	const spread = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio (Knuth, TAOCP 3, 6.4)
	return int(uint64(id) * spread >> (64 - bits.Len(uint(len(a.slots)-1))))
}

// find returns an author's number.
func (a *authors) find(id storage.UserID) (number uint32, known bool) {
	if len(a.slots) == 0 {
		return 0, false
	}
	for i := a.home(id); a.slots[i] != 0; i = (i + 1) & (len(a.slots) - 1) {
		if number := a.slots[i] - 1; a.ids[number] == id {
			return number, true
		}
	}
	return 0, false
}

// add numbers an author who has no number yet. The caller sets its head.
func (a *authors) add(id storage.UserID) (number uint32) {
	if 5*(a.n+1) > 4*len(a.slots) {
		a.grow()
	}
	if last := len(a.free) - 1; last >= 0 {
		number, a.free = a.free[last], a.free[:last]
		a.ids[number] = id
	} else {
		number = uint32(len(a.ids))
		a.ids, a.heads = append(a.ids, id), append(a.heads, 0)
	}
	a.n++
	a.put(number)
	return number
}

func (a *authors) put(number uint32) {
	i := a.home(a.ids[number])
	for a.slots[i] != 0 {
		i = (i + 1) & (len(a.slots) - 1)
	}
	a.slots[i] = number + 1
}

func (a *authors) grow() {
	a.slots = make([]uint32, max(16, 2*len(a.slots)))
	for number, id := range a.ids {
		if id != 0 {
			a.put(uint32(number))
		}
	}
}

// remove gives an author's number back, and moves those that were put behind its slot.
func (a *authors) remove(number uint32) {
	mask := len(a.slots) - 1
	hole := a.home(a.ids[number])
	for a.slots[hole] != number+1 {
		hole = (hole + 1) & mask
	}
	for i := (hole + 1) & mask; a.slots[i] != 0; i = (i + 1) & mask {
		if home := a.home(a.ids[a.slots[i]-1]); (i-home)&mask >= (i-hole)&mask {
			a.slots[hole], hole = a.slots[i], i
		}
	}
	a.slots[hole] = 0
	a.ids[number] = 0
	a.free = append(a.free, number)
	a.n--
}
