package recent

import (
	"math"
	"slices"

	"kith/storage"
	"kith/storage/cache/idset"
)

// Query asks for recent posts of some authors, newest first.
type Query struct {
	Authors *idset.Set                       // nil: all
	Hides   func(author storage.UserID) bool // whose posts are left out; nil: nobody's
	After   storage.Place                    // only posts strictly behind it (older), unless zero
	Since   storage.Micros                   // only posts that are newer
	Limit   int                              // how many at most, ≥ 1
}

// Has reports whether posts of an author are asked for.
func (q *Query) Has(author storage.UserID) bool {
	return (q.Authors == nil || q.Authors.Contains(author)) && (q.Hides == nil || !q.Hides(author))
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
	// After each sample of entries, the share of them that is by the authors predicts how many
	// entries a page takes.
	sample = 64
	// Finding out whether the author of an entry is wanted takes as long as finding the newest posts of
	// so many authors (BenchmarkPage).
	mergeEach = 4
	// mergeTo is the number of authors up to which a merge takes hardly longer than a sample.
	mergeTo = 500

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
	if n := q.Authors.Len(); n > mergeTo {
		if page := p.scan(&q, scanMost, n/mergeEach); !page.Ended {
			return page
		}
	}
	if page, near := p.merge(&q); near {
		return page
	}
	return p.scan(&q, scanMost, math.MaxInt)
}

// Between lists the posts that are newer than a time and not newer than another, newest first. It returns false if
// some of them are no longer here. O(posts that are newer than since).
func (p *Posts) Between(since, upTo storage.Micros) (list []storage.PostAt, all bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	q := &Query{After: storage.Place{CreatedAt: upTo + 1}, Since: since, Limit: math.MaxInt32}
	return p.scan(q, math.MaxInt, math.MaxInt).Posts, since >= p.floor
}

// merge merges the chains of those authors who have the newest posts, as many as posts are wanted.
// near is false if it gave up because the place is too far back in a chain.
func (p *Posts) merge(q *Query) (page Page, near bool) {
	var chains heads
	floor := max(p.floor, q.Since)
	for _, id := range q.Authors.IDs() {
		author, known := p.authors.find(id)
		if !known {
			continue
		}
		at := p.authors.heads[author]
		if !p.log.has(at) || !chains.room(p.log.upTo(at), q.Limit) {
			continue
		}
		for passed := 0; p.log.has(at) && !behind(p.log.time(at), q.After, func() int64 { return p.number(at) }); passed++ {
			if passed == farBack {
				return Page{}, false
			}
			at = p.log.next(at)
		}
		if p.log.has(at) && p.log.time(at) > floor && chains.room(p.log.time(at), q.Limit) && (q.Hides == nil || !q.Hides(id)) {
			chains.offer(head{p.place(at), at}, q.Limit)
		}
	}
	page.Through = floor
	for len(chains) > 0 && len(page.Posts) < q.Limit {
		at := chains[0].at
		chains = chains[1:]
		page.Posts = append(page.Posts, p.post(at))
		if next := p.log.next(at); p.log.has(next) && p.log.time(next) > floor {
			chains.offer(head{p.place(next), next}, q.Limit-len(page.Posts))
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

// heads are the newest of some heads, newest first.
type heads []head

// room reports whether a head that is no newer than t may be among the newest, which are at most so many.
func (h heads) room(t storage.Micros, most int) bool {
	return len(h) < most || t >= h[most-1].CreatedAt
}

// offer adds a head to the newest.
func (h *heads) offer(one head, most int) {
	at, _ := slices.BinarySearchFunc(*h, one.Place, func(other head, place storage.Place) int { return other.Compare(place) })
	if at == most {
		return
	}
	if len(*h) == most {
		*h = (*h)[:most-1]
	}
	*h = slices.Insert(*h, at, one)
}

// scan goes back through the log, over so many entries at most. It gives up early if a sample of the
// entries predicts that it would look up more authors than is worthwhile.
func (p *Posts) scan(q *Query, most, worth int) (page Page) {
	floor := max(p.floor, q.Since)
	page.Through = floor
	asked, found := 0, 0
	for n, c := range slices.Backward(p.log.chunks) {
		if q.After != (storage.Place{}) && c.oldest > q.After.CreatedAt {
			continue
		}
		for i := len(c.times) - 1; i >= 0; i-- {
			t := c.time(i)
			upTo := t + c.behind // no entry from here on back is newer
			if upTo <= floor || len(page.Posts) == q.Limit && page.Posts[q.Limit-1].CreatedAt > upTo {
				return page
			}
			if most--; most < 0 || asked >= sample && asked%sample == 0 && q.Limit*asked/max(1, found) > worth {
				page.Through, page.Ended = upTo, true
				page.Posts = slices.DeleteFunc(page.Posts, func(one storage.PostAt) bool { return one.CreatedAt <= upTo })
				return page
			}
			at := p.log.first + position(n)<<chunkBits + position(i)
			if c.authors[i] == nobody || t <= floor || !behind(t, q.After, func() int64 { return p.number(at) }) {
				continue
			}
			asked++
			if q.Has(p.authors.ids[c.authors[i]]) {
				found++
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
