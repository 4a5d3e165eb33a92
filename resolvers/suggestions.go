package resolvers

import (
	"cmp"
	"context"
	"time"

	"kith/graph/cursor"
	"kith/graph/declared"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// activeFor is for how long an author counts as active after a post.
const activeFor = 30 * 24 * time.Hour

// followSuggestions are the followings of a user's followings, or of its audience.
var followSuggestions = setOf(
	func(ctx context.Context, f *selections.Field) (a setArguments, err error) {
		kind := cursor.RankedSuggestions
		if a.best = f.Argument(ctx, "orderBy") == model.SuggestionOrderBest.String(); a.best {
			kind = cursor.BestSuggestions
		}
		a.PageArguments, err = prefetch.ParsePart(ctx, f, prefetch.Cursors{Kind: kind})
		return a, err
	},
	func(_ context.Context, level *prefetch.Level, args setArguments, users []storage.UserID) {
		if args.best {
			level.AddOpens(storage.Inverse, users)
		}
		if args.Text == "" {
			level.Ask(loaders.Of(level.Loaders, storage.PageLookups[storage.Forward]).Ask(storage.Each(users, social.PoolAhead)))
		}
	}, setQuestion.suggestions)

// similarUsers are the other followings of a user's followers.
var similarUsers = setOf(parsePart(cursor.Similar), nil, setQuestion.similar)

func (q setQuestion) suggestions(ctx context.Context) (userPage, error) {
	if open, err := q.IsOpen(social.List{Side: storage.Forward, Owner: q.user}); err != nil || !open {
		return closed, err
	}
	r, query := q.resolver, social.SuggestionQuery{User: q.user, First: q.arguments.Size, Via: q.most(), Best: q.arguments.best, Active: q.resolver.active, Popular: q.resolver.Popular.Users}
	// A cursor names the following behind which the pool starts, who may be hidden.
	cursors := prefetch.Cursors{Kind: cursor.RankedSuggestions, To: []int64{int64(query.User)}, What: "list"}
	if query.Best {
		cursors.Kind = cursor.BestSuggestions
		open, err := q.IsOpen(social.List{Side: storage.Inverse, Owner: q.user})
		if err != nil {
			return userPage{}, err
		}
		query.OpenFollowers = open
	}
	var popular, at, peer, id int64
	err := cursors.Read(ctx, "after", q.arguments.Text, &popular, &at, &peer, &query.From.Score, &id)
	if err != nil {
		return userPage{}, err
	}
	query.From.Popular, query.From.ID = popular == 1, storage.UserID(id)
	query.From.Pool = storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}
	if q.Viewer == q.user { // to others the answer would tell whom the user has muted, dismissed or asked
		muted, err := q.graph.Related(ctx, q.user, social.OutOfSuggestions...)
		dismissed, failed := q.graph.Related(ctx, q.user, declared.Dismissals) // which have been read
		since := storage.MicrosOf(r.Relations.Now().Add(-r.Relations.Rules.Load().RequestTTL))
		asked, fails := q.graph.Asked(ctx, q.user, social.MaxPending, since)
		if err := cmp.Or(err, failed, fails); err != nil {
			return userPage{}, err
		}
		query.Dismissed, query.Muted, query.Asked = dismissed, muted, asked
	}
	s, err := q.graph.Suggest(ctx, query)
	if err != nil {
		return userPage{}, err
	}
	if q.Viewer != q.user { // the blocks are the viewer's
		s.Excluded.Blocked = 0
	}
	spell := func(m social.SuggestionMark) string {
		seal, popular := r.Cursors, int64(0)
		if m.Pool == (storage.Position{}) {
			seal = prefetch.Unsealed
		}
		if m.Popular {
			popular = 1
		}
		return cursors.Spell(seal, popular, int64(m.Pool.UpdateTime), int64(m.Pool.Peer), m.Score, int64(m.ID))
	}
	made := &suggested{s, 1}
	if query.Best && !s.Popular {
		made.unit = social.ScoreUnit
	}
	p := userPage{Complete: s.Complete, Made: made}
	for _, one := range s.Suggestions {
		p.Rows = append(p.Rows, one.ID)
		p.Cursors = append(p.Cursors, spell(social.SuggestionMark{Pool: query.From.Pool, Score: one.Score, ID: one.ID, Popular: s.Popular}))
	}
	p.Info = prefetch.PageInfo(r.Cursors, p.Cursors, s.More, func(*cursor.Sealer) string { return spell(s.Next) })
	return p, nil
}

