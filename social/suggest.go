package social

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"kith/storage"
)

// SuggestionMark is where a list of suggestions goes on: in the pool of followings
// that starts behind Pool, with candidates that rank behind (Mutual, ID). Its zero
// value is the beginning.
type SuggestionMark struct {
	Pool   storage.Position
	Mutual int // 0: at the pool's best candidate
	ID     storage.UserID
}

// Suggestion is a user whom another may want to follow.
type Suggestion struct {
	ID     storage.UserID
	Mutual int              // how many of the user's followings follow the candidate
	Via    []storage.UserID // some of them, by ascending id
}

// Suggestions is a page of suggestions, best first.
type Suggestions struct {
	Suggestions []Suggestion

	// Complete is false when the budget ended before all followings were asked; Next
	// of the last suggestion then leads to those who remain, and someone suggested
	// already may come again.
	Complete bool
	More     bool
	Next     SuggestionMark
	Pool     storage.Position // where the pool of this page starts
}

// Suggest ranks the users whom a user's followings follow by how many of them do,
// ties by smaller id, without the user and those whom it follows already. It
// returns the first behind a mark, each with up to via of the followings that
// speak for it. (Seeds: query 6 of the user relations, friends of friends.)
//
// The followings asked are the newest ones whose lists together fit the budget.
func (g *Graph) Suggest(ctx context.Context, user storage.UserID, from SuggestionMark, first, via int) (Suggestions, error) {
	s, err := g.suggest(ctx, user, from, first, via)
	if err != nil {
		return Suggestions{}, fmt.Errorf("suggest to user %s: %w", user, err)
	}
	return s, nil
}

func (g *Graph) suggest(ctx context.Context, user storage.UserID, from SuggestionMark, first, via int) (Suggestions, error) {
	p, err := g.poolOf(ctx, user, from.Pool)
	if err != nil {
		return Suggestions{}, err
	}
	lists, err := g.listsOf(ctx, p.followings)
	if err != nil {
		return Suggestions{}, err
	}
	want := first + 1
	if !p.whole {
		want = math.MaxInt // some of the best may yet drop out
	}
	ranked := rank(tally(lists), p.known, from, want)
	if !p.whole {
		if ranked, err = g.dropFollowed(ctx, user, ranked, first+1); err != nil {
			return Suggestions{}, err
		}
	}
	out := Suggestions{Complete: p.last, Pool: from.Pool, Next: from}
	out.Suggestions = ranked.take(first)
	if n := len(out.Suggestions); n > 0 {
		last := out.Suggestions[n-1]
		out.Next = SuggestionMark{from.Pool, last.Mutual, last.ID}
	}
	out.More = len(ranked) > first
	if !out.More && !p.last {
		out.More, out.Next = true, SuggestionMark{Pool: p.end}
	}
	speakers(out.Suggestions, p.followings, lists, via)
	return out, nil
}

// pool is the followings that one page asks.
type pool struct {
	followings []storage.UserID        // ascending
	known      map[storage.UserID]bool // never suggested: the user and the followings read
	whole      bool                    // known holds all followings
	last       bool                    // nobody is left to ask after this pool
	end        storage.Position        // of its oldest following
}

// poolOf takes followings, newest first, until their lists fill the budget, but at
// least one.
func (g *Graph) poolOf(ctx context.Context, user storage.UserID, after storage.Position) (pool, error) {
	query := storage.PageQuery{Owner: user, After: after, Limit: g.maxPool + 1}
	r := g.store.Pages(ctx, storage.Forward, []storage.PageQuery{query})[0]
	if r.Err != nil {
		return pool{}, r.Err
	}
	edges := r.Value
	p := pool{known: map[storage.UserID]bool{user: true}}
	p.whole = after == (storage.Position{}) && len(edges) <= g.maxPool
	p.last = len(edges) <= g.maxPool
	edges = edges[:min(g.maxPool, len(edges))]
	ids := make([]storage.UserID, len(edges))
	for i, e := range edges {
		ids[i] = e.To
		p.known[e.To] = true
	}
	fits, err := g.fitting(ctx, ids)
	if err != nil {
		return pool{}, err
	}
	if fits < len(ids) {
		p.last = false
	}
	if fits > 0 {
		p.end = storage.PositionOf(storage.Forward, edges[fits-1])
	}
	p.followings = slices.Clone(ids[:fits])
	slices.Sort(p.followings)
	return p, nil
}

