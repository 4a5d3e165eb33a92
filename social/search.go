package social

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"kith/graph/declared"
	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/finding"
)

// SearchQuery asks for users by words of their names and handles, for the viewer of a graph.
type SearchQuery struct {
	Words []string // at least one, see [finding.SearchedWords]
	// Popular lists the most followed users. They are looked at if the index has more users than one answer looks at; nil: nobody.
	Popular func(context.Context) ([]finding.PopularUser, error)
}

// Found is a user who has been found.
type Found struct {
	User      storage.UserID
	Near      int64 // 2: the viewer follows it; 1: some whom the viewer follows do; 0: otherwise
	Followers int64
}

// Compare orders users as a search lists them: near ones first, then the most followed, then by smaller id.
func (f Found) Compare(o Found) int {
	return cmp.Or(cmp.Compare(o.Near, f.Near), cmp.Compare(o.Followers, f.Followers), cmp.Compare(f.User, o.User))
}

const (
	// foafRows is how many followings of followings a search looks at. A longer list is left out, so that one following does not
	// take all.
	foafRows = 20_000
	// foafFound is how many of those who are found, the most followed, are looked for among them.
	foafFound = 500
)

// Search returns all users that it looks at whose names and handles have the words, best first, without hidden users: those among the
// viewer's newest followings, those in the first rows of the index, and those among the most followed. complete is false if the index
// has more.
func (g *Graph) Search(ctx context.Context, q SearchQuery) (found []Found, complete bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("search %q: %w", q.Words, err)
		}
	}()
	word, otherWords := longest(q.Words)
	rows, complete, err := g.namedFirst(ctx, word)
	if err != nil {
		return nil, false, err
	}
	ids, err := g.haveWords(ctx, distinct(rows), otherWords)
	if err != nil {
		return nil, false, err
	}
	var near []Member
	if !complete && q.Popular != nil {
		popular, err := q.Popular(ctx)
		if err != nil {
			return nil, false, err
		}
		named, err := g.haveWords(ctx, distinct(storage.Each(popular, func(p finding.PopularUser) storage.UserID { return p.User })), q.Words)
		if err != nil {
			return nil, false, err
		}
		ids = append(ids, named...)
	}
	if g.viewer() != 0 {
		near, _, err = g.among(ctx, MemberQuery{List: List{storage.Forward, g.viewer()}, Words: q.Words}, ids, complete)
		if err != nil {
			return nil, false, err
		}
	}
	followed := distinct(storage.Each(near, func(m Member) storage.UserID { return m.ID }))
	var muted []storage.UserID
	if g.viewer() != 0 {
		if muted, err = g.Related(ctx, g.viewer(), declared.Mutes); err != nil {
			return nil, false, err
		}
	}
	ids = slices.DeleteFunc(distinct(append(ids, followed...)), func(id storage.UserID) bool { return g.audience.leavesOut(id, muted) })
	found = make([]Found, len(ids))
	others := len(ids) // whom the viewer does not follow
	for i, r := range storage.CountLookups.Read(ctx, g.store, ids...) {
		if r.Err != nil {
			return nil, false, r.Err
		}
		if found[i] = (Found{User: ids[i], Followers: r.Value.Follower}); has(followed, ids[i]) {
			found[i].Near = 2
			others--
		}
	}
	slices.SortFunc(found, Found.Compare)
	if err := g.addFriendsOfFriends(ctx, found[len(found)-others:]); err != nil {
		return nil, false, err
	}
	slices.SortFunc(found, Found.Compare)
	return found, complete, nil
}

// addFriendsOfFriends marks the users whom some of the viewer's newest followings follow, in lists that are open to the viewer.
func (g *Graph) addFriendsOfFriends(ctx context.Context, found []Found) error {
	found = found[:min(foafFound, len(found))]
	if g.viewer() == 0 || len(found) == 0 {
		return nil
	}
	few := *g
	few.budget, few.request, few.sizes.maxPool = min(g.budget, 2*foafRows), nil, firstPool // a pool takes half
	few.audience = g.audience.quiet()                                                      // who recommends whom is not in the answer
	p, err := few.poolOf(ctx, SuggestionQuery{User: g.viewer()})
	if err != nil {
		return err
	}
	v := &scores{recommenders: slices.DeleteFunc(p.recommenders, func(r recommender) bool { return r.degree > foafRows })}
	if err := few.addLists(ctx, v); err != nil || len(v.recommenders) == 0 {
		return err
	}
	ids := storage.Each(found, func(f Found) storage.UserID { return f.User })
	for i, holders := range idset.Holders(v.topK.Expanded(), ids, 1) {
		if len(holders) > 0 {
			found[i].Near = 1
		}
	}
	return nil
}

// viewer is who asks; 0: nobody who is signed in.
func (g *Graph) viewer() storage.UserID { return g.audience.Viewer }
