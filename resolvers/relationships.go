package resolvers

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/storage"
)

// relationshipsOf makes the relationships of a selection, from what the
// loaders hold. A relationship between two other users is nil if its edges are not visible. If a
// shard did not answer, the relationship is nil, with an error at its path.
func relationshipsOf(ctx context.Context, pairs []storage.Pair, on []*selections.Object, at paths) []*model.Relationship {
	e, selected := accessOf(ctx), fieldsOn(on)
	needs := needsOf(ctx, on)
	list, made := make([]*model.Relationship, len(pairs)), make([]model.Relationship, len(pairs))
	for i, p := range pairs {
		visible, err := e.isVisible(p)
		r := &made[i]
		if err == nil && visible {
			err = e.addHalves(r, p, needs)
		}
		if err != nil {
			failAt(ctx, at(i), err)
		}
		if err == nil && visible {
			r.Pair, r.IsViewers = p, p.From == e.viewer
			list[i] = r
		}
	}
	if needs&fields.Mark != 0 {
		addMarks(ctx, list, at)
	}
	if needs&fields.Mute != 0 {
		addMutes(ctx, list, at)
	}
	for _, side := range requestSides {
		if asked := aheadOn(selected, fields.Request, side); asked != nil {
			addRequests(ctx, list, side, asked, at)
		}
	}
	from := relationshipEnds(ctx, list, storage.Forward, aheadOn(selected, fields.End, storage.Forward), at)
	to := relationshipEnds(ctx, list, storage.Inverse, aheadOn(selected, fields.End, storage.Inverse), at)
	for _, r := range list {
		if r != nil {
			r.From, r.To = from[r.Pair.From], to[r.Pair.To]
		}
	}
	return list
}

// addMarks adds the viewer's notes to its own relationships.
func addMarks(ctx context.Context, list []*model.Relationship, at paths) {
	e := accessOf(ctx)
	for i, r := range list {
		if r == nil || !r.IsViewers {
			continue
		}
		r.Mark = &storage.EdgeMark{}
		if !e.isViewers(r.Pair) {
			continue
		}
		mark := e.loaders.Marks().Load(r.Pair)
		if mark.Err != nil {
			failAt(ctx, at(i), mark.Err)
			list[i] = nil
			continue
		}
		r.Mark = &mark.Value
	}
}

// requestSides are the sides that have the requests of a user: those that it has sent, and those
// that it has received.
var requestSides = [...]storage.Side{storage.Requests, storage.Inbox}

// addRequests adds the requests on one side to the viewer's own relationships.
func addRequests(ctx context.Context, list []*model.Relationship, side storage.Side, asked []*selections.Field, at paths) {
	e := accessOf(ctx)
	at = at.below(asked)
	var rows []storage.Edge
	var index []int
	for i, r := range list {
		if r == nil || !e.isViewers(r.Pair) {
			continue
		}
		row := e.loaders.Edges(side).Load(side.Pair(r.Pair.From, r.Pair.To))
		if row.Err != nil {
			failAt(ctx, at(i), row.Err)
		}
		if row.Found && row.Value.Type != storage.None {
			rows, index = append(rows, row.Value), append(index, i)
		}
	}
	requests := e.resolver.requestsOf(ctx, rows, belowOf(asked), at.of(index...))
	for k, request := range requests {
		if side == storage.Requests {
			list[index[k]].SentRequest = request
		} else {
			list[index[k]].ReceivedRequest = request
		}
	}
}

// addHalves adds the edges of a relationship that its needs name. Towards a hidden user there are
// none.
func (e *access) addHalves(r *model.Relationship, p storage.Pair, needs fields.Needs) error {
	if p.From == p.To || e.isAbsent(p.From) || e.isAbsent(p.To) {
		return nil
	}
	for _, side := range sides {
		if needs&edgeNeeds[side] == 0 {
			continue
		}
		half := e.loaders.Edges(side).Load(side.Pair(p.From, p.To))
		if half.Err != nil {
			return half.Err
		}
		if side == storage.Forward {
			r.Out = half.Value
		} else {
			r.Back = half.Value
		}
	}
	return nil
}

// relationshipEnds makes the users at one end of all relationships, by id; it makes none if they
// are not selected. Errors are reported only below relationships that are not null.
func relationshipEnds(ctx context.Context, list []*model.Relationship, side storage.Side, asked []*selections.Field, at paths) map[storage.UserID]*model.User {
	if asked == nil {
		return nil
	}
	on := belowOf(asked)
	var pairs []storage.Pair
	for _, r := range list {
		if r != nil {
			pairs = append(pairs, r.Pair)
		}
	}
	ids := endsOf(pairs, side)
	where := func(k int) (all []ast.Path) {
		for i, r := range list {
			if r != nil && side.Owner(r.Pair) == ids[k] {
				all = append(all, at.below(asked)(i)...)
			}
		}
		return all
	}
	ends := make(map[storage.UserID]*model.User, len(ids))
	for k, u := range usersOf(ctx, wanted{users: ids, exist: true, on: on}, where) {
		ends[ids[k]] = u
	}
	return ends
}

func (queries) Relationship(ctx context.Context, _, _ string) (*model.Relationship, error) {
	return only(relationships(ctx, here(ctx)))
}

func (queries) Relationships(ctx context.Context, _, _ []string) ([]*model.Relationship, error) {
	return relationships(ctx, each(ctx))
}

func relationships(ctx context.Context, at paths) ([]*model.Relationship, error) {
	f := fetchQuery(ctx)
	pairs, err := argument[given[storage.Pair]](stateOf(ctx), f)
	if err != nil {
		return nil, err
	}
	return placed(ctx, pairs, relationshipsOf(ctx, pairs.good, f.Below, pairs.at(at)), at), nil
}

func (userFields) Relationship(ctx context.Context, obj *model.User, _ string) (*model.Relationship, error) {
	f := planned(ctx)
	other, err := argument[storage.UserID](stateOf(ctx), f)
	if err != nil {
		return nil, err
	}
	return relationshipsOf(ctx, []storage.Pair{{From: obj.UserID, To: other}}, f.Below, here(ctx))[0], nil
}

func (userFields) ViewerRelationship(_ context.Context, obj *model.User) (*model.Relationship, error) {
	return obj.Viewers, nil
}

func (relationshipFields) From(_ context.Context, obj *model.Relationship) (*model.User, error) {
	return obj.From, nil
}

func (relationshipFields) To(_ context.Context, obj *model.Relationship) (*model.User, error) {
	return obj.To, nil
}
