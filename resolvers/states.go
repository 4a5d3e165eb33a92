package resolvers

import (
	"context"

	"kith/graph/model"
	"kith/storage"
)

// deactivateAt answers `deactivateAccount`.
func (r *Resolver) deactivateAt(ctx context.Context) (*model.AccountPayload, error) {
	return accountPayload(ctx, r.States.Deactivate)
}

// reactivateAt answers `reactivateAccount`.
func (r *Resolver) reactivateAt(ctx context.Context) (*model.AccountPayload, error) {
	return accountPayload(ctx, r.States.Reactivate)
}

func accountPayload(ctx context.Context, change func(context.Context, storage.UserID) (bool, error)) (*model.AccountPayload, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	changed, err := change(ctx, viewer)
	if err != nil {
		return nil, viewerGone(err)
	}
	sel := payloadSelection(ctx)
	fetch(ctx, wanted{users: []storage.UserID{viewer}, exist: true, on: sel.of("user")})
	return &model.AccountPayload{Changed: changed, User: sel.user(ctx, "user", viewer, true)}, nil
}

// deleteAt answers `deleteAccount`.
func (r *Resolver) deleteAt(ctx context.Context) (*model.DeleteAccountPayload, error) {
	viewer, err := viewerOf(ctx)
	if err != nil {
		return nil, err
	}
	complete, err := r.States.Delete(ctx, viewer)
	if err != nil {
		return nil, viewerGone(err)
	}
	return &model.DeleteAccountPayload{Complete: complete}, nil
}
