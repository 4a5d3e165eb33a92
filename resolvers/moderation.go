package resolvers

import (
	"cmp"
	"context"
	"time"

	"kith/accounts"
	"kith/accounts/identity"
	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

func (r mutations) SuspendUser(ctx context.Context, id, reason string, until *time.Time) (*model.ModerationPayload, error) {
	end, badEnd := accounts.CheckEnd("until", until, r.States.Now())
	e := storage.ModerationEntry{Action: storage.Suspended, Until: cmp.Or(end, storage.Forever)}
	return r.moderate(ctx, "userId", "User", id, reason, e, badEnd)
}

func (r mutations) ReinstateUser(ctx context.Context, id, reason string) (*model.ModerationPayload, error) {
	return r.moderate(ctx, "userId", "User", id, reason, storage.ModerationEntry{Action: storage.Reinstated})
}

func (r mutations) RemovePost(ctx context.Context, id, reason string) (*model.ModerationPayload, error) {
	return r.moderate(ctx, "postId", "Post", id, reason, storage.ModerationEntry{Action: storage.PostRemoved})
}

func (r mutations) RemoveComment(ctx context.Context, id, reason string) (*model.ModerationPayload, error) {
	return r.moderate(ctx, "commentId", "Comment", id, reason, storage.ModerationEntry{Action: storage.CommentRemoved})
}

func (r mutations) ReportUser(ctx context.Context, id, reason string) (*model.ReportPayload, error) {
	reason, badReason := accounts.CheckText("reason", reason, 1, storage.MaxReasonLength)
	viewer, user, err := r.actorAndOther(ctx, id, badReason)
	if err != nil {
		return nil, err
	}
	return r.report(ctx, "userId", storage.ModerationEntry{Owner: viewer, User: user, Action: storage.UserReported, Reason: reason}, func(*social.Audience) error {
		row := loaders.For(ctx).Users.Load(user)
		if row.Err == nil && (!row.Found || prefetch.IsAbsent(ctx, user)) {
			return apierr.UserNotFound.Error("there is no such user").In("userId")
		}
		return row.Err
	})
}

func (r mutations) ReportPost(ctx context.Context, id, reason string) (*model.ReportPayload, error) {
	reason, badReason := accounts.CheckText("reason", reason, 1, storage.MaxReasonLength)
	viewer, post, err := r.actorAndPost(ctx, id, 1, badReason)
	if err != nil {
		return nil, err
	}
	e := storage.ModerationEntry{Owner: viewer, User: post.Author, Action: storage.PostReported, Number: post.Number, Reason: reason}
	return r.report(ctx, "postId", e, func(a *social.Audience) error {
		ids := []storage.PostID{post}
		prefetch.Fetch(ctx, postIDs{ids, nil})
		if err := postErr(ctx, a, post); err != nil {
			return err
		}
		if len(visiblePosts(ctx, a, ids)) == 0 {
			return errNoPost
		}
		return nil
	})
}

// report adds an entry by its owner about what an argument names, unless seen says that the owner does not see what it is about.
func (r *Resolver) report(ctx context.Context, argument string, e storage.ModerationEntry, seen func(*social.Audience) error) (*model.ReportPayload, error) {
	if e.User == e.Owner {
		return nil, apierr.In(argument, clientError(social.ErrSelf))
	}
	a, err := prefetch.AudienceOf(ctx)
	if err == nil {
		err = seen(a)
	}
	if err != nil {
		return nil, err
	}
	e.By = e.Owner.String()
	_, changed, err := r.States.Moderate(ctx, e)
	return &model.ReportPayload{Changed: changed}, viewerGone(err)
}

// moderate does something to what an argument names, which is of a type. more are the checks of the other arguments.
func (r *Resolver) moderate(ctx context.Context, argument, typeName, text, reason string, e storage.ModerationEntry, more ...error) (*model.ModerationPayload, error) {
	if err := admin(ctx); err != nil {
		return nil, err
	}
	caller, _ := identity.Caller(ctx)
	if e.By = caller.Name(); e.By == "" {
		return nil, apierr.TokenInvalid.Error("the log has to say who did this, and the token has no sub for it")
	}
	id, err := parseNodeID(argument, text)
	if err == nil && id.typeName != typeName {
		err = apierr.IDMalformed.Error("%q is not the id of a %s", abridged(text), typeName).In(argument)
	}
	var badReason error
	e.Reason, badReason = accounts.CheckText("reason", reason, 1, storage.MaxReasonLength)
	if err := apierr.All(append(more, err, badReason)...); err != nil {
		return nil, err
	}
	e.Owner, e.User, e.Number = id.numbers.From, id.numbers.From, int64(id.numbers.To)
	added, changed, err := r.States.Moderate(ctx, e)
	payload := &model.ModerationPayload{Changed: changed}
	if changed {
		payload.Entry = moderationEntry(added)
	}
	return payload, err
}

// ModerationLog is one look-up on all shards.
func (r queries) ModerationLog(ctx context.Context, userID *string, _ *int32, _ *string) (*model.ModerationConnection, error) {
	if err := admin(ctx); err != nil {
		return nil, err
	}
	args, badPage := prefetch.ParsePage(ctx, fetchQuery(ctx), cursor.Moderation)
	q := storage.PlaceQuery{After: args.After, Limit: args.Size + 1}
	var badUser error
	if userID != nil {
		q.Of.Author, badUser = parseUserID("userId", *userID)
	}
	if err := apierr.All(badPage, badUser); err != nil {
		return nil, err
	}
	rows, err := prefetch.Shared(ctx, q, func() ([]storage.ModerationEntry, error) {
		return storage.ModerationLookups.Get(ctx, r.States.Store, q)
	})
	if err != nil {
		return nil, err
	}
	shown := social.Page[storage.ModerationEntry]{Rows: rows[:min(len(rows), args.Size)], More: len(rows) > args.Size}
	p := prefetch.PageOfPlaces(r.Cursors, cursor.Moderation, shown, storage.ModerationEntry.Place)
	nodes := storage.Each(p.Rows, moderationEntry)
	return &model.ModerationConnection{Page: prefetch.PageOf(p.Info, nodes, func(i int) model.ModerationEdge {
		return model.ModerationEdge{Cursor: p.Cursors[i], Node: nodes[i]}
	})}, nil
}

var moderationActions = [...]model.ModerationAction{
	storage.Suspended: model.ModerationActionSuspended, storage.Reinstated: model.ModerationActionReinstated,
	storage.PostRemoved: model.ModerationActionPostRemoved, storage.CommentRemoved: model.ModerationActionCommentRemoved,
	storage.UserReported: model.ModerationActionUserReported, storage.PostReported: model.ModerationActionPostReported,
}

func moderationEntry(e storage.ModerationEntry) *model.ModerationEntry {
	entry := &model.ModerationEntry{At: e.At.Time(), By: e.By, Action: moderationActions[e.Action], UserID: e.User.String(), Reason: e.Reason}
	switch {
	case e.Action == storage.PostRemoved || e.Action == storage.PostReported:
		entry.PostID = new((&model.Post{Row: storage.Post{PostID: storage.PostID{Author: e.User, Number: e.Number}}}).ID())
	case e.Action == storage.CommentRemoved:
		entry.CommentID = new((&model.Comment{Row: storage.Comment{CommentID: storage.CommentID{Author: e.Owner, Number: e.Number}}}).ID())
	case e.Action == storage.Suspended && e.Until != storage.Forever:
		entry.Until = new(e.Until.Time())
	}
	return entry
}
