package social

import (
	"context"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/cache/idset"
)

// The best order is a walk of three steps over a shared audience: user → following ← audience → candidate. The audience are those
// who follow the same users, most alike first; they vote for whom they follow, and so do the followings themselves. Candidates who
// follow the user count three times. A shared audience and a follow in return were the strongest signals among those that Brzozowski and Romero
// compared (Who should I follow?, ICWSM 2011). `kith bench quality` measures what the walk finds.
//
// The walk sees visible edges only. An edge from the audience to a following is on two lists, and it is used
// only if the audience's own list is open, the one that the vote is read from. Whoever is hidden has no part. What bounds the walk, the numbers of followers and
// followings, is public.

const (
	// walkUsers is how many users of the audience vote: with fewer, recall is lower, with more it does not rise.
	walkUsers = 100
	// walkExamined is how many of the audience are looked at until there are so many whose lists are open.
	walkExamined = 2000
	// walkFans is the longest list of followers that is walked to: a longer one says little of who is alike.
	walkFans = 1000
	// boostFans is the longest list of the user's own followers that is read to find those among the candidates.
	boostFans = 20_000
	// followBoost is how many times those count.
	followBoost = 3

	// ScoreUnit is the sum of all votes of an audience; those of the followings are a fifth of it. So a score is less than 4 units.
	ScoreUnit      = 1_000_000
	followingsVote = ScoreUnit / 5

	// activeAmong is how many of the best of a pool are ordered by whether they are active, and activeScore what that adds.
	activeAmong = 50
	activeScore = 10 * ScoreUnit
)

// addFans finds out how many followers each user has, as far as they are walked to.
func (g *Graph) addFans(ctx context.Context, users []recommender) error {
	ids := storage.Each(users, func(u recommender) storage.UserID { return u.id })
	for i, r := range storage.CountLookups.Read(ctx, g.store, ids...) {
		if r.Err != nil {
			return r.Err
		}
		if n := r.Value.Follower; n <= walkFans {
			users[i].fans = n
		}
	}
	return nil
}

// walk adds the audience to the recommenders, weighs all of them, and finds the candidates who follow the user.
func (g *Graph) walk(ctx context.Context, q SuggestionQuery, p pool, v *scores) error {
	fans, err := g.listsOf(ctx, storage.Inverse, storage.Each(p.walked, func(u recommender) storage.UserID { return u.id }))
	if err != nil {
		return err
	}
	like := idset.TopK{Sets: fans, Except: [][]storage.UserID{{q.User}}}
	for _, u := range p.walked {
		like.Weights = append(like.Weights, int32(1<<16/math.Sqrt(float64(u.fans))))
	}
	if g.audience.hidesAny() {
		like.Hides = g.audience.Hides
	}
	audience, alike, _, err := g.openAmong(ctx, int(g.budget)/4, func(n int) []idset.Candidate {
		like.Most = n
		best, _ := like.Best()
		return best
	})
	if err != nil {
		return err
	}
	v.recommenders = slices.Concat(v.recommenders, audience)
	for range v.followings {
		v.topK.Weights = append(v.topK.Weights, max(1, int32(followingsVote/v.followings)))
	}
	v.topK.Weights = append(v.topK.Weights, votes(audience, alike)...)
	v.topK.Boost = followBoost
	v.topK.Boosted, err = g.fansOf(ctx, q)
	return err
}

