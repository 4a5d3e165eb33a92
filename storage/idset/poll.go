package idset

import (
	"slices"

	"kith/storage"
)

// Poll asks who is in most of some sets: for whom to follow, out of
// the lists of those whom one follows.
type Poll struct {
	Sets    []*Set
	Weights []int64 // what each set's word counts, positive; nil stands for 1 each

	// Except are users who are left out, in any order.
	Except [][]storage.UserID
	// Hides leaves out more users, who are not counted; nil: nobody. It is asked of the best only.
	Hides func(storage.UserID) bool
	// Behind is where to begin: only those are wanted who rank behind its score and id.
	// Zero begins with the best.
	Behind Vote
	// Most is how many are wanted.
	Most int
}

// Best returns the best, best first: by score, ties by ascending id. It is faster than
// sorting all. struck tells for each of Except how many of its users have votes and are
// in none of those before it.
func (p Poll) Best() (best []Vote, struck []int) {
	struck = make([]int, len(p.Except))
	top := podium{most: p.Most, behind: p.Behind, hides: p.Hides}
	if dir := directoryOf(p.Sets); dir != nil {
		p.countNumbered(dir, &top, struck)
	} else {
		p.countPlain(&top, struck)
	}
	slices.SortFunc(top.votes, better)
	return top.votes, struck
}

func (p Poll) countNumbered(dir *Directory, top *podium, struck []int) {
	sets := numbered(p.Sets, dir)
	except := make([]reader, len(p.Except))
	for i, ids := range p.Except {
		e := dir.Known(ids) // everybody in the sets has a number by now
		except[i] = reader{few: e.few, chunks: e.chunks}
	}
	tally(sets, p.Weights, func(b *booth, page uint32) {
		for i := range except {
			struck[i] += except[i].strike(page, b)
		}
		users := b.view.pages[page].ids
		for _, slot := range b.touched {
			// Most are passed over before the user itself is looked at.
			if score := b.score(slot); b.votes[slot] > 0 && score >= top.least {
				top.enter(Vote{users[slot], int(b.votes[slot]), score})
			}
		}
	})
}

// strike takes the votes of a page's users away from those who are in the set, and tells
// how many had some. Pages come in ascending order.
func (r *reader) strike(page uint32, b *booth) (struck int) {
	if len(r.few) > 0 {
		r.few = r.few[gallop(r.few, 0, ordinal(page<<pageBits)):]
		for ; len(r.few) > 0 && r.few[0].page() == page; r.few = r.few[1:] {
			struck += b.strike(r.few[0].slot())
		}
		return struck
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
				struck += b.strike(slot)
			}
		}
		return struck
	}
	r.slots = c.appendSlots(r.slots[:0], 0)
	for _, slot := range r.slots {
		struck += b.strike(slot)
	}
	return struck
}

// strike takes a user's votes away: 1 if there were any.
func (b *booth) strike(slot uint16) int {
	if b.votes[slot] == 0 {
		return 0
	}
	b.votes[slot], b.scores[slot] = 0, 0
	return 1
}

// podium is a heap of the best so far, the worst of them on top.
type podium struct {
	most   int
	behind Vote
	hides  func(storage.UserID) bool
	votes  []Vote
	least  int64 // the score that it takes to come onto it
}

func (p *podium) enter(v Vote) {
	full := len(p.votes) == p.most
	switch {
	case p.most <= 0, full && better(v, p.votes[0]) > 0, p.behind.Score > 0 && better(v, p.behind) <= 0:
		return
	case p.hides != nil && p.hides(v.ID):
		return
	case full:
		p.votes[0] = v
		p.sink()
	default:
		p.votes = append(p.votes, v)
		p.rise(len(p.votes) - 1)
	}
	if len(p.votes) == p.most {
		p.least = p.votes[0].Score
	}
}

func (p *podium) rise(i int) {
	for i > 0 {
		above := (i - 1) / 2
		if better(p.votes[i], p.votes[above]) <= 0 {
			return
		}
		p.votes[i], p.votes[above] = p.votes[above], p.votes[i]
		i = above
	}
}

func (p *podium) sink() {
	for i := 0; ; {
		worst := i
		for below := 2*i + 1; below <= 2*i+2 && below < len(p.votes); below++ {
			if better(p.votes[below], p.votes[worst]) > 0 {
				worst = below
			}
		}
		if worst == i {
			return
		}
		p.votes[i], p.votes[worst] = p.votes[worst], p.votes[i]
		i = worst
	}
}
