package resolvers

import (
	"context"
	"errors"
	"time"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/consistency"
	"kith/graph/declared"
	"kith/graph/model"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

func (r mutations) Block(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeTowards(ctx, id, func(ctx context.Context, viewer, other storage.UserID) (social.Outcome, error) {
		o, err := r.Relations.Block(ctx, loaders.For(ctx).Reader(), viewer, other)
		return o, blockError(err)
	})
}

// blockError is for blocks.
var blockError = refusals{{storage.ErrLimitReached, apierr.TooManyBlocks.Error("you block as many users as one may")}}.tell

func (r mutations) Unblock(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeTowards(ctx, id, r.Relations.Unblock)
}

// changeTowards changes what the viewer is to another user.
func (r *Resolver) changeTowards(ctx context.Context, id string, act func(ctx context.Context, viewer, other storage.UserID) (social.Outcome, error)) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	o, err := act(ctx, viewer, other)
	return r.relationshipPayload(ctx, viewer, other, o, err)
}

func (r mutations) SetFollowMark(ctx context.Context, id string, special *bool, remark *string, attributes map[string]any) (*model.RelationshipPayload, error) {
	remark, badRemark := checked(accounts.CheckText, "remark", orRemoved(ctx, "remark", remark), 0, storage.MaxRemarkLength)
	noted, badAttributes := attributeChange(r.Declared.Attributes.Follow, attributes)
	viewer, other, err := r.actorAndOther(ctx, id, badRemark, badAttributes)
	if err != nil {
		return nil, err
	}
	changed, err := r.Relations.Mark(ctx, viewer, other, storage.MarkChange{Special: orRemoved(ctx, "special", special), Remark: remark, Attributes: noted})
	if changed {
		consistency.For(ctx).Wrote(consistency.Beside(viewer))
	}
	if errors.Is(err, storage.ErrAttributesTooLong) {
		return nil, attributesError(err)
	}
	return r.relationshipPayload(ctx, viewer, other, social.Outcome{Changed: changed}, markError(err))
}

// relationshipPayload reads what the payload selects.
func (r *Resolver) relationshipPayload(ctx context.Context, viewer, other storage.UserID, o social.Outcome, err error, requests ...model.RequestRow) (*model.RelationshipPayload, error) {
	if err != nil {
		return nil, r.refusal(ctx, viewer, other, err)
	}
	d := doneBy(ctx, viewer, other, o)
	d.requests = requests
	return r.payload(ctx, o.Changed, d), nil
}

// BlockedUsers leaves out only hidden users: the list exists to show users in a block.
func (r viewerFields) BlockedUsers(ctx context.Context, obj *model.Viewer, _ *int32, _ *string) (*model.UserConnection, error) {
	list := ownList{side: storage.Forward, owner: obj.User.UserID, kind: storage.Blocking}
	return readUsers(ctx, list, social.NewAudience(obj.User.UserID, r.HiddenUsers, nil), blockCursors)
}

func (r mutations) Mute(ctx context.Context, id string, scope model.MuteScope, until *time.Time) (*model.RelationshipPayload, error) {
	var detail storage.DetailChange
	var badEnd error
	detail.EndsAt, badEnd = accounts.CheckEnd("until", until, r.Relations.Now())
	viewer, other, err := r.actorAndOther(ctx, id, badEnd)
	if err != nil {
		return nil, err
	}
	made, stale := r.Relations.Relate(ctx, loaders.For(ctx).Reader(), viewer, muteKinds[scope], []storage.UserID{other}, detail)
	o, err := outcomeOf(made[0], stale)
	return r.relationshipPayload(ctx, viewer, other, o, err)
}

func (r mutations) Unmute(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeTowards(ctx, id, func(ctx context.Context, viewer, other storage.UserID) (social.Outcome, error) {
		ended, stale := r.Relations.Unrelate(ctx, viewer, declared.Mutes, []storage.UserID{other}) // of whatever scope
		return outcomeOf(ended[0], stale)
	})
}

// outcomeOf is what the change of an edge of a kind has come to.
func outcomeOf(made storage.Result[storage.Changed], stale bool) (social.Outcome, error) {
	return social.Outcome{Changed: made.Value.Changed, Kept: made.Value.Kept, Written: made.Value.Written(), Stale: stale}, relationError(made.Err)
}

func (viewerFields) MutedUsers(ctx context.Context, obj *model.Viewer, scope model.MuteScope, _ *int32, _ *string) (*model.UserConnection, error) {
	audience, err := prefetch.AudienceOf(ctx)
	if err != nil {
		return nil, err
	}
	list := edgesFrom(muteKinds[scope].Number, obj.User.UserID)
	return readUsers(ctx, list, audience, list.cursorsOf())
}

func (r mutations) DismissSuggestion(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeTowards(ctx, id, func(ctx context.Context, viewer, other storage.UserID) (social.Outcome, error) {
		made, _ := r.Relations.Relate(ctx, loaders.For(ctx).Reader(), viewer, declared.Dismissals, []storage.UserID{other}, storage.DetailChange{}) // nobody reads the inverse side
		made[0].Value.Changed = made[0].Value.Changed && !made[0].Value.Kept                                                                        // otherwise it only lasts longer
		return outcomeOf(made[0], false)
	})
}

func (r mutations) UndismissSuggestion(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	payload, err := r.changeTowards(ctx, id, func(ctx context.Context, viewer, other storage.UserID) (social.Outcome, error) {
		if viewer == other {
			return social.Outcome{}, social.ErrSelf
		}
		ended, _ := r.Relations.Unrelate(ctx, viewer, declared.Dismissals, []storage.UserID{other})
		return outcomeOf(ended[0], false)
	})
	if err == nil && payload.Changed {
		payload.UndismissedUserID = &id
	}
	return payload, err
}
