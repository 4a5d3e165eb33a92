package social

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"kith/storage"
	"kith/storage/cache/idset"
)

// Similar lists up to 100 users who have followers in common with a user whose followers are open to the audience, most alike first (the cosine of
// their lists of followers, ties by smaller id), of those whom most of its newest followers follow. It leaves out the user, the viewer, hidden users, and users who do not
// want to be suggested. complete is false if the user has more followers than have been asked.
func (g *Graph) Similar(ctx context.Context, user storage.UserID) (list []storage.UserID, complete bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("find users like %s: %w", user, err)
		}
	}()
	read := storage.PageLookups[storage.Inverse].Read(ctx, g.store, storage.PageQuery{Owner: user, Limit: walkExamined})[0]
	if read.Err != nil {
		return nil, false, read.Err
	}
	followers := storage.Each(read.Value, func(e storage.Edge) idset.Candidate { return idset.Candidate{ID: e.From} })
	audience, _, all, err := g.openAmong(ctx, g.left()/2, func(n int) []idset.Candidate { return followers[:min(n, len(followers))] })
	if err != nil {
		return nil, false, err
	}
	v := &scores{recommenders: audience, topK: idset.TopK{Except: [][]storage.UserID{{user}, {g.viewer()}, nil, nil}}}
	if err := g.addLists(ctx, v); err != nil {
		return nil, false, err
	}
	if g.audience.hidesAny() {
		v.topK.Hides = g.audience.Hides
	}
	best, err := (&candidateFilter{graph: g, pool: pool{whole: true}}).best(ctx, v, walkUsers)
	if err != nil {
		return nil, false, err
	}
	ids := storage.Each(best, func(s Suggestion) storage.UserID { return s.ID })
	alike := make(map[storage.UserID]float64, len(ids))
	for i, r := range storage.CountLookups.Read(ctx, g.store, ids...) {
		if r.Err != nil {
			return nil, false, r.Err
		}
		alike[ids[i]] = float64(best[i].Shared) / math.Sqrt(float64(max(r.Value.Follower, 1)))
	}
	slices.SortFunc(ids, func(a, b storage.UserID) int { return cmp.Or(cmp.Compare(alike[b], alike[a]), cmp.Compare(a, b)) })
	return ids, all, nil
}
