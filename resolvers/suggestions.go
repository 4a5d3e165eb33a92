package resolvers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// activeFor is for how long an author counts as active after a post.
const activeFor = 30 * 24 * time.Hour

func (q setQuestion) suggestions(ctx context.Context, via int) (setAnswer, error) {
	if open, err := isOpen(ctx, social.List{Side: storage.Forward, Owner: q.user}); err != nil || !open {
		return closed, err
	}
	r, query := q.resolver, social.SuggestionQuery{User: q.user, First: q.arguments.size, Via: via, Best: q.arguments.best, Active: q.resolver.active}
	// A cursor names the following behind which the pool starts, who may be hidden.
	cursors := bound{kind: cursor.RankedSuggestions, to: []int64{int64(query.User)}, what: "list"}
	if query.Best {
		cursors.kind = cursor.BestSuggestions
		open, err := isOpen(ctx, social.List{Side: storage.Inverse, Owner: q.user})
		if err != nil {
			return setAnswer{}, err
		}
		query.OpenFollowers = open
	}
	var popular, at, peer, id int64
	err := cursors.read(ctx, "after", q.arguments.text, &popular, &at, &peer, &query.From.Score, &id)
	if err != nil {
		return setAnswer{}, err
	}
	query.From.Popular, query.From.ID = popular == 1, storage.UserID(id)
	query.From.Pool = storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}
	if r.Popular != nil {
		query.Popular = r.Popular.Users
	}
	if isViewer(ctx, q.user) { // to others the answer would tell whom the user has muted, dismissed or asked
		muted, err := q.graph.LeftOut(ctx, q.user, storage.SuggestionAnswers)
		dismissed, failed := q.graph.Related(ctx, q.user, storage.Dismissals) // which have been read
		since := storage.MicrosOf(r.Relations.Now().Add(-r.Relations.Rules.Load().RequestTTL))
		asked, fails := q.graph.Asked(ctx, q.user, r.Relations.MaxPending, since)
		if err := cmp.Or(err, failed, fails); err != nil {
			return setAnswer{}, err
		}
		query.Dismissed, query.LeftOut = dismissed, slices.Sorted(slices.Values(slices.Concat(muted, asked)))
	}
	s, err := q.graph.Suggest(ctx, query)
	if err != nil {
		return setAnswer{}, err
	}
	spell := func(m social.SuggestionMark) string {
		seal, popular := r.Cursors, int64(0)
		if m.Pool == (storage.Position{}) {
			seal = unsealed
		}
		if m.Popular {
			popular = 1
		}
		return cursors.spell(seal, popular, int64(m.Pool.UpdateTime), int64(m.Pool.Peer), m.Score, int64(m.ID))
	}
	var page userPage
	for _, one := range s.Suggestions {
		page.users = append(page.users, one.ID)
		page.cursors = append(page.cursors, spell(social.SuggestionMark{Pool: query.From.Pool, Score: one.Score, ID: one.ID, Popular: s.Popular}))
	}
	info := r.pageInfo(page.cursors, s.More, func(*cursor.Sealer) string { return spell(s.Next) })
	return setAnswer{page: page, info: info, complete: s.Complete, suggested: s, best: query.Best}, nil
}

// active reports who has posted in the last days. Of whoever lets the viewer not see them, or whose posts cannot be read
// now, that is not known.
func (r *Resolver) active(ctx context.Context, users []storage.UserID) []bool {
	open, err := readOpen(ctx, storage.Each(users, social.PostsOf))
	if err != nil {
		return make([]bool, len(users))
	}
	i := -1
	today := r.Relations.Now().Truncate(24 * time.Hour)
	since, upTo := storage.MicrosOf(today.Add(-activeFor)), storage.MicrosOf(today.Add(24*time.Hour)) // for a day, all requests ask for the same
	return storage.Each(r.reads().LastPosts(ctx, users, upTo), func(last storage.Result[storage.Micros]) bool {
		i++
		return open[i] && last.Found && last.Value >= since
	})
}

// similar is a page of the users who are like one.
func (q setQuestion) similar(ctx context.Context) (setAnswer, error) {
	if open, err := isOpen(ctx, social.List{Side: storage.Inverse, Owner: q.user}); err != nil || !open {
		return closed, err
	}
	cursors := bound{kind: cursor.Similar, to: []int64{int64(q.user)}, what: "list"}
	var from int64
	if err := cursors.read(ctx, "after", q.arguments.text, &from); err != nil {
		return setAnswer{}, err
	}
	all, complete, err := q.graph.Similar(ctx, q.user)
	if err != nil {
		return setAnswer{}, err
	}
	a := setAnswer{total: counted(len(all)), complete: complete}
	all = all[min(from, int64(len(all))):]
	a.page.users = all[:min(q.arguments.size, len(all))]
	for i := range a.page.users {
		a.page.cursors = append(a.page.cursors, cursors.spell(unsealed, from+int64(i)+1))
	}
	a.info = q.resolver.pageInfo(a.page.cursors, len(a.page.users) < len(all), nil)
	return a, nil
}