// active reports who has posted in the last days. Users whose posts the viewer may not see, or whose posts cannot be read now, do not count.
func (r *Resolver) active(ctx context.Context, users []storage.UserID) []bool {
	open, err := prefetch.ReadOpen(ctx, storage.Each(users, social.PostsOf))
	if err != nil {
		return make([]bool, len(users))
	}
	today := r.Relations.Now().Truncate(24 * time.Hour)
	since, upTo := storage.MicrosOf(today.Add(-activeFor)), storage.MicrosOf(today.Add(24*time.Hour)) // for a day, all requests ask for the same
	for i, last := range storage.LastPostLookups.Read(ctx, loaders.For(ctx).Reader(), storage.LastQuery{UpTo: upTo}.Of(users)...) {
		open[i] = open[i] && last.Found && last.Value >= since
	}
	return open
}

// similar is a page of the users who are like one.
func (q setQuestion) similar(ctx context.Context) (userPage, error) {
	if open, err := q.IsOpen(social.List{Side: storage.Inverse, Owner: q.user}); err != nil || !open {
		return closed, err
	}
	cursors := prefetch.Cursors{Kind: cursor.Similar, To: []int64{int64(q.user)}, What: "list"}
	var from int64
	if err := cursors.Read(ctx, "after", q.arguments.Text, &from); err != nil {
		return userPage{}, err
	}
	all, complete, err := q.graph.Similar(ctx, q.user)
	if err != nil {
		return userPage{}, err
	}
	p := userPage{Total: prefetch.Counted(len(all)), Complete: complete}
	all = all[min(from, int64(len(all))):]
	p.Rows = all[:min(q.arguments.Size, len(all))]
	for i := range p.Rows {
		p.Cursors = append(p.Cursors, cursors.Spell(prefetch.Unsealed, from+int64(i)+1))
	}
	p.Info = prefetch.PageInfo(q.Cursors, p.Cursors, len(p.Rows) < len(all), nil)
	return p, nil
}

func (userFields) SimilarUsers(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID))
}

func (userFields) FollowSuggestions(ctx context.Context, obj *model.User, _ *int32, _ *string, _ model.SuggestionOrder) (*model.SuggestionConnection, error) {
	f, p, err := prefetch.Answer[storage.UserID](ctx, userName(obj.UserID))
	if err != nil || p == nil {
		return nil, err
	}
	nodes, places := nodesOn(ctx, f, p)
	s := p.Made.(*suggested)
	return &model.SuggestionConnection{
		Complete: p.Complete,
		Excluded: &model.SuggestionExclusions{
			Followed: int32(s.Excluded.Followed), Blocked: int32(s.Excluded.Blocked), Dismissed: int32(s.Excluded.Dismissed),
		},
		Page: prefetch.PageOf(p.Info, nodes, func(i int) model.SuggestionEdge {
			one := s.Suggestions.Suggestions[places[i]]
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
				Cursor: p.Cursors[places[i]], Node: nodes[i],
				Score: float64(one.Score) / s.unit, SharedCount: int32(one.Shared),
				Reason: reason, Via: one.Via,
			}
		}),
	}, nil
}

// recommendedBy are the users who recommend a suggestion.
var recommendedBy = prefetch.NewField(
	func(ctx context.Context, f *selections.Field) (int, error) {
		size, given, err := prefetch.ParseSize(ctx, f, "first")
		if !given {
			size = defaultVia
		}
		return size, err
	},
	func(ctx context.Context, level *prefetch.Level, f *selections.Field, _ int, suggestions []social.Suggestion) {
		w := prefetch.Users{On: f.Below}
		for _, s := range suggestions {
			w.IDs = append(w.IDs, s.Via...)
		}
		w.AddTo(ctx, level)
	})

const defaultVia = 3

// most is the greatest number of users who recommend a suggestion that is selected.
func (q setQuestion) most() (most int) {
	for _, alias := range q.name.Field.Twins {
		for _, edges := range alias.Below[0].Named("edges") {
			for _, via := range edges.Below[0].Named("via") {
				size, _ := prefetch.ArgumentsOf[int](q.Request, via)
				most = max(most, size)
			}
		}
	}
	return most
}

func (suggestionFields) Via(ctx context.Context, obj *model.SuggestionEdge, _ *int32) ([]*model.User, error) {
	f, size, err := prefetch.RunningWith[int](ctx)
	if err != nil {
		return nil, err
	}
	w := prefetch.Users{IDs: obj.Via[:min(size, len(obj.Via))], On: f.Below}
	return usersOf(ctx, w, prefetch.Each(ctx)), nil
}