// fitting returns how many of the users, from the front, have lists of followings
// that together fit the budget.
func (g *Graph) fitting(ctx context.Context, ids []storage.UserID) (int, error) {
	rows := int64(len(ids))
	for i, c := range g.store.Counts(ctx, ids) {
		if c.Err != nil {
			return 0, c.Err
		}
		if rows += c.Value.Following; rows > int64(g.budget) && i > 0 {
			return i, nil
		}
	}
	return len(ids), nil
}

func (g *Graph) listsOf(ctx context.Context, users []storage.UserID) ([][]storage.UserID, error) {
	lists := make([][]storage.UserID, len(users))
	for i, r := range g.store.Neighbours(ctx, storage.Forward, users) {
		if r.Err != nil {
			return nil, r.Err
		}
		lists[i] = r.Value
	}
	return lists, nil
}

// tally counts on how many of the lists each id is.
func tally(lists [][]storage.UserID) map[storage.UserID]int {
	rows := 0
	for _, list := range lists {
		rows += len(list)
	}
	votes := make(map[storage.UserID]int, rows/2)
	for _, list := range lists {
		for _, id := range list {
			votes[id]++
		}
	}
	return votes
}

// ranking is candidates, best first.
type ranking []Suggestion

func better(a, b Suggestion) int {
	if c := cmp.Compare(b.Mutual, a.Mutual); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// rank orders the candidates that are not known already and rank behind the mark.
// It may leave out all but the best, so many as are wanted.
func rank(votes map[storage.UserID]int, known map[storage.UserID]bool, from SuggestionMark, want int) ranking {
	r := make(ranking, 0, len(votes))
	for id, n := range votes {
		s := Suggestion{ID: id, Mutual: n}
		if known[id] || from.Mutual > 0 && better(s, Suggestion{ID: from.ID, Mutual: from.Mutual}) <= 0 {
			continue
		}
		r = append(r, s)
	}
	if len(r) > want {
		least := r.threshold(want)
		r = slices.DeleteFunc(r, func(s Suggestion) bool { return s.Mutual < least })
	}
	slices.SortFunc(r, better)
	return r
}

// threshold is a number of votes that at least so many candidates have, and as few
// more as can be: sorting the long tail of those with a single vote would cost
// more than all the rest.
func (r ranking) threshold(want int) int {
	most := 0
	for _, s := range r {
		most = max(most, s.Mutual)
	}
	with := make([]int, most+1) // how many candidates have so many votes
	for _, s := range r {
		with[s.Mutual]++
	}
	least := most
	for sum := with[least]; sum < want; sum += with[least] {
		least--
	}
	return least
}

func (r ranking) take(n int) []Suggestion { return slices.Clone(r[:min(n, len(r))]) }

// dropFollowed removes candidates whom the user follows by a following that lies
// outside the pool, until so many are left at the front.
func (g *Graph) dropFollowed(ctx context.Context, user storage.UserID, r ranking, want int) (ranking, error) {
	var kept ranking
	for len(r) > 0 && len(kept) < want {
		batch := r[:min(2*want, len(r))]
		r = r[len(batch):]
		pairs := make([]storage.Pair, len(batch))
		for i, s := range batch {
			pairs[i] = storage.Pair{From: user, To: s.ID}
		}
		for i, e := range g.store.Edges(ctx, storage.Forward, pairs) {
			if e.Err != nil {
				return nil, e.Err
			}
			if !e.Found || e.Value.Type != storage.Following {
				kept = append(kept, batch[i])
			}
		}
	}
	return kept, nil
}

// speakers fills in who of the followings, ascending, follow each suggestion.
func speakers(suggestions []Suggestion, followings []storage.UserID, lists [][]storage.UserID, via int) {
	for i := range suggestions {
		s := &suggestions[i]
		for k := 0; k < len(lists) && len(s.Via) < via; k++ {
			if _, ok := slices.BinarySearch(lists[k], s.ID); ok {
				s.Via = append(s.Via, followings[k])
			}
		}
	}
}