// openAmong returns the first [walkUsers] of ranked users whose followings are open and have at most so many rows together, with their counts.
// ranked is the first n of them. all reports that nobody with an open list is missing.
func (g *Graph) openAmong(ctx context.Context, most int, ranked func(n int) []idset.Candidate) (audience []recommender, alike []int, all bool, err error) {
	rows := int64(0)
	for seen, more := 0, walkUsers*5/4; more <= walkExamined; more *= 4 { // few have closed lists
		first := ranked(more)
		counts := make(map[storage.UserID]int, len(first)-seen)
		for _, c := range first[seen:] {
			counts[c.ID] = c.Count
		}
		users, err := g.recommenders(ctx, storage.Each(first[seen:], func(c idset.Candidate) storage.UserID { return c.ID }))
		if err == nil {
			users, err = g.opened(ctx, users, false)
		}
		if err != nil {
			return nil, nil, false, err
		}
		for _, u := range users {
			if rows += u.degree; len(audience) == walkUsers || rows > int64(most) {
				return audience, alike, false, nil
			}
			audience, alike = append(audience, u), append(alike, counts[u.id])
		}
		if seen = len(first); seen < more {
			return audience, alike, true, nil
		}
	}
	return audience, alike, false, nil
}

// votes are the weights of an audience: the square of how much each is alike, for a following as for a whole list, and less
// for those who follow many. Each operation is exact to the last bit, so that they are the same everywhere.
func votes(audience []recommender, alike []int) []int32 {
	weights, sum := make([]float64, len(audience)), 0.0
	for i, u := range audience {
		n := float64(max(u.degree, 1))
		weights[i] = float64(alike[i]) * float64(alike[i]) / float64(n*math.Sqrt(n))
		sum += weights[i]
	}
	return storage.Each(weights, func(w float64) int32 { return max(1, int32(ScoreUnit*w/sum)) })
}

// fansOf is the list of the user's followers, if it is open and not longer than [boostFans]; nil otherwise.
func (g *Graph) fansOf(ctx context.Context, q SuggestionQuery) (*idset.Set, error) {
	if !q.OpenFollowers {
		return nil, nil
	}
	count := storage.CountLookups.Read(ctx, g.store, q.User)[0]
	if n := count.Value.Follower; count.Err != nil || n > min(boostFans, int64(g.budget)) {
		return nil, count.Err
	}
	lists, err := g.listsOf(ctx, storage.Inverse, []storage.UserID{q.User})
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}

// listsOf reads lists of one side whole: those that are kept as sets, and the others from their rows.
func (g *Graph) listsOf(ctx context.Context, side storage.Side, owners []storage.UserID) ([]*idset.Set, error) {
	lists, parts := make([]neededList, len(owners)), make([]*neededList, len(owners))
	for i, id := range owners {
		lists[i].List = List{side, id}
		parts[i] = &lists[i]
	}
	g.recall(ctx, parts)
	g.read(ctx, parts)
	sets := make([]*idset.Set, len(owners))
	for i, p := range parts {
		if p.err != nil {
			return nil, p.err
		}
		sets[i] = p.set
	}
	return sets, nil
}

// activeFirst ranks candidates as best does, but of the pool's best [activeAmong] those who are active come first.
func (s *candidateFilter) activeFirst(q SuggestionQuery) func(context.Context, *scores, int) (ranking, error) {
	return func(ctx context.Context, v *scores, want int) (ranking, error) {
		mark := Suggestion{ID: q.From.ID, Score: q.From.Score}
		v.topK.Behind = idset.Candidate{}
		window, all := v.best(activeAmong)
		if len(window) == 0 {
			return nil, nil
		}
		last := window[len(window)-1]
		if q.Active != nil {
			for i, active := range q.Active(ctx, storage.Each(window, func(c Suggestion) storage.UserID { return c.ID })) {
				if active {
					window[i].Score += activeScore
				}
			}
			slices.SortFunc(window, better)
		}
		if mark.ID != 0 {
			window = slices.DeleteFunc(window, func(c Suggestion) bool { return better(c, mark) <= 0 })
		}
		kept, err := s.keep(ctx, window, want)
		if err != nil || all || len(kept) == want {
			return kept, err
		}
		if mark.ID != 0 && better(mark, last) > 0 {
			last = mark
		}
		v.topK.Behind = idset.Candidate{ID: last.ID, Count: int(last.Score)}
		followed := s.followedOutside
		rest, err := s.best(ctx, v, want-len(kept))
		s.followedOutside += followed
		return append(kept, rest...), err
	}
}
