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
	// Weights is what each set adds to the counts of its users, at least 1; nil: 1. The counts of a
	// user add up to less than 2³¹, boosted ones too.
	Weights []int32
	// Boosted are users whose counts are multiplied by Boost; nil: nobody. It is asked about the
	// best only.
	Boosted *Set
	Boost   int

	// Except are users to leave out, in any order.
	Except [][]storage.UserID
	// Excluded is told who is left out for which of Except; nil: nobody is.
	Excluded func(of int, id storage.UserID)
	// Hides reports more users to leave out, who are not counted; nil: nobody. It is asked about
	// the best only.
	Hides func(storage.UserID) bool
	// Behind is where to begin: only users who rank after its count and id are wanted. Zero begins
	// with the best.
	Behind Candidate
	// Most is how many are wanted.
	Most int
}

// Best returns the best, best first: by count, ties by ascending id. It is faster than sorting all.
// excluded has for each of Except how many of its users have counts and are in none of those before
// it.
func (p TopK) Best() (best []Candidate, excluded []int) {
	excluded = make([]int, len(p.Except))
	top := topList{most: p.Most, behind: p.Behind, hides: p.Hides}
	dir := p.Directory
	if dir == nil {
		dir = directoryOf(p.Sets)
	}
	if dir != nil {
		p.countNumbered(dir, &top, excluded)
	} else {
		p.countPlain(&top, excluded)
	}
	return top.best, excluded
}

func (p TopK) countNumbered(dir *Directory, top *topList, excluded []int) {
	iterators := p.iterators(dir)
	except := make([][]ordinal, len(p.Except)) // of those to come
	for i, ids := range p.Except {
		except[i] = dir.known(ids) // by now all users of the sets have numbers
	}
	boosted := p.Boosted
	if boosted != nil {
		boosted = boosted.In(dir)
	}
	countPages(dir, iterators, func(b *pageCounts, page uint32) {
		users := b.view.pages[page].ids
		for i, rest := range except {
			rest = rest[gallop(rest, 0, ordinal(page<<pageBits)):]
			for ; len(rest) > 0 && rest[0].page() == page; rest = rest[1:] {
				if slot := rest[0].slot(); b.counts[slot] > 0 {
					b.counts[slot] = 0
					p.exclude(i, users[slot], excluded)
				}
			}
			except[i] = rest
		}
		for _, slot := range b.touched {
			// Most users are skipped before they are looked at themselves.
			n := int(b.counts[slot])
			if boosted != nil && n > 0 && n*p.Boost >= top.least && boosted.has(ordinal(page<<pageBits)|ordinal(slot)) {
				n *= p.Boost
			}
			if n > 0 && n >= top.least {
				top.enter(Candidate{users[slot], n})
			}
		}
	})
}

// Expanded returns all of the sets, also those in compact form. O(their lengths).
func (p TopK) Expanded() []*Set {
	all := slices.Clone(p.Sets)
	for i, s := range all {
		if s == nil {
			all[i] = p.Compact[i].Set(p.Directory)
		}
	}
	return all
}

func (p TopK) weight(i int) int32 {
	if p.Weights == nil {
		return 1
	}
	return p.Weights[i]
}

// iterators begin at the first users of the sets.
func (p TopK) iterators(dir *Directory) []iterator {
	iterators := make([]iterator, len(p.Sets))
	for i, s := range p.Sets {
		r := &iterators[i]
		r.weight = p.weight(i)
		if s != nil {
			s = s.In(dir)
			r.few, r.chunks = s.few, s.chunks
		} else {
			r.compact = p.Compact[i].reader()
		}
	}
	return iterators
}

// exclude counts a user whose counts have been removed.
func (p TopK) exclude(of int, id storage.UserID, excluded []int) {
	if excluded[of]++; p.Excluded != nil {
		p.Excluded(of, id)
	}
}

// topList is the best so far, best first.
type topList struct {
	most   int
	behind Candidate
	hides  func(storage.UserID) bool
	best   []Candidate
	least  int // the lowest count that gets onto it
}

func (p *topList) enter(v Candidate) {
	at, _ := slices.BinarySearchFunc(p.best, v, better)
	switch {
	case at >= p.most, p.behind.Count > 0 && better(v, p.behind) <= 0, p.hides != nil && p.hides(v.ID):
		return
	case len(p.best) == p.most:
		p.best = p.best[:p.most-1]
	}
	if p.best = slices.Insert(p.best, at, v); len(p.best) == p.most {
		p.least = p.best[p.most-1].Count
	}
}
