package resolvers

import (
	"context"

	"kith/accounts"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// blockAt answers `block`.
func (r *Resolver) blockAt(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	o, err := r.Relations.Block(ctx, loaders.For(ctx).Reader(), viewer, other)
	return r.relationshipPayload(ctx, viewer, other, o, err)
}

// unblockAt answers `unblock`.
func (r *Resolver) unblockAt(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	o, err := r.Relations.Unblock(ctx, viewer, other)
	return r.relationshipPayload(ctx, viewer, other, o, err)
}

// followMarkAt answers `setFollowMark`.
func (r *Resolver) followMarkAt(ctx context.Context, id string, special *bool, remark *string) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	if remark != nil {
		text, err := accounts.CheckText("remark", *remark, 0, storage.MaxRemarkLength)
		if err != nil {
			return nil, err
		}
		remark = &text
	}
	changed, err := r.Relations.Mark(ctx, viewer, other, storage.MarkChange{Special: special, Remark: remark})
	return r.relationshipPayload(ctx, viewer, other, social.Outcome{Changed: changed}, markError(err))
}

// relationshipPayload reads what the payload selects.
func (r *Resolver) relationshipPayload(ctx context.Context, viewer, other storage.UserID, o social.Outcome, err error) (*model.RelationshipPayload, error) {
	if err != nil {
		return nil, r.refusal(ctx, viewer, other, err)
	}
	d := doneBy(ctx, viewer, other, o)
	p := r.payload(ctx, payloadSelection(ctx), d)
	return &model.RelationshipPayload{
		Changed: o.Changed, ConsistencyToken: r.Tokens.Text(d.token),
		Viewer: p.viewer, User: p.user, Relationship: p.relationship,
	}, nil
}
