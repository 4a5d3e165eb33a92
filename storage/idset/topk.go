package idset

import (
	"slices"

	"kith/storage"
)

// TopK finds the users who are in most of some sets: suggestions of whom to follow, from the lists
// of one's followings.
type TopK struct {
	Sets []*Set
	// Compact are more sets, in compact form, and Directory is theirs: Compact[i] is counted where
	// Sets[i] is nil. nil: there are none.
	Compact   []Compact
	Directory *Directory

	Weights []int64 // the weight of each set, positive; nil stands for 1 each

	// Except are users to leave out, in any order.
	Except [][]storage.UserID
	// Hides reports more users to leave out, who are not counted; nil: nobody. It is asked about
	// the best only.
	Hides func(storage.UserID) bool
	// Behind is where to begin: only users who rank after its score and id are wanted. Zero begins
	// with the best.
	Behind Candidate
	// Most is how many are wanted.
	Most int
}

// Best returns the best, best first: by score, ties by ascending id. It is faster than sorting all.
// excluded has for each of Except how many of its users have counts and are in none of those before
// it.
func (p TopK) Best() (best []Candidate, excluded []int) {
	excluded = make([]int, len(p.Except))
	top := topHeap{most: p.Most, behind: p.Behind, hides: p.Hides}
	dir := p.Directory
	if dir == nil {
		dir = directoryOf(p.Sets)
	}
	if dir != nil {
		p.countNumbered(dir, &top, excluded)
	} else {
		p.countPlain(&top, excluded)
	}
	slices.SortFunc(top.counts, better)
	return top.counts, excluded
}

func (p TopK) countNumbered(dir *Directory, top *topHeap, excluded []int) {
	iterators := p.iterators(dir)
	except := make([]iterator, len(p.Except))
	for i, ids := range p.Except {
		e := dir.Known(ids) // by now all users of the sets have numbers
		except[i] = iterator{few: e.few, chunks: e.chunks}
	}
	countPages(dir, iterators, p.Weights != nil, func(b *pageCounts, page uint32) {
		for i := range except {
			excluded[i] += except[i].exclude(page, b)
		}
		users := b.view.pages[page].ids
		for _, slot := range b.touched {
			// Most users are skipped before they are looked at themselves.
			if score := b.score(slot); b.counts[slot] > 0 && score >= top.least {
				top.enter(Candidate{users[slot], int(b.counts[slot]), score})
			}
		}
	})
}

// Expanded returns all of the sets, those in compact form as [Expand] does. O(their lengths).
func (p TopK) Expanded() []*Set {
	if p.Directory == nil {
		return p.Sets
	}
	var lists []Compact
	for i, s := range p.Sets {
		if s == nil {
			lists = append(lists, p.Compact[i])
		}
	}
	expanded, all := Expand(p.Directory, lists), slices.Clone(p.Sets)
	for i, s := range all {
		if s == nil {
			all[i], expanded = expanded[0], expanded[1:]
		}
	}
	return all
}

// iterators begin at the first users of the sets.
func (p TopK) iterators(dir *Directory) []iterator {
	iterators := make([]iterator, len(p.Sets))
	for i, s := range p.Sets {
		r := &iterators[i]
		if s != nil {
			s = s.In(dir)
			r.few, r.chunks = s.few, s.chunks
		} else {
			r.compact = p.Compact[i].reader()
		}
		r.weight = 1
		if p.Weights != nil {
			r.weight = p.Weights[i]
		}
	}
	return iterators
}

// exclude removes the counts of those users of a page who are in the set, and returns how many had
// some. Pages come in ascending order.
func (r *iterator) exclude(page uint32, b *pageCounts) (excluded int) {
	if len(r.few) > 0 {
		r.few = r.few[gallop(r.few, 0, ordinal(page<<pageBits)):]
		for ; len(r.few) > 0 && r.few[0].page() == page; r.few = r.few[1:] {
			excluded += b.exclude(r.few[0].slot())
		}
		return excluded
	}
	for len(r.chunks) > 0 && r.chunks[0].page < page {
		r.chunks = r.chunks[1:]
	}
	if len(r.chunks) == 0 || r.chunks[0].page != page {
		return 0
	}
	c := r.chunks[0]
	if int(c.n) > 2*len(b.touched) {
		for _, slot := range b.touched {
			if c.contains(slot) {
				excluded += b.exclude(slot)
			}
		}
		return excluded
	}
	r.slots = c.appendSlots(r.slots[:0], 0)
	for _, slot := range r.slots {
		excluded += b.exclude(slot)
	}
	return excluded
}

// exclude removes a user's counts, and returns 1 if there were any.
func (b *pageCounts) exclude(slot uint16) int {
	if b.counts[slot] == 0 {
		return 0
	}
	b.counts[slot], b.scores[slot] = 0, 0
	return 1
}

// topHeap is a heap of the best so far, with the worst of them on top.
type topHeap struct {
	most   int
	behind Candidate
	hides  func(storage.UserID) bool
	counts []Candidate
	least  int64 // the lowest score that gets onto it
}

func (p *topHeap) enter(v Candidate) {
	full := len(p.counts) == p.most
	switch {
	case p.most <= 0, full && better(v, p.counts[0]) > 0, p.behind.Score > 0 && better(v, p.behind) <= 0:
		return
	case p.hides != nil && p.hides(v.ID):
		return
	case full:
		p.counts[0] = v
		p.sink()
	default:
		p.counts = append(p.counts, v)
		p.rise(len(p.counts) - 1)
	}
	if len(p.counts) == p.most {
		p.least = p.counts[0].Score
	}
}

func (p *topHeap) rise(i int) {
	for i > 0 {
		above := (i - 1) / 2
		if better(p.counts[i], p.counts[above]) <= 0 {
			return
		}
		p.counts[i], p.counts[above] = p.counts[above], p.counts[i]
		i = above
	}
}

func (p *topHeap) sink() {
	for i := 0; ; {
		worst := i
		for below := 2*i + 1; below <= 2*i+2 && below < len(p.counts); below++ {
			if better(p.counts[below], p.counts[worst]) > 0 {
				worst = below
			}
		}
		if worst == i {
			return
		}
		p.counts[i], p.counts[worst] = p.counts[worst], p.counts[i]
		i = worst
	}
}
