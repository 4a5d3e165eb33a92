package idset

import (
	"cmp"
	"sync"

	"kith/storage"
)

// Vote is what was counted of one user.
type Vote struct {
	ID    storage.UserID
	Votes int   // how many of the sets hold the user
	Score int64 // the sum of their weights
}

// better orders votes best first: by score, then by ascending id.
func better(a, b Vote) int {
	if c := cmp.Compare(b.Score, a.Score); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// booth is where the votes for the users of one page are counted, in 256 kB, or 768
// with weights, which stay in a processor's cache where counters for all users would
// not.
type booth struct {
	view     *view
	weighted bool
	votes    [pageSlots]int32
	scores   [pageSlots]int64
	touched  []uint16 // slots with votes
}

var booths = sync.Pool{New: func() any { return new(booth) }}

func (b *booth) score(slot uint16) int64 {
	if b.weighted {
		return b.scores[slot]
	}
	return int64(b.votes[slot])
}

// tally counts in how many of some sets each user is, and shows the counts page by page.
// weights are what each set's word counts, positive; nil stands for 1 each. O(the sets'
// lengths together, and the pages they are spread over).
//
// The sets are of one directory; others are converted first.
func tally(sets []*Set, weights []int64, show func(b *booth, page uint32)) {
	if len(sets) == 0 {
		return
	}
	dir := sets[0].dir
	readers := make([]reader, len(sets))
	for i, s := range sets {
		s = s.In(dir)
		readers[i] = reader{few: s.few, chunks: s.chunks, weight: 1}
		if weights != nil {
			readers[i].weight = weights[i]
		}
	}
	b := booths.Get().(*booth)
	b.view, b.weighted = dir.view.Load(), weights != nil // all of the sets' users are known by now
	for {
		page, any := nextPage(readers)
		if !any {
			break
		}
		for i := range readers {
			readers[i].vote(page, b)
		}
		show(b, page)
		for _, slot := range b.touched {
			b.votes[slot], b.scores[slot] = 0, 0
		}
		b.touched = b.touched[:0]
	}
	b.view = nil
	booths.Put(b)
}

// reader reads a set page by page.
type reader struct {
	few    []ordinal
	chunks []*chunk
	weight int64
	slots  []uint16
}

// nextPage is the lowest of the pages that readers stand at.
func nextPage(readers []reader) (page uint32, any bool) {
	for i := range readers {
		r := &readers[i]
		at := uint32(0)
		switch {
		case len(r.few) > 0:
			at = r.few[0].page()
		case len(r.chunks) > 0:
			at = r.chunks[0].page
		default:
			continue
		}
		if !any || at < page {
			page, any = at, true
		}
	}
	return page, any
}

// vote casts the votes of a page, if the set has any, and goes on to the next.
func (r *reader) vote(page uint32, b *booth) {
	if len(r.few) > 0 {
		end := ordinal(page<<pageBits | (pageSlots - 1))
		i := 0
		for ; i < len(r.few) && r.few[i] <= end; i++ {
			b.cast(r.few[i].slot(), r.weight)
		}
		r.few = r.few[i:]
		return
	}
	if len(r.chunks) == 0 || r.chunks[0].page != page {
		return
	}
	r.slots = r.chunks[0].appendSlots(r.slots[:0], 0)
	r.chunks = r.chunks[1:]
	for _, slot := range r.slots {
		b.cast(slot, r.weight)
	}
}

func (b *booth) cast(slot uint16, weight int64) {
	if b.votes[slot] == 0 {
		b.touched = append(b.touched, slot)
	}
	b.votes[slot]++
	if b.weighted {
		b.scores[slot] += weight
	}
}
