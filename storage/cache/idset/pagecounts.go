package idset

import (
	"cmp"
	"sync"

	"kith/storage"
)

// Candidate is a user with its count.
type Candidate struct {
	ID    storage.UserID
	Count int // how many of the sets hold the user, or the sum of their weights
}

// better orders candidates best first: by count, then by ascending id.
func better(a, b Candidate) int {
	if c := cmp.Compare(b.Count, a.Count); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// pageCounts holds the counts for the users of one page, in 256 kB. These
// stay in a processor's cache, which counters for all users would not.
type pageCounts struct {
	view    *view
	counts  [pageSlots]int32
	touched []uint16 // slots with counts
	weight  int32    // of the set that is counted
}

var pageCountsPool = sync.Pool{New: func() any { return new(pageCounts) }}

// countPages counts for each user how many of some sets it is in, and passes the counts to show
// page by page. The sets are of one directory. O(the sets' lengths together, and the pages they are spread over).
func countPages(dir *Directory, iterators []iterator, show func(b *pageCounts, page uint32)) {
	b := pageCountsPool.Get().(*pageCounts)
	b.view = dir.view.Load() // by now it has all of the sets' users
	for {
		page, any := nextPage(iterators)
		if !any {
			break
		}
		for i := range iterators {
			b.weight = iterators[i].weight
			iterators[i].add(page, b)
		}
		show(b, page)
		for _, slot := range b.touched {
			b.counts[slot] = 0
		}
		b.touched = b.touched[:0]
	}
	b.view = nil
	pageCountsPool.Put(b)
}

// iterator reads a set page by page.
type iterator struct {
	few     []ordinal
	chunks  []*chunk
	compact compactReader
	slots   []uint16
	weight  int32
}

// nextPage returns the lowest of the iterators' current pages.
func nextPage(iterators []iterator) (page uint32, any bool) {
	for i := range iterators {
		r := &iterators[i]
		at := uint32(0)
		switch {
		case len(r.few) > 0:
			at = r.few[0].page()
		case len(r.chunks) > 0:
			at = r.chunks[0].page
		case r.compact.left > 0:
			at = r.compact.next.page()
		default:
			continue
		}
		if !any || at < page {
			page, any = at, true
		}
	}
	return page, any
}

// add adds the users of a page, if the set has any, and moves on to the next page.
func (r *iterator) add(page uint32, b *pageCounts) {
	if len(r.few) > 0 {
		end := ordinal(page<<pageBits | (pageSlots - 1))
		i := 0
		for ; i < len(r.few) && r.few[i] <= end; i++ {
			b.addOne(r.few[i].slot())
		}
		r.few = r.few[i:]
		return
	}
	if r.compact.left > 0 {
		r.compact.add(page, b)
		return
	}
	if len(r.chunks) == 0 || r.chunks[0].page != page {
		return
	}
	r.slots = r.chunks[0].appendSlots(r.slots[:0])
	r.chunks = r.chunks[1:]
	for _, slot := range r.slots {
		b.addOne(slot)
	}
}

func (b *pageCounts) addOne(slot uint16) {
	if b.counts[slot] == 0 {
		b.touched = append(b.touched, slot)
	}
	b.counts[slot] += b.weight
}
