package resolvers

import (
	"context"
	"errors"
	"time"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

func (r mutations) Mute(ctx context.Context, id string, scope model.MuteScope, until *time.Time) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	var detail storage.DetailChange
	if until != nil {
		if detail.EndsAt, err = accounts.CheckEnd("until", *until, r.Relations.Now()); err != nil {
			return nil, err
		}
	}
	made, stale := r.Relations.Relate(ctx, loaders.For(ctx).Reader(), viewer, muteKinds[scope], []storage.UserID{other}, detail)
	return r.muted(ctx, viewer, other, made[0], stale)
}

func (r mutations) Unmute(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	ended, stale := r.Relations.Unrelate(ctx, viewer, storage.Mutes, []storage.UserID{other}) // of whatever scope
	return r.muted(ctx, viewer, other, ended[0], stale)
}

func (r *Resolver) muted(ctx context.Context, viewer, other storage.UserID, made storage.Result[storage.Changed], stale bool) (*model.RelationshipPayload, error) {
	return r.relationshipPayload(ctx, viewer, other, social.Outcome{Changed: made.Value.Changed, Written: made.Value.Written(), Stale: stale}, relationError(made.Err))
}

// relationError says that there are too many relations of a kind, or that their attributes are too long.
func relationError(err error) error {
	if errors.Is(err, storage.ErrLimitReached) {
		return apierr.TooManyRelations.Error("you have as many of these as one may")
	}
	return attributesError(err)
}

func (r viewerFields) MutedUsers(ctx context.Context, obj *model.Viewer, scope model.MuteScope, _ *int32, _ *string) (*model.UserConnection, error) {
	audience, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	list := edgesFrom(muteKinds[scope].Number, obj.User.UserID)
	return readUsers(ctx, r.Resolver, list, audience, list.cursorsOf(), plain)
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
