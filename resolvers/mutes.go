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
	return readUsers(ctx, r.Resolver, list, audience, list.cursors(), plain)
}

// addMutes adds what the viewer has muted to its own relationships.
func addMutes(ctx context.Context, list []*model.Relationship, at paths) {
	e := accessOf(ctx)
	for i, r := range list {
		if r == nil || !e.isViewers(r.Pair) {
			continue
		}
		for _, scope := range model.AllMuteScope { // of two, which an older version may have left, the later one is the wider one
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
