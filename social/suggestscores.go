package social

import (
	"context"

	"kith/graph/why"
	"kith/storage"
	"kith/storage/cache/idset"
)

// scores is how the followings of a pool score candidates. The pool does not depend on what is in
// memory, so that a mark stands for the same position.
type scores struct {
	recommenders []recommender // ascending; in the best order, the audience comes behind them
	followings   int           // how many recommenders are followings of the user
	topK         idset.TopK    // of their lists
	out          Exclusions
}

// scoresOf counts scores: of lists in memory, and of others as they are read.
func (g *Graph) scoresOf(ctx context.Context, q SuggestionQuery, p pool) (*scores, error) {
	v := &scores{recommenders: p.recommenders, followings: len(p.recommenders), topK: idset.TopK{
		Except: [][]storage.UserID{{q.User}, p.followings, g.audience.blocks, q.Dismissed, q.Muted, q.Asked},
		Behind: idset.Candidate{ID: q.From.ID, Count: int(q.From.Score)},
	}}
	if rules := [...]why.Rule{2: why.Block, why.NotSuggested, why.Mute, why.NotSuggested}; g.audience.asked() {
		v.topK.Excluded = func(of int, id storage.UserID) { g.audience.notice(rules[of] != "", rules[of], id) }
	}
	if q.Best {
		if err := g.walk(ctx, q, p, v); err != nil {
			return nil, err
		}
	}
	if err := g.addLists(ctx, v); err != nil {
		return nil, err
	}
	if g.audience.hidesAny() {
		v.topK.Hides = g.audience.Hides
	}
	return v, nil
}

// addLists adds the followings of the recommenders: those that came with the recommenders, and the
// others as they are kept or read.
func (g *Graph) addLists(ctx context.Context, v *scores) error {
	k := &v.topK
	k.Sets, k.Compact = make([]*idset.Set, len(v.recommenders)), make([]idset.Compact, len(v.recommenders))
	owners := make([]storage.UserID, 0, len(v.recommenders))
	var of []int
	for i, u := range v.recommenders {
		if k.Directory == nil {
			k.Directory = u.directory
		}
		if k.Directory != nil && u.directory == k.Directory { // it is another one if it has just been renewed
			k.Compact[i] = u.kept
		} else {
			owners, of = append(owners, u.id), append(of, i)
		}
	}
	lists, err := g.listsOf(ctx, storage.Forward, owners)
	if err != nil {
		return err
	}
	for i, list := range lists {
		k.Sets[of[i]] = list
	}
	return nil
}

// best ranks the candidates behind the query's mark: the n best, or all if there are
// fewer.
func (v *scores) best(n int) (top ranking, all bool) {
	v.topK.Most = n
	best, excluded := v.topK.Best()
	v.out = Exclusions{Followed: excluded[1], Blocked: excluded[2], Dismissed: excluded[3]}
	top = storage.Each(best, func(b idset.Candidate) Suggestion {
		s := Suggestion{ID: b.ID, Score: int64(b.Count)}
		if v.topK.Weights == nil {
			s.Shared = b.Count
		}
		return s
	})
	return top, len(top) < n
}

// via adds to each suggestion some of the followings that follow it: at most the number in via. In the best order it counts all.
func (v *scores) via(suggestions []Suggestion, via int) {
	most := via
	if v.topK.Weights != nil {
		most = v.followings
	}
	if most == 0 && v.topK.Weights == nil {
		return
	}
	ids := storage.Each(suggestions, func(s Suggestion) storage.UserID { return s.ID })
	all := make([]storage.UserID, 0, len(ids)*via)
	v.topK.Sets = v.topK.Sets[:v.followings]
	for i, holders := range idset.Holders(v.topK.Expanded(), ids, most) {
		if v.topK.Weights != nil {
			suggestions[i].Shared = len(holders)
			suggestions[i].FollowsUser = v.topK.Boosted != nil && v.topK.Boosted.Contains(ids[i])
			holders = holders[:min(via, len(holders))]
		}
		start := len(all)
		for _, k := range holders {
			all = append(all, v.recommenders[k].id)
		}
		if len(holders) > 0 {
			suggestions[i].Via = all[start:len(all):len(all)]
		}
	}
}
