package resolvers

import (
	"context"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/graph/why"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
	"kith/storage/finding"
)

var listOrders = map[any]social.Order{
	model.ListOrderClosest.String(): social.Closest, model.ListOrderMostFollowed.String(): social.MostFollowed,
}

// choiceOf reads the arguments `filter` and `orderBy` of a list; nil: all users are wanted, newest first.
func choiceOf(ctx context.Context, f *selections.Field) (_ *choice, err error) {
	filter, _ := f.Argument(ctx, "filter").(map[string]any)
	s := choice{order: listOrders[f.Argument(ctx, "orderBy")]}
	for name, into := range map[string]**bool{"mutual": &s.mutual, "special": &s.special} {
		if is, given := filter[name].(bool); given {
			*into = &is
		}
	}
	text, given := filter["match"].(string)
	if given {
		s.words, err = wordsOf("filter", text)
		s.nobody = s.words == nil
	}
	if !given && s.mutual == nil && s.special == nil && s.order == social.Recent {
		return nil, nil
	}
	return &s, err
}

// wordsOf are the words of what somebody looks for; nil: nobody has them.
func wordsOf(argument, text string) ([]string, error) {
	const most = 4 * storage.MaxNameLength
	if len(text) > most {
		return nil, apierr.TooLong.Error("a text of %d bytes is given, %d is the most", len(text), most).In(argument)
	}
	return finding.SearchedWords(text), nil
}

var (
	friends          = setOfBoth(cursor.Friends, social.Friends)
	notFollowingBack = setOfBoth(cursor.NotFollowingBack, social.NotFollowingBack)
	notFollowedBack  = setOfBoth(cursor.NotFollowedBack, social.NotFollowedBack)
)

// setOfBoth is a field that is worked out from both lists of one user.
func setOfBoth(kind cursor.Kind, lists func(user storage.UserID) social.MatchQuery) *setField[storage.UserID] {
	parse := func(ctx context.Context, f *selections.Field) (a setArguments, err error) {
		kind, badChoice := kind, error(nil)
		if a.choice, badChoice = choiceOf(ctx, f); a.choice != nil {
			kind = cursor.Selected
		}
		a.isPart = true
		a.PageArguments, err = prefetch.ParsePart(ctx, f, prefetch.Cursors{Kind: kind})
		return a, apierr.All(badChoice, err)
	}
	return setOf(parse, nil, func(q setQuestion, ctx context.Context) (userPage, error) {
		if q.arguments.choice != nil {
			return q.selected(ctx, storage.Forward, true)
		}
		base := lists(q.user)
		if open, err := q.AreOpen(base.Base, base.Other); err != nil || !open {
			return closed, err
		}
		return q.matches(ctx, prefetch.Cursors{Kind: kind, To: []int64{int64(q.user)}, What: "list"}, base)
	})
}

func (userFields) Friends(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.ListFilter, _ model.ListOrder) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID))
}

func (userFields) NotFollowingBack(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID))
}

func (userFields) NotFollowedBack(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID))
}

// selected is a page of selected users of a list, or of friends.
func (q setQuestion) selected(ctx context.Context, side storage.Side, areFriends bool) (userPage, error) {
	s, query := *q.arguments.choice, social.MemberQuery{List: social.List{Side: side, Owner: q.user}}
	other := social.List{Side: side.Other(), Owner: q.user}
	switch {
	case areFriends:
		query.Other = &other
		s.nobody = s.nobody || s.mutual != nil && !*s.mutual
	case s.mutual != nil:
		query.Other, query.Absent = &other, !*s.mutual
	}
	if s.special != nil && q.Viewer != q.user {
		q.Notice(why.Closed, q.user)
		return closed, nil
	}
	return q.members(ctx, query, s, areFriends)
}

