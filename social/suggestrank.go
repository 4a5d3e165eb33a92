package social

import (
	"cmp"
	"context"
	"slices"

	"kith/storage"
)

// ranking is candidates, best first.
type ranking []Suggestion

func better(a, b Suggestion) int {
	if c := cmp.Compare(b.Score, a.Score); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

func (r ranking) take(n int) []Suggestion { return slices.Clone(r[:min(n, len(r))]) }

// sieve keeps back who is not to be suggested.
type sieve struct {
	graph     *Graph
	user      storage.UserID
	pool      pool
	dismissed []storage.UserID

	followings map[storage.UserID]bool // of the pool, made where votes are counted of rows

	followedOutside int // candidates found to be followed, by followings outside of the pool
}

func (g *Graph) sieveOf(q SuggestionQuery, p pool) *sieve {
	return &sieve{graph: g, user: q.User, pool: p, dismissed: q.Dismissed}
}

func (s *sieve) isDismissed(id storage.UserID) bool {
	_, found := slices.BinarySearch(s.dismissed, id)
	return found
}

// followed are the pool's followings.
func (s *sieve) followed() map[storage.UserID]bool {
	if s.followings == nil {
		s.followings = make(map[storage.UserID]bool, len(s.pool.followings))
		for _, id := range s.pool.followings {
			s.followings[id] = true
		}
	}
	return s.followings
}

// keepsBack tells who is out without a look into the store.
func (s *sieve) keepsBack(id storage.UserID) bool {
	return id == s.user || s.followed()[id] || s.graph.audience.Hides(id) || s.isDismissed(id)
}

// excluded counts candidates whom keepsBack keeps back.
func (s *sieve) excluded(votes map[storage.UserID]vote) Exclusions {
	var e Exclusions
	followings := s.followed()
	for id := range followings {
		if _, ok := votes[id]; ok && id != s.user {
			e.Followed++
		}
	}
	// The few who are in a block or dismissed are looked up among the many candidates.
	counted := func(id storage.UserID) bool {
		_, ok := votes[id]
		return ok && id != s.user && !followings[id]
	}
	if a := s.graph.audience; a != nil {
		for _, id := range a.blocks {
			if a.InBlock(id) && counted(id) {
				e.Blocked++
			}
		}
	}
	for _, id := range s.dismissed {
		if counted(id) && !s.graph.audience.InBlock(id) {
			e.Dismissed++
		}
	}
	return e
}

// candidates are those behind a mark who are not kept back, in no order.
func (s *sieve) candidates(votes map[storage.UserID]vote, from SuggestionMark) ranking {
	behind := Suggestion{ID: from.ID, Score: from.Score}
	all := make(ranking, 0, len(votes))
	for id, v := range votes {
		c := Suggestion{ID: id, Mutual: int(v.mutual), Score: v.score}
		if s.keepsBack(id) || from.Score > 0 && better(c, behind) <= 0 {
			continue
		}
		all = append(all, c)
	}
	return all
}

// best ranks the candidates, the first so many that are wanted, or all.
func (s *sieve) best(ctx context.Context, votes votes, want int) (ranking, error) {
	// Some of the best may drop out after all; then more are looked at.
	for few := want; ; few *= 4 {
		top, all := votes.best(few)
		s.followedOutside = 0
		kept, err := s.keep(ctx, top, want)
		if err != nil || len(kept) >= want || all {
			return kept, err
		}
	}
}

// top is the best of a ranking in no order, at least so many of them, in order.
func (r ranking) top(want int) ranking {
	top := r
	if len(r) > want {
		least := r.threshold(want)
		top = make(ranking, 0, 2*want)
		for _, s := range r {
			if s.Score >= least {
				top = append(top, s)
			}
		}
	}
	slices.SortFunc(top, better)
	return top
}

// threshold is a score that at least so many candidates have, and not many more:
// sorting the long tail of those with a single vote would cost more than all the
// rest.
func (r ranking) threshold(want int) int64 {
	least, most := r[0].Score, r[0].Score
	for _, s := range r {
		least, most = min(least, s.Score), max(most, s.Score)
	}
	const places = 1024
	width := (most-least)/places + 1
	var with [places]int // how many candidates have a score of each place
	for _, s := range r {
		with[(s.Score-least)/width]++
	}
	place := places - 1
	for sum := with[place]; sum < want; sum += with[place] {
		place--
	}
	return least + int64(place)*width
}

// keep drops those of a ranking who turn out not to want to be suggested, or to be
// followed by a following outside of the pool, until so many are left at the front; of
// what comes behind those nothing is counted. Whoever cannot be read stays: who it is
// cannot be shown either.
func (s *sieve) keep(ctx context.Context, r ranking, want int) (ranking, error) {
	var kept ranking
	for len(r) > 0 && len(kept) < want {
		batch := r[:min(max(want-len(kept), 8), len(r))]
		r = r[len(batch):]
		ids := make([]storage.UserID, len(batch))
		for i, c := range batch {
			ids[i] = c.ID
		}
		rows := s.graph.store.Users(ctx, ids)
		followed, err := s.outside(ctx, ids)
		if err != nil {
			return nil, err
		}
		for i, c := range batch {
			switch {
			case len(kept) == want:
			case followed != nil && followed[i]:
				s.followedOutside++
			case !rows[i].Value.Undiscoverable:
				kept = append(kept, c)
			}
		}
	}
	return kept, nil
}

// outside tells whom of the candidates the user follows; nil where the pool knows.
func (s *sieve) outside(ctx context.Context, ids []storage.UserID) ([]bool, error) {
	if s.pool.whole {
		return nil, nil
	}
	pairs := make([]storage.Pair, len(ids))
	for i, id := range ids {
		pairs[i] = storage.Pair{From: s.user, To: id}
	}
	followed := make([]bool, len(ids))
	for i, e := range s.graph.store.Edges(ctx, storage.Forward, pairs) {
		if e.Err != nil {
			return nil, e.Err
		}
		followed[i] = e.Value.Type == storage.Following
	}
	return followed, nil
}
