package social

import (
	"context"
	"slices"

	"kith/storage"
	"kith/storage/idset"
)

// packedVotes are votes that were counted of lists in memory. The pool is the same as that
// of rows, whatever is in memory, so that marks lead to the same place in either.
type packedVotes struct {
	sieve *sieve
	poll  idset.Poll // of the pool's speakers, without those who are out
	asked int        // for how many the poll was held
	top   ranking
	all   bool // there are no more than those in top
	out   Exclusions
}

// packedVotesOf counts votes; nil where no speaker's list is in memory. Lists that are
// not are made sets of for the occasion.
func (g *Graph) packedVotesOf(ctx context.Context, q SuggestionQuery, p pool, s *sieve) (*packedVotes, error) {
	sets, err := g.speakersSets(ctx, p.speakers)
	if sets == nil || err != nil {
		return nil, err
	}
	poll := idset.Poll{Sets: sets, Behind: idset.Vote{ID: q.From.ID, Score: q.From.Score}}
	if q.Order != ByMutualCount {
		poll.Weights = p.weights(q.Order)
	}
	dir := sets[0].Directory() // everybody in the sets has a number by now
	poll.Except = []*idset.Set{
		dir.Known([]storage.UserID{q.User}), dir.Known(p.followings),
		dir.Known(g.audience.blocked()), dir.Known(q.Dismissed),
	}
	poll.Except = append(poll.Except, g.audience.hiddenIn(dir)...)
	v := &packedVotes{sieve: s, poll: poll}
	v.hold(q.First + 1)
	return v, nil
}

// speakersSets are whom each of some users follows, all by the same numbers; nil where none
// of them is in memory.
func (g *Graph) speakersSets(ctx context.Context, speakers []storage.UserID) ([]*idset.Set, error) {
	if g.packed == nil || len(speakers) == 0 {
		return nil, nil
	}
	sets := make([]*idset.Set, len(speakers))
	var dir *idset.Directory
	var rows []storage.UserID
	for i, r := range g.packed.Neighbourhoods(ctx, storage.Forward, speakers) {
		switch {
		case !r.Found:
			rows = append(rows, speakers[i])
		case dir == nil:
			sets[i], dir = r.Value.Peers, r.Value.Peers.Directory()
		default:
			sets[i] = r.Value.Peers.In(dir)
		}
	}
	if dir == nil {
		return nil, nil
	}
	lists, err := g.listsOf(ctx, rows)
	if err != nil {
		return nil, err
	}
	for i := range sets {
		if sets[i] == nil {
			sets[i], lists = idset.Build(dir, lists[0]), lists[1:]
		}
	}
	return sets, nil
}

// hold holds the poll for so many.
func (v *packedVotes) hold(n int) {
	v.poll.Most, v.asked = n, n
	best, struck := v.poll.Best()
	v.out = Exclusions{Followed: struck[1], Blocked: struck[2], Dismissed: struck[3]}
	v.top = make(ranking, 0, len(best))
	for _, b := range best {
		if !v.sieve.graph.audience.Hides(b.ID) { // of whom nothing is left is in no set
			v.top = append(v.top, Suggestion{ID: b.ID, Mutual: b.Votes, Score: b.Score})
		}
	}
	v.all = len(best) < n
}

func (v *packedVotes) excluded() Exclusions { return v.out }

func (v *packedVotes) best(n int) (top ranking, all bool) {
	if n != v.asked {
		v.hold(n)
	}
	return v.top, v.all
}

func (v *packedVotes) via(suggestions []Suggestion, via int) {
	ids := make([]storage.UserID, len(suggestions))
	for i, s := range suggestions {
		ids[i] = s.ID
	}
	all := make([]storage.UserID, 0, len(ids)*via)
	for i, holders := range idset.Holders(v.poll.Sets, ids, via) {
		start := len(all)
		for _, k := range holders {
			all = append(all, v.sieve.pool.speakers[k])
		}
		if len(holders) > 0 {
			suggestions[i].Via = all[start:len(all):len(all)]
		}
	}
}

// blocked are those in a block with the viewer.
func (a *Audience) blocked() []storage.UserID {
	if a == nil {
		return nil
	}
	if _, found := slices.BinarySearch(a.blocks, a.Viewer); !found {
		return a.blocks
	}
	return slices.DeleteFunc(slices.Clone(a.blocks), func(id storage.UserID) bool { return id == a.Viewer })
}