// followersYouKnow are the followers of a user whom the viewer follows.
var followersYouKnow = setOf(
	func(ctx context.Context, f *selections.Field) (a setArguments, err error) {
		a.choice, a.isPart = &choice{order: social.Closest}, true
		a.PageArguments, err = prefetch.ParsePart(ctx, f, prefetch.Cursors{Kind: cursor.Selected})
		return a, err
	},
	func(_ context.Context, level *prefetch.Level, _ setArguments, _ []storage.UserID) {
		if level.Viewer != 0 {
			level.Counts = append(level.Counts, level.Viewer)
		}
	},
	func(q setQuestion, ctx context.Context) (userPage, error) {
		if q.Viewer == 0 {
			return closed, nil
		}
		followers := social.List{Side: storage.Inverse, Owner: q.user}
		return q.members(ctx, social.MemberQuery{List: social.List{Side: storage.Forward, Owner: q.Viewer}, Other: &followers}, *q.arguments.choice, false)
	})

func (userFields) FollowersYouKnow(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string) (*model.UserConnection, error) {
	return showPage(ctx, userName(obj.UserID))
}

func (q setQuestion) members(ctx context.Context, query social.MemberQuery, s choice, areFriends bool) (userPage, error) {
	args, field := q.arguments.PageArguments, q.name.Field.Name
	lists := []social.List{query.List}
	if query.Other != nil {
		lists = append(lists, *query.Other)
	}
	if open, err := q.AreOpen(lists...); err != nil || !open {
		return closed, err
	}
	cursors := prefetch.Cursors{Kind: cursor.Selected, To: []int64{int64(q.user), prefetch.Hash(field + " " + s.String())}, What: "list, filter or order"}
	after, before, err := marksOf(ctx, cursors, args, memberMark)
	if err != nil {
		return userPage{}, err
	}
	var all []social.Member
	complete := true
	if !s.nobody && !q.IsAbsent(q.user) {
		query.Words, query.Special, query.Order = s.words, s.special, s.order
		if q.Viewer != 0 && (s.special != nil || s.order == social.Closest) {
			specials := loaders.Of(q.Loaders, storage.SpecialLookups).Get(q.Viewer)
			if specials.Err != nil {
				return userPage{}, specials.Err
			}
			query.Specials = specials.Value
		}
		found, err := prefetch.Keep(ctx, whole{field: field, of: storage.PostID{Author: q.user}, how: s.String()}, func() (listed[social.Member], error) {
			all, complete, err := q.graph.Members(ctx, query)
			return listed[social.Member]{all, complete}, err
		})
		if err != nil {
			return userPage{}, err
		}
		all, complete = found.all, found.complete
	}
	total := len(all)
	all, _, more := prefetch.Cut(args, all,
		func(m social.Member) bool { return m.Compare(after) > 0 }, func(m social.Member) bool { return m.Compare(before) < 0 })
	p := userPage{Total: prefetch.Counted(total), Complete: complete}
	for _, m := range all {
		since := m.At.UpdateTime
		if areFriends { // since the later of their follows
			since = max(since, m.Other)
		}
		p.Rows, p.Since = append(p.Rows, m.ID), append(p.Since, since.Time())
		p.Cursors = append(p.Cursors, cursors.Spell(prefetch.Unsealed, m.Rank, int64(m.At.UpdateTime), int64(m.At.Peer)))
	}
	p.Info = prefetch.PageInfo(q.Cursors, p.Cursors, more, nil)
	args.Around(p.Info, more, args.Text != "", args.TextBefore != "")
	return p, nil
}

// listed is what an answer is taken out of.
type listed[T any] struct {
	all      []T
	complete bool
}

// memberMark reads a cursor of such a page.
func memberMark(ctx context.Context, b prefetch.Cursors, argument, text string) (social.Member, error) {
	var rank, at, peer int64
	err := b.Read(ctx, argument, text, &rank, &at, &peer)
	return social.Member{Rank: rank, Match: social.Match{At: storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}}}, err
}