func (userFields) FollowSuggestions(ctx context.Context, obj *model.User, _ *int32, _ *string, _ model.SuggestionOrder) (*model.SuggestionConnection, error) {
	f := planned(ctx)
	a, err := answerTo[*setAnswer](stateOf(ctx), nameOf(f, obj.UserID))
	if err != nil || a.isClosed {
		return nil, err
	}
	return suggestionConnection(ctx, f, a), nil
}

func suggestionConnection(ctx context.Context, f *selections.Field, a *setAnswer) *model.SuggestionConnection {
	nodes, places := a.page.nodes(ctx, f)
	s, unit := a.suggested, 1.0
	if a.best && !s.Popular {
		unit = social.ScoreUnit
	}
	return &model.SuggestionConnection{
		Nodes: nodes, Complete: a.complete, PageInfo: a.info,
		Excluded: &model.SuggestionExclusions{
			Followed: int32(s.Excluded.Followed), Blocked: int32(s.Excluded.Blocked), Dismissed: int32(s.Excluded.Dismissed),
		},
		Edges: edges(len(nodes), func(i int) model.SuggestionEdge {
			one := s.Suggestions[places[i]]
			reason := model.SuggestionReasonFollowedByFollowings
			switch {
			case s.Popular && one.Pinned():
				reason = model.SuggestionReasonPinned
			case s.Popular:
				reason = model.SuggestionReasonPopular
			case one.FollowsUser:
				reason = model.SuggestionReasonFollowsYou
			case one.Shared == 0:
				reason = model.SuggestionReasonSharedAudience
			}
			return model.SuggestionEdge{
				Cursor: a.page.cursors[places[i]], Node: nodes[i],
				Score: float64(one.Score) / unit, SharedCount: int32(one.Shared),
				Reason: reason, Via: one.Via,
			}
		}),
	}
}

func (r mutations) DismissSuggestion(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeDismissal(ctx, id, func(viewer storage.UserID, other []storage.UserID) storage.Result[storage.Changed] {
		results, _ := r.Relations.Relate(ctx, loaders.For(ctx).Reader(), viewer, storage.Dismissals, other, storage.DetailChange{}) // nobody reads the inverse side
		results[0].Value.Changed = results[0].Value.Changed && !results[0].Value.Kept                                               // otherwise it only lasts longer
		return results[0]
	})
}

func (r mutations) UndismissSuggestion(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeDismissal(ctx, id, func(viewer storage.UserID, other []storage.UserID) storage.Result[storage.Changed] {
		results, _ := r.Relations.Unrelate(ctx, viewer, storage.Dismissals, other)
		return results[0]
	})
}

func (r mutations) changeDismissal(ctx context.Context, id string, change func(viewer storage.UserID, other []storage.UserID) storage.Result[storage.Changed]) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	if viewer == other {
		return nil, r.refusal(ctx, viewer, other, social.ErrSelf)
	}
	changed := change(viewer, []storage.UserID{other})
	return r.relationshipPayload(ctx, viewer, other, social.Outcome{Changed: changed.Value.Changed, Written: changed.Value.Written()}, relationError(changed.Err))
}

// viaNeeds is what the `via` fields below a connection of suggestions need.
type viaNeeds struct {
	most int                  // the greatest `first` of them
	on   []*selections.Object // of them all
}

const defaultVia = 3

func viaOf(ctx context.Context, suggestions *selections.Field) viaNeeds {
	var n viaNeeds
	for _, edges := range suggestions.Below[0].Named("edges") {
		for _, f := range edges.Below[0].Named("via") {
			size, _ := argument[int](stateOf(ctx), f)
			n.most = max(n.most, size)
			n.on = append(n.on, f.Below...)
		}
	}
	return n
}

func (suggestionFields) Via(ctx context.Context, obj *model.SuggestionEdge, _ *int32) ([]*model.User, error) {
	f := planned(ctx)
	size, err := argument[int](stateOf(ctx), f)
	if err != nil {
		return nil, err
	}
	w := wanted{users: obj.Via[:min(size, len(obj.Via))], on: f.Below}
	return usersOf(ctx, w, each(ctx)), nil
}
