package resolvers

import (
	"context"
	"fmt"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/graph/why"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// activityKinds are the kinds, at the places of the store's.
var activityKinds = [...]model.ActivityKind{
	social.Followed: model.ActivityKindFollow, social.FollowAsked: model.ActivityKindFollowRequest,
	social.FriendAsked: model.ActivityKindFriendRequest, social.FriendAccepted: model.ActivityKindFriendAccepted,
	social.PostFavorited: model.ActivityKindFavorite, social.PostCommented: model.ActivityKindComment,
	social.Mentions: model.ActivityKindMention, social.FollowAccepted: model.ActivityKindFollowAccepted,
}

func (r viewerFields) Activity(ctx context.Context, obj *model.Viewer, _ *int32, _ *string, kinds []model.ActivityKind) (*model.ActivityConnection, error) {
	f, viewer := prefetch.Running(ctx), obj.User.UserID
	args, badPage := prefetch.ParsePart(ctx, f, prefetch.Cursors{Kind: cursor.Activity})
	var after activityPart
	var badMark error
	after.mark, badMark = r.activityMark("after", args.Text)
	err := apierr.All(badPage, badMark)
	if err != nil {
		return nil, err
	}
	for kind, name := range activityKinds {
		after.kinds[kind] = r.servesActivity(name) && (kinds == nil || slices.Contains(kinds, name))
	}
	c := &model.ActivityConnection{}
	var badUnseen error
	if f.Below[0].Named("unseen") != nil {
		c.Unseen, badUnseen = r.unseen(ctx, viewer, after)
	}
	if prefetch.PageNeedsOf(f)&fields.Rows != 0 {
		err = r.activityPage(ctx, c, viewer, after, args.Size)
	}
	if err != nil {
		return nil, err
	}
	if badUnseen != nil {
		prefetch.FailAt(ctx, prefetch.Here(ctx).Below(ctx, f.Below[0].Named("unseen"))(0), badUnseen)
	}
	return c, nil
}

// activityPage puts the page of the running field into a connection.
func (r *Resolver) activityPage(ctx context.Context, c *model.ActivityConnection, viewer storage.UserID, after activityPart, size int) error {
	f := prefetch.Running(ctx)
	a, err := r.activity(ctx, viewer, after)
	if err != nil {
		return err
	}
	groups, more, end, err := a.Page(ctx, size)
	if err != nil {
		return err
	}
	if more && len(groups) < size || slices.ContainsFunc(groups, func(g social.ActivityGroup) bool { return !g.Complete }) {
		prefetch.AccessOf(ctx).Notice(why.Budget, 0)
	}
	cursors := storage.Each(groups, func(g social.ActivityGroup) string {
		if g.Err != nil { // it is not shown
			return spellActivity(r.Cursors, g.ActivityMark)
		}
		return spellActivity(prefetch.Unsealed, g.ActivityMark)
	})
	var next func(*cursor.Sealer) string
	if end != (social.ActivityMark{}) || len(groups) == 0 {
		next = func(seal *cursor.Sealer) string { return spellActivity(seal, end) }
	}
	nodes := make([]*model.Activity, len(groups))
	if items := f.Below[0].Items; items != nil {
		prefetch.Fetch(ctx, prefetch.RowsOn(groups, items))
		nodes = activityOf(ctx, viewer, groups, items, prefetch.ItemPaths(ctx, f))
	}
	c.Page = prefetch.PageOf(prefetch.PageInfo(r.Cursors, cursors, more, next), nodes, func(i int) model.ActivityEdge {
		return model.ActivityEdge{Cursor: cursors[i], Node: nodes[i]}
	})
	return nil
}

// activityPart is what concerns the viewer, of some kinds and behind a mark.
type activityPart struct {
	kinds [len(activityKinds)]bool
	mark  social.ActivityMark
}

// servesActivity reports whether the schema has a kind.
func (r *Resolver) servesActivity(kind model.ActivityKind) bool {
	return r.Schema == nil || r.Schema.Types["ActivityKind"].EnumValues.ForName(kind.String()) != nil
}

// activity is that of all aliases in a request that ask for the same part.
func (r *Resolver) activity(ctx context.Context, viewer storage.UserID, part activityPart) (*social.Activity, error) {
	return prefetch.Shared(ctx, part, func() (*social.Activity, error) {
		g, err := graphOf(ctx)
		if err != nil {
			return nil, err
		}
		of := social.ActivityOf{
			User: viewer, After: part.mark, Left: prefetch.AccessOf(ctx).Left(),
			Asked: storage.MicrosOf(r.Relations.Now().Add(-r.Relations.Rules.Load().RequestTTL)),
		}
		for kind, is := range part.kinds {
			if is {
				of.Kinds = append(of.Kinds, social.ActivityKind(kind))
			}
		}
		return g.Activity(ctx, of)
	})
}

// unseen counts what is new since the viewer last looked, of the kinds of a part.
func (r *Resolver) unseen(ctx context.Context, viewer storage.UserID, part activityPart) (*model.UnseenActivity, error) {
	part.mark = social.ActivityMark{}
	seen, err := r.seen(ctx, storage.Seen{User: viewer, Activity: true})
	if err != nil {
		return nil, err
	}
	a, err := r.activity(ctx, viewer, part)
	if err != nil {
		return nil, err
	}
	unseen, more, err := a.Newer(ctx, seen)
	if err != nil {
		return nil, err
	}
	return &model.UnseenActivity{Count: int32(len(unseen)), HasMore: more}, nil
}

// activityOf makes groups, of which what is selected has been fetched. One that may have to be hidden is nil, with an error at its path.
func activityOf(ctx context.Context, viewer storage.UserID, groups []social.ActivityGroup, on []*selections.Object, at prefetch.Paths) []*model.Activity {
	all, made, index := make([]*model.Activity, len(groups)), []*model.Activity(nil), []int(nil)
	for i, g := range groups {
		if g.Err != nil {
			prefetch.FailAt(ctx, at(i), g.Err)
			continue
		}
		all[i] = &model.Activity{
			ID:   fmt.Sprintf("activity_%s_%d_%d_%d", viewer, g.Kind, g.Day(), g.Post),
			Kind: activityKinds[g.Kind], Day: g.Day().Time(), At: g.At.Time(),
			By: g.Actors, OthersCount: int32(g.Others), Complete: g.Complete, On: g.On,
		}
		made, index = append(made, all[i]), append(index, i)
	}
	prefetch.ShowParts(ctx, made, on, at.Of(index...))
	return all
}

// activityActors are the users of groups.
var activityActors = prefetch.NewInset(
	func(ctx context.Context, level *prefetch.Level, f *selections.Field, groups []social.ActivityGroup) {
		var all []storage.UserID
		for _, g := range groups {
			all = append(all, g.Actors...)
		}
		prefetch.Users{IDs: prefetch.Distinct(all), Exist: true, On: f.Below}.AddTo(ctx, level)
	},
	func(ctx context.Context, made []*model.Activity, aliases []*selections.Field, at prefetch.Paths) {
		for i, a := range made {
			of := prefetch.Paths(func(int) []ast.Path { return at(i) })
			a.Actors = usersOf(ctx, prefetch.Users{IDs: a.By, Exist: true, On: prefetch.Below(aliases)}, of.Each())
		}
	})

// activityPost is the post that a group concerns.
var activityPost = prefetch.NewInset(
	func(ctx context.Context, level *prefetch.Level, f *selections.Field, groups []social.ActivityGroup) {
		var rows []storage.Post
		for _, g := range groups {
			if g.On != nil {
				rows = append(rows, *g.On)
			}
		}
		postRows{rows, f.Below}.AddTo(ctx, level)
	},
	func(ctx context.Context, made []*model.Activity, aliases []*selections.Field, at prefetch.Paths) {
		var rows []storage.Post
		var index []int
		for i, a := range made {
			if a.On != nil {
				rows, index = append(rows, *a.On), append(index, i)
			}
		}
		for k, p := range postsOf(ctx, rows, prefetch.Below(aliases), at.Of(index...)) {
			made[index[k]].Post = p
		}
	})

// activityMark reads a cursor; zero: none is given.
func (r *Resolver) activityMark(argument, text string) (m social.ActivityMark, err error) {
	if text == "" {
		return m, nil
	}
	var at, kind int64
	if err = r.Cursors.Decode(cursor.Activity, text, &at, &kind, &m.Post); err == nil && kind >= int64(len(activityKinds)) {
		err = apierr.CursorMalformed.Error("%q is not a cursor", apierr.Shortened(text, 60))
	}
	m.At, m.Kind = storage.Micros(at), social.ActivityKind(kind)
	return m, apierr.In(argument, err)
}

func spellActivity(seal *cursor.Sealer, m social.ActivityMark) string {
	return seal.Encode(cursor.Activity, int64(m.At), int64(m.Kind), m.Post)
}

// MarkActivitySeen keeps the time of the group, as [mutations.MarkFeedSeen] does.
func (r mutations) MarkActivitySeen(ctx context.Context, upTo string) (*model.AccountPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	return changeAccount(ctx, viewer, err, func() (bool, error) {
		if upTo == "" {
			return false, apierr.CursorMalformed.Error("%q is not a cursor", upTo).In("upTo")
		}
		mark, err := r.activityMark("upTo", upTo)
		if err != nil {
			return false, err
		}
		return r.Writes.See(ctx, storage.Seen{User: viewer, Activity: true}, min(mark.At, storage.MicrosOf(r.Relations.Now())))
	})
}
