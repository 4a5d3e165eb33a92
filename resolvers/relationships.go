package resolvers

import (
	"context"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/storage"
)

// muteKinds are the kinds of relations that mute, by what they leave out.
var muteKinds = map[model.MuteScope]storage.Kind{model.MuteScopeEverything: storage.Mutes, model.MuteScopePosts: storage.PostMutes}

// relationshipsOf makes the relationships of a selection, from what the
// loaders hold. A relationship between two other users is nil if its edges are not visible. If a
// shard did not answer, the relationship is nil, with an error at its path.
func relationshipsOf(ctx context.Context, pairs []storage.Pair, on []*selections.Object, at paths) []*model.Relationship {
	e := accessOf(ctx)
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
	showParts(ctx, list, on, at)
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
		mark := loaders.Of(e.loaders, storage.MarkLookups).Load(r.Pair)
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

// addMutes adds what the viewer has muted to its own relationships.
func addMutes(ctx context.Context, list []*model.Relationship, at paths) {
	e := accessOf(ctx)
	for i, r := range list {
		if r == nil || !e.isViewers(r.Pair) {
			continue
		}
		for _, scope := range model.AllMuteScope { // of two, which an older version may have left, the later one is the wider one
			pair := muteKinds[scope].Pair(r.Pair.From, r.Pair.To)
			edge := loaders.Of(e.loaders, storage.EdgeLookups[storage.Relations]).Load(pair)
			if edge.Err == nil && edge.Value.Type == storage.Related {
				detail := loaders.Of(e.loaders, storage.DetailLookups).Load(pair)
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
		half := loaders.Of(e.loaders, storage.EdgeLookups[side]).Load(side.Pair(p.From, p.To))
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

// relationshipEnd is the user at one end of a relationship. Errors are reported only below relationships that are not null.
func relationshipEnd(side storage.Side) *inset[storage.Pair, model.Relationship] {
	ask := func(_ context.Context, b *batch, f *selections.Field, pairs []storage.Pair) {
		b.next = append(b.next, wantedUsers{ids: endsOf(pairs, side), exist: true, on: f.Below})
	}
	return insetOf(ask, func(ctx context.Context, list []*model.Relationship, aliases []*selections.Field, at paths) {
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
					all = append(all, at(i)...)
				}
			}
			return all
		}
		ends := make(map[storage.UserID]*model.User, len(ids))
		for k, u := range usersOf(ctx, wantedUsers{ids: ids, exist: true, on: belowOf(aliases)}, where) {
			ends[ids[k]] = u
		}
		for _, r := range list {
			switch {
			case r == nil:
			case side == storage.Forward:
				r.From = ends[r.Pair.From]
			default:
				r.To = ends[r.Pair.To]
			}
		}
	})
}

// relationshipTo is the relationship of a user to that of the argument `to`.
var relationshipTo = fieldOf(
	func(ctx context.Context, f *selections.Field) (storage.UserID, error) {
		return parseUserID("to", strings.Join(texts(ctx, f, "to"), ""))
	},
	func(ctx context.Context, b *batch, f *selections.Field, other storage.UserID, users []storage.UserID) {
		wantedPairs{storage.Each(users, func(id storage.UserID) storage.Pair { return storage.Pair{From: id, To: other} }), f.Below}.add(ctx, b)
	})

// viewerAmong says which of the users is the viewer.
var viewerAmong = insetOf(func(context.Context, *batch, *selections.Field, []storage.UserID) {},
	func(ctx context.Context, users []*model.User, _ []*selections.Field, _ paths) {
		for _, u := range users {
			if u != nil {
				u.IsViewer = isViewer(ctx, u.UserID)
			}
		}
	})

// viewerRelationship is that of the viewer to another user.
var viewerRelationship = insetOf(
	func(ctx context.Context, b *batch, f *selections.Field, users []storage.UserID) {
		if b.viewer != 0 {
			wantedPairs{pairsFrom(b.viewer, users), f.Below}.add(ctx, b)
		}
	},
	func(ctx context.Context, users []*model.User, aliases []*selections.Field, at paths) {
		viewer := accessOf(ctx).viewer
		if viewer == 0 {
			return
		}
		pairs, index := make([]storage.Pair, 0, len(users)), make([]int, 0, len(users))
		for i, u := range users {
			if u != nil && u.UserID != viewer {
				pairs, index = append(pairs, storage.Pair{From: viewer, To: u.UserID}), append(index, i)
			}
		}
		for k, r := range relationshipsOf(ctx, pairs, belowOf(aliases), at.of(index...)) {
			users[index[k]].Viewers = r
		}
	})

// pairsFrom are the pairs of the viewer and others.
func pairsFrom(viewer storage.UserID, users []storage.UserID) []storage.Pair {
	var pairs []storage.Pair
	for _, id := range users {
		if id != viewer {
			pairs = append(pairs, storage.Pair{From: viewer, To: id})
		}
	}
	return pairs
}

// relationshipsField are the root fields `relationship` and `relationships`.
var relationshipsField = fieldOf(
	func(ctx context.Context, f *selections.Field) (given[storage.Pair], error) {
		return pairsOf(texts(ctx, f, "from"), texts(ctx, f, "to"))
	},
	func(ctx context.Context, b *batch, f *selections.Field, pairs given[storage.Pair], _ []query) {
		wantedPairs{pairs.good, f.Below}.add(ctx, b)
	})

func askRelationshipNodes(ctx context.Context, b *batch, ids []nodeID, on []*selections.Object) {
	wantedPairs{storage.Each(ids, nodeID.pair), on}.add(ctx, b)
}

// wantedPairs are relationships.
type wantedPairs wantedRows[storage.Pair]

func (w wantedPairs) add(ctx context.Context, b *batch) {
	needs, pairs := needsOf(ctx, w.on), w.rows
	for side, edge := range edgeNeeds {
		if needs&edge != 0 {
			b.ask(loaders.Of(b.loaders, storage.EdgeLookups[storage.Side(side)]).Ask(seenFrom(storage.Side(side), pairs)))
		}
	}
	var own []storage.Pair
	var shown idSet // users whose lists decide whether the viewer sees a relationship with another user
	for _, p := range pairs {
		switch {
		case b.isViewers(p):
			own = append(own, p)
		case b.isBetweenOthers(p):
			shown.Add(p.From, struct{}{})
		}
	}
	for _, id := range shown.Keys() {
		b.opens = append(b.opens, bothLists(id)...)
	}
	if needs&fields.Mark != 0 {
		b.ask(loaders.Of(b.loaders, storage.MarkLookups).Ask(own))
	}
	if needs&fields.Mute != 0 {
		for _, k := range muteKinds {
			mutes := storage.Each(own, func(p storage.Pair) storage.Pair { return k.Pair(p.From, p.To) })
			b.ask(loaders.Of(b.loaders, storage.EdgeLookups[storage.Relations]).Ask(mutes), loaders.Of(b.loaders, storage.DetailLookups).Ask(mutes))
		}
	}
	wantedRows[storage.Pair](w).add(ctx, b)
}

// edgeNeeds are the needs of each half of a relationship.
var edgeNeeds = [...]fields.Needs{storage.Forward: fields.Edge, storage.Inverse: fields.Back}

// seenFrom turns pairs for a side so that both halves of a relationship are read
// on the shard of its first user: from → to is in its `following`, to → from in
// its `follower`. A user's relation to itself has nothing to read.
func seenFrom(side storage.Side, pairs []storage.Pair) []storage.Pair {
	turned := make([]storage.Pair, 0, len(pairs))
	for _, p := range pairs {
		if p.From != p.To {
			turned = append(turned, side.Pair(p.From, p.To))
		}
	}
	return turned
}

// endsOf lists one end of every pair, each once.
func endsOf(pairs []storage.Pair, side storage.Side) []storage.UserID {
	var ends idSet
	for _, p := range pairs {
		ends.Add(side.Owner(p), struct{}{})
	}
	return ends.Keys()
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
