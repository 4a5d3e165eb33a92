package social

import (
	"cmp"
	"context"
	"slices"

	"kith/graph/why"
	"kith/storage"
	"kith/storage/cache/idset"
)

// pool is the followings that one page of suggestions asks.
type pool struct {
	recommenders []recommender    // ascending: those whose lists are open
	followings   []storage.UserID // those read, newest first
	empty        bool             // there are none
	whole        bool             // all followings have been read
	last         bool             // no followings are left after this pool
	end          storage.Position // of its oldest following
	walked       []recommender    // for the best order, those whose followers are walked to
}

// firstPool is how many followings are read at first: most users follow fewer, and this many can be
// read together with the user.
const firstPool = 128

// PoolAhead is what [Graph.Suggest] reads first of a user's followings, so that a caller can read
// it together with something else.
func PoolAhead(user storage.UserID) storage.PageQuery {
	return storage.PageQuery{Owner: user, Limit: firstPool}
}

// newest reads a user's followings behind a position, newest first, one more than a pool has.
func (g *Graph) newest(ctx context.Context, user storage.UserID, after storage.Position) ([]storage.Edge, error) {
	q := PoolAhead(user)
	q.After, q.Limit = after, min(g.sizes.firstPool, g.sizes.maxPool+1)
	r := storage.PageLookups[storage.Forward].Read(ctx, g.store, q)[0]
	if n := len(r.Value); r.Err != nil || n < q.Limit || n > g.sizes.maxPool {
		return r.Value, r.Err
	}
	first := r.Value
	q.After, q.Limit = storage.Forward.Position(first[len(first)-1]), g.sizes.maxPool+1-len(first)
	r = storage.PageLookups[storage.Forward].Read(ctx, g.store, q)[0]
	return slices.Concat(first, r.Value), r.Err
}

// poolOf takes followings, newest first, as long as their lists fit the budget, and at
// least one.
func (g *Graph) poolOf(ctx context.Context, q SuggestionQuery) (pool, error) {
	user, after := q.User, q.From.Pool
	edges, err := g.newest(ctx, user, after)
	if err != nil {
		return pool{}, err
	}
	p := pool{empty: len(edges) == 0}
	p.whole = after == (storage.Position{}) && len(edges) <= g.sizes.maxPool
	p.last = len(edges) <= g.sizes.maxPool
	edges = edges[:min(g.sizes.maxPool, len(edges))]
	ids := storage.Each(edges, func(e storage.Edge) storage.UserID { return e.To })
	p.followings = ids
	users, err := g.fitting(ctx, ids, q.Best)
	if err != nil {
		return pool{}, err
	}
	fits := len(users)
	if fits < len(ids) {
		p.last = false
	}
	if fits > 0 {
		p.end = storage.Forward.Position(edges[fits-1])
	}
	p.walked = storage.Filter(users, func(u recommender) bool { return u.fans > 0 && !g.audience.Hides(u.id) })
	p.recommenders, err = g.opened(ctx, users, g.viewer() == user) // then the viewer follows all of them
	slices.SortFunc(p.recommenders, func(a, b recommender) int { return cmp.Compare(a.id, b.id) })
	return p, err
}

// recommender is a following from whom suggestions may come.
type recommender struct {
	id         storage.UserID
	visibility storage.Visibility // of its followings
	degree     int64              // how many they are, by its counts
	fans       int64              // how many followers are walked to; 0 unless that is asked for

	kept      idset.Compact    // them, if the store keeps them in this form
	directory *idset.Directory // of kept; nil: they have to be read
}

// fitting returns the first users whose lists together fit the budget, and at
// least one. It reads a few users at a time, because most of the others would not be used.
func (g *Graph) fitting(ctx context.Context, ids []storage.UserID, best bool) ([]recommender, error) {
	rows, most := int64(len(ids)), int64(g.budget)/4 // the lists of an audience may take as much
	users := make([]recommender, 0, len(ids))
	for n := g.sizes.firstPool; len(users) < len(ids); n *= 4 {
		more, err := g.recommenders(ctx, ids[len(users):min(len(users)+n, len(ids))])
		if err == nil && best {
			err = g.addFans(ctx, more)
		}
		if err != nil {
			return nil, err
		}
		for _, u := range more {
			if !g.audience.Hides(u.id) { // whose degree must not show
				rows += u.degree + u.fans
			}
			if rows > most && len(users) > 0 {
				return users, nil
			}
			users = append(users, u)
		}
	}
	return users, nil
}

// recommenders returns users in the form of [idset.Recommender] if the store keeps them so, and
// the others from their profiles.
func (g *Graph) recommenders(ctx context.Context, ids []storage.UserID) ([]recommender, error) {
	users := make([]recommender, len(ids))
	var others []storage.UserID
	var of []int
	for i, r := range idset.RecommenderLookups.Read(ctx, g.store, ids...) {
		if !r.Found { // errors are those of the reads that follow
			others, of = append(others, ids[i]), append(of, i)
			continue
		}
		users[i] = recommender{id: ids[i], visibility: r.Value.Visibility, degree: r.Value.Following, kept: r.Value.Followings, directory: r.Value.Directory}
	}
	for k, r := range storage.ProfileLookups.Read(ctx, g.store, others...) {
		if r.Err != nil {
			return nil, r.Err
		}
		users[of[k]] = recommender{id: others[k], visibility: r.Value.User.ListVisibility(storage.Forward), degree: r.Value.Counts.Following}
	}
	return users, nil
}

// opened returns those whose followings are open to the audience, in their order; users is used up. followed says that
// the viewer follows all of them.
func (g *Graph) opened(ctx context.Context, users []recommender, followed bool) (_ []recommender, err error) {
	follows := func(storage.UserID) bool { return true }
	if !followed {
		if follows, err = g.viewerFollows(ctx, users); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(users, func(r recommender) bool {
		return g.audience.Hides(r.id) || g.audience.notice(!g.audience.Opens(List{storage.Forward, r.id}, r.owner(), follows(r.id)), why.Closed, r.id)
	}), nil
}

// owner is what the rules of visibility need of the recommender.
func (r recommender) owner() storage.User {
	return storage.User{FollowingsVisibility: r.visibility}
}

// viewerFollows reports which owners the viewer follows, among those whose visibility depends on it.
func (g *Graph) viewerFollows(ctx context.Context, users []recommender) (func(storage.UserID) bool, error) {
	var pairs []storage.Pair
	for _, r := range users {
		if g.audience.NeedsFollow(List{storage.Forward, r.id}, r.owner()) {
			pairs = append(pairs, storage.Pair{From: g.audience.Viewer, To: r.id})
		}
	}
	followed := make(map[storage.UserID]bool, len(pairs))
	for i, r := range storage.EdgeLookups[storage.Forward].Read(ctx, g.store, pairs...) {
		if r.Err != nil {
			return nil, r.Err
		}
		followed[pairs[i].To] = r.Value.Type == storage.Following
	}
	return func(id storage.UserID) bool { return followed[id] }, nil
}
