package resolvers

import (
	"context"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/storage"
)

func (r mutations) AcceptFollowRequest(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeTowards(ctx, id, r.Relations.AcceptFollow)
}

func (r mutations) DeclineFollowRequest(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	return r.changeTowards(ctx, id, r.Relations.DeclineFollow)
}

func (r viewerFields) FollowRequests(ctx context.Context, obj *model.Viewer, direction model.FriendRequestDirection, _ *int32, _ *string) (*model.FollowRequestConnection, error) {
	audience, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	list := ownList{side: storage.Inverse, owner: obj.User.UserID, kind: storage.Requested}
	if direction == model.FriendRequestDirectionSent {
		list.side = storage.Forward
	}
	return readUsers(ctx, r.Resolver, list, audience, requestCursors(list.side), followRequests)
}

// requestCursors are those of a user's requests for follows on a side.
func requestCursors(side storage.Side) bound {
	return bound{kind: cursor.FollowRequests, to: []int64{int64(side)}, what: "list"}
}
