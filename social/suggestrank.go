package social

import (
	"cmp"
	"context"
	"slices"

	"kith/graph/why"
	"kith/storage"
)

// ranking is candidates, best first.
type ranking []Suggestion

func better(a, b Suggestion) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
}

// take makes a page of the first of a ranking.
func (s *Suggestions) take(r ranking, q SuggestionQuery) {
	s.Suggestions, s.More = slices.Clone(r[:min(q.First, len(r))]), len(r) > q.First
	if n := len(s.Suggestions); n > 0 {
		last := s.Suggestions[n-1]
		s.Next = SuggestionMark{Pool: q.From.Pool, Score: last.Score, ID: last.ID, Popular: s.Popular}
	}
}

// candidateFilter holds back users who must not be suggested.
type candidateFilter struct {
	graph *Graph
	user  storage.UserID
	pool  pool

	followedOutside int // candidates found to be followed, by followings outside of the pool
}

// best ranks the candidates: the first want of them, or all.
func (s *candidateFilter) best(ctx context.Context, scores *scores, want int) (ranking, error) {
	// Some of the best may drop out below; then more are examined.
	for few := want; ; few *= 4 {
		top, all := scores.best(few)
		s.followedOutside = 0
		kept, err := s.keep(ctx, top, want)
		if err != nil || len(kept) >= want || all {
			return kept, err
		}
	}
}

// keep drops users of a ranking who do not want to be suggested, whom the user has asked to follow, or who turn out to be
// followed already, outside of the pool, until want users are left at the front; users behind them
// are not counted. A user who cannot be read stays: its name cannot be shown either.
func (s *candidateFilter) keep(ctx context.Context, r ranking, want int) (ranking, error) {
	var kept ranking
	for len(r) > 0 && len(kept) < want {
		batch := r[:min(max(want-len(kept), 8), len(r))]
		r = r[len(batch):]
		ids := storage.Each(batch, func(c Suggestion) storage.UserID { return c.ID })
		rows := storage.UserLookups.Read(ctx, s.graph.store, ids...)
		edges, err := s.outside(ctx, ids, rows)
		if err != nil {
			return nil, err
		}
		for i, c := range batch {
			switch {
			case len(kept) == want:
			case edges[i] == storage.Following:
				s.followedOutside++
			case s.graph.audience.notice(edges[i] == storage.Requested && rows[i].Value.Locked && s.isOwn(), why.NotSuggested, c.ID): // others do not learn of it
			case !s.graph.audience.notice(rows[i].Value.Undiscoverable, why.NotSuggested, c.ID):
				kept = append(kept, c)
			}
		}
	}
	return kept, nil
}

// isOwn reports whether the user asks for itself, and so may learn from the answer whom it has asked to follow.
func (s *candidateFilter) isOwn() bool {
	return s.user != 0 && s.graph.viewer() == s.user
}

// outside reads the edges from the user to candidates, as far as the pool does not tell: whether it follows them, or has asked to.
func (s *candidateFilter) outside(ctx context.Context, ids []storage.UserID, rows []storage.Result[storage.User]) ([]storage.EdgeType, error) {
	edges := make([]storage.EdgeType, len(ids))
	var pairs []storage.Pair
	var at []int
	for i, id := range ids {
		if !s.pool.whole || rows[i].Value.Locked && s.isOwn() {
			pairs, at = append(pairs, storage.Pair{From: s.user, To: id}), append(at, i)
		}
	}
	for k, e := range storage.EdgeLookups[storage.Forward].Read(ctx, s.graph.store, pairs...) {
		if e.Err != nil {
			return nil, e.Err
		}
		edges[at[k]] = e.Value.Type
	}
	return edges, nil
}
