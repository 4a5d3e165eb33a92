package resolvers

import (
	"context"

	"kith/accounts"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

func (r mutations) Block(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	o, err := r.Relations.Block(ctx, loaders.For(ctx).Reader(), viewer, other)
	return r.relationshipPayload(ctx, viewer, other, o, err)
}

func (r mutations) Unblock(ctx context.Context, id string) (*model.RelationshipPayload, error) {
	viewer, other, err := r.actorAndOther(ctx, id)
	if err != nil {
		return nil, err
	}
	o, err := r.Relations.Unblock(ctx, viewer, other)
	return r.relationshipPayload(ctx, viewer, other, o, err)
}

func (r mutations) SetFollowMark(ctx context.Context, id string, special *bool, remark *string) (*model.RelationshipPayload, error) {
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

// BlockedUsers answers `blockedUsers`. It leaves out only hidden users: the list exists to show
// users in a block.
func (r userFields) BlockedUsers(ctx context.Context, obj *model.User, first *int32, after *string) (*model.UserConnection, error) {
	if !isViewer(ctx, obj.UserID) {
		return nil, nil
	}
	size, _, err := forwardPage(first, after)
	if err != nil {
		return nil, err
	}
	from, err := positionOf(ctx, cursor.Blocked, after)
	if err != nil {
		return nil, err
	}
	f := planned(ctx)
	n := pageNeedsOf(f)
	list := ownList{side: storage.Forward, owner: obj.UserID, kind: storage.Blocking}
	audience := social.NewAudience(obj.UserID, r.HiddenUsers, nil)
	c := &model.UserConnection{Complete: true, PageInfo: &model.PageInfo{}}
	if n.total {
		total, complete, err := list.size(ctx, r.Resolver, audience)
		c.Total, c.Complete = storage.Result[int64]{Value: int64(total), Err: err}, complete
	}
	if !n.rows {
		return c, nil
	}
	shown, err := list.page(ctx, r.Resolver, audience, from, size)
	if err != nil {
		return nil, err
	}
	spell := func(seal *cursor.Sealer, at storage.Position) string {
		return seal.Encode(cursor.Blocked, int64(at.UpdateTime), int64(at.Peer))
	}
	page := make([]item, len(shown.Edges))
	for i, e := range shown.Edges {
		page[i] = item{e.To, spell(unsealed, storage.PositionOf(list.side, e)), timeOf(e.UpdateTime)}
	}
	fetchPage(ctx, f, page)
	fill(ctx, c, f, page)
	c.Complete = c.Complete && shown.Complete
	c.PageInfo = pageInfoOf(page, shown.More, r.beyond(shown, spell))
	return c, nil
}

// beyond returns where a list continues if the budget ended within its page: at the last user examined.
func (r *Resolver) beyond(shown social.Shown, spell func(*cursor.Sealer, storage.Position) string) func() string {
	if shown.Complete {
		return nil
	}
	return func() string { return spell(r.Cursors, shown.End) }
}
