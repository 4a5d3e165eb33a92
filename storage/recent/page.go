package recent

import (
	"container/heap"
	"slices"

	"kith/storage"
	"kith/storage/idset"
)

// Query asks for recent posts of some authors, newest first.
type Query struct {
	Authors *idset.Set
	Hides   func(author storage.UserID) bool // whose posts are left out; nil: nobody's
	After   storage.Place                    // only posts strictly behind it (older), unless zero
	Limit   int                              // how many at most, ≥ 1
}

// Page is an answer to a [Query].
type Page struct {
	Posts []storage.PostAt

	// Through is up to where the answer is complete: all posts asked for that are newer are among
	// Posts, if these are fewer than the limit.
	Through storage.Micros
	// Ended says that the search ended at Through before it reached the floor.
	Ended bool
}

// How a page is found.
const (
	// Reading an entry of the log takes a fraction of the time of finding an author's newest post:
	// for as many authors, a scan of so many entries for each may as well be tried first.
	scanFrom = 1000
	scanEach = 2

	// farBack is how many posts of an author are passed over on the way to a place. If an author
	// has more that are newer, the log is scanned from there.
	farBack = 32
	// scanMost is how many entries such a scan examines, in some milliseconds.
	scanMost = 200_000
)

// Page finds a page.
func (p *Posts) Page(q Query) Page {
	p.pages.Add(1)
	p.mu.RLock()
	defer p.mu.RUnlock()
	if n := q.Authors.Len(); n >= scanFrom {
		if page := p.scan(q, scanEach*n); !page.Ended {
			return page
		}
	}
	if page, near := p.merge(q); near {
		return page
	}
	return p.scan(q, scanMost)
}

// merge merges the chains of the authors. It is not near if it gave up because the place is too far
// back in one of them.
func (p *Posts) merge(q Query) (page Page, near bool) {
	var chains heads
	for _, id := range q.Authors.IDs() {
		author, known := p.authors.find(id)
		if !known || q.Hides != nil && q.Hides(id) {
			continue
		}
		at := p.authors.heads[author]
		for passed := 0; p.log.has(at) && !behind(p.log.time(at), q.After, func() int64 { return p.number(at) }); passed++ {
			if passed == farBack {
				return Page{}, false
			}
			at = p.log.next(at)
		}
		if p.log.has(at) && p.log.time(at) > p.floor {
			chains = append(chains, head{p.place(at), at})
		}
	}
	heap.Init(&chains)
	page.Through = p.floor
	for len(chains) > 0 && len(page.Posts) < q.Limit {
		at := chains[0].at
		page.Posts = append(page.Posts, p.post(at))
		if next := p.log.next(at); p.log.has(next) && p.log.time(next) > p.floor {
			chains[0] = head{p.place(next), next}
			heap.Fix(&chains, 0)
		} else {
			heap.Pop(&chains)
		}
	}
	return page, true
}

// behind reports whether a post is behind a place. Its number matters only at the same time.
func behind(t storage.Micros, place storage.Place, number func() int64) bool {
	switch {
	case place == storage.Place{} || t < place.CreatedAt:
		return true
	case t > place.CreatedAt:
		return false
	}
	return number() < place.Number
}

// head is the next post of a chain.
type head struct {
	storage.Place
	at position
}

// heads is a heap, the newest on top.
type heads []head

func (h heads) Len() int           { return len(h) }
func (h heads) Less(i, j int) bool { return h[i].Compare(h[j].Place) < 0 }
func (h heads) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(one any)      { *h = append(*h, one.(head)) }
func (h *heads) Pop() any {
	last := len(*h) - 1
	one := (*h)[last]
	*h = (*h)[:last]
	return one
}

// scan goes back through the log, over so many entries at most.
func (p *Posts) scan(q Query, most int) (page Page) {
	page.Through = p.floor
	for n := len(p.log.chunks) - 1; n >= 0; n-- {
		c := p.log.chunks[n]
		if q.After != (storage.Place{}) && c.oldest > q.After.CreatedAt {
			continue
		}
		for i := len(c.times) - 1; i >= 0; i-- {
			t := c.time(i)
			upTo := t + c.behind // no entry from here on back is newer
			if upTo <= p.floor || len(page.Posts) == q.Limit && page.Posts[q.Limit-1].CreatedAt > upTo {
				return page
			}
			if most--; most < 0 {
				page.Through, page.Ended = upTo, true
				page.Posts = slices.DeleteFunc(page.Posts, func(one storage.PostAt) bool { return one.CreatedAt <= upTo })
				return page
			}
			at := p.log.first + position(n)<<chunkBits + position(i)
			if c.authors[i] == nobody || t <= p.floor || !behind(t, q.After, func() int64 { return p.number(at) }) {
				continue
			}
			if id := p.authors.ids[c.authors[i]]; q.Authors.Contains(id) && (q.Hides == nil || !q.Hides(id)) {
				page.insert(p.post(at), q.Limit)
			}
		}
	}
	return page
}

// insert adds a post where it belongs, unless there are enough that are newer.
func (p *Page) insert(post storage.PostAt, limit int) {
	i := len(p.Posts)
	for i > 0 && p.Posts[i-1].Place().Compare(post.Place()) > 0 {
		i--
	}
	if i == limit {
		return
	}
	if p.Posts = slices.Insert(p.Posts, i, post); len(p.Posts) > limit {
		p.Posts = p.Posts[:limit]
	}
}
