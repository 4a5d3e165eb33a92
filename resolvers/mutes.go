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

// muteKinds are the kinds of relations that mute, by what they leave out.
var muteKinds = map[model.MuteScope]storage.Kind{model.MuteScopeEverything: storage.Mutes, model.MuteScopePosts: storage.PostMutes}

// Mute makes a relation of one kind, and ends that of the other.
func (r mutations) Mute(ctx context.Context, id string, scope model.MuteScope, until *time.Time) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	detail := storage.Detail{}
	if until != nil {
		if detail.EndsAt, err = accounts.CheckEnd("until", *until, r.Relations.Now()); err != nil {
			return nil, err
		}
	}
	made, stale := r.Relations.Relate(ctx, loaders.For(ctx).Reader(), viewer, muteKinds[scope], []storage.UserID{other}, detail)
	if err := made[0].Err; err != nil {
		return r.relationshipPayload(ctx, viewer, other, social.Outcome{}, relationError(err))
	}
	return r.endMutes(ctx, viewer, other, social.Outcome{Changed: made[0].Value.Changed, Stale: stale}, scope)
}

func (r mutations) Unmute(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.endMutes(ctx, viewer, other, social.Outcome{}, "")
}

// relationError says that there are too many relations of a kind.
func relationError(err error) error {
	if errors.Is(err, storage.ErrLimitReached) {
		return apierr.TooManyRelations.Error("you have as many of these as one may")
	}
	return err
}

// endMutes ends the mutes of a user, but for one scope.
func (r mutations) endMutes(ctx context.Context, viewer, other storage.UserID, o social.Outcome, but model.MuteScope) (*model.RelationshipPayload, error) {
	for scope, kind := range muteKinds {
		if scope == but {
			continue
		}
		ended, stale := r.Relations.Unrelate(ctx, viewer, kind, []storage.UserID{other})
		if err := ended[0].Err; err != nil {
			return r.relationshipPayload(ctx, viewer, other, social.Outcome{}, err)
		}
		o.Changed, o.Stale = o.Changed || ended[0].Value.Changed, o.Stale || stale
	}
	return r.relationshipPayload(ctx, viewer, other, o, nil)
}

func (r viewerFields) MutedUsers(ctx context.Context, obj *model.Viewer, scope model.MuteScope, _ *int32, _ *string) (*model.UserConnection, error) {
	audience, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	list := edgesFrom(muteKinds[scope].Number, obj.User.UserID)
	users, shown, err := list.users(ctx, r.Resolver, planned(ctx), audience, list.cursors())
	if err != nil {
		return nil, err
	}
	return plain(users, shown), nil
}

// addMutes adds what the viewer has muted to its own relationships.
func addMutes(ctx context.Context, list []*model.Relationship, at paths) {
	e := accessOf(ctx)
	for i, r := range list {
		if r == nil || !e.isViewers(r.Pair) {
			continue
		}
		for _, scope := range model.AllMuteScope { // of two, which a crash may have left, the later one is the wider one
			pair := muteKinds[scope].Pair(r.Pair.From, r.Pair.To)
			edge := e.loaders.Edges(storage.Relations).Load(pair)
			if edge.Err == nil && edge.Value.Type == storage.Related {
				detail := e.loaders.Details().Load(pair)
				edge.Err = detail.Err
				r.Mute = &model.Mute{Scope: scope, EndsAt: detail.Value.EndsAt}
			}
			if edge.Err != nil {
				failAt(ctx, at(i), edge.Err)
				list[i] = nil
				break
			}
		}
	}
}
