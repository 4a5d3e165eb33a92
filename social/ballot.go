package social

import (
	"math/bits"
	"math/rand/v2"

	"kith/storage"
)

// ballot is the votes for candidates, by id: a hash table with open addressing, which takes
// a third of the time of a map where a few thousand votes are counted once and gone through
// a few times.
type ballot struct {
	slots []vote // a power of two of them
	shift int    // of a hash, to a slot
	count int    // of candidates
}

// vote is what speaks for a candidate.
type vote struct {
	id     storage.UserID // 0: the slot is free
	score  int64
	mutual int32
	struck bool // it is not to be suggested
}

// ballotSeed keeps clients from choosing ids that collide.
var ballotSeed = rand.Uint64() | 1

// newBallot adds up who is on the speakers' lists.
func newBallot(lists [][]storage.UserID, weights []int64) *ballot {
	rows := 0
	for _, list := range lists {
		rows += len(list)
	}
	b := &ballot{}
	b.room(max(rows/2, 16))
	for i, list := range lists {
		for _, id := range list {
			v := b.slotOf(id)
			if v.id == 0 {
				if b.count++; 3*b.count > 2*len(b.slots) {
					b.room(len(b.slots))
					v = b.slotOf(id)
				}
				v.id = id
			}
			v.mutual, v.score = v.mutual+1, v.score+weights[i]
		}
	}
	return b
}

// room makes place for more than so many candidates.
func (b *ballot) room(n int) {
	old := b.slots
	size := bits.Len(uint(n))
	b.slots, b.shift = make([]vote, 1<<size), 64-size
	for _, v := range old {
		if v.id != 0 {
			*b.slotOf(v.id) = v
		}
	}
}

// slotOf is the slot of a candidate, a free one where it has no votes.
func (b *ballot) slotOf(id storage.UserID) *vote {
	for i := uint64(id) * ballotSeed >> b.shift; ; i++ {
		if v := &b.slots[i&uint64(len(b.slots)-1)]; v.id == id || v.id == 0 {
			return v
		}
	}
}

// strike has somebody not suggested. It tells whether that was a candidate until now.
func (b *ballot) strike(id storage.UserID) bool {
	v := b.slotOf(id)
	if v.id == 0 || v.struck {
		return false
	}
	v.struck = true
	return true
}

// top is the best candidates behind a mark, in order: at least so many, or all where there are
// not more. It goes by places in the scores: sorting the long tail of those with a single vote
// would cost more than all the rest.
func (b *ballot) top(want int, from SuggestionMark) (top ranking, all bool) {
	behind := Suggestion{ID: from.ID, Score: from.Score}
	stands := func(v *vote) bool {
		return v.id != 0 && !v.struck && (from.Score == 0 || better(Suggestion{ID: v.id, Score: v.score}, behind) > 0)
	}
	n := 0
	var least, most int64
	for i := range b.slots {
		if v := &b.slots[i]; stands(v) {
			if n++; n == 1 {
				least, most = v.score, v.score
			}
			least, most = min(least, v.score), max(most, v.score)
		}
	}
	if n == 0 {
		return nil, true
	}
	const places = 1024
	width := (most-least)/places + 1
	if n > want {
		var with [places]int // how many candidates have a score of each place
		for i := range b.slots {
			if v := &b.slots[i]; stands(v) {
				with[(v.score-least)/width]++
			}
		}
		place := places - 1
		for sum := with[place]; sum < want; sum += with[place] {
			place--
		}
		least += int64(place) * width
	}
	top = make(ranking, 0, min(n, 2*want))
	for i := range b.slots {
		if v := &b.slots[i]; stands(v) && v.score >= least {
			top = append(top, Suggestion{ID: v.id, Mutual: int(v.mutual), Score: v.score})
		}
	}
	top.sort()
	return top, len(top) == n
}
