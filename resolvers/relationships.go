package resolvers

import (
	"context"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/declared"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/graph/why"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// muteKinds are the kinds of relations that mute, by what they leave out.
var muteKinds = map[model.MuteScope]declared.Kind{model.MuteScopeEverything: declared.Mutes, model.MuteScopePosts: declared.PostMutes}

// isBetweenOthers reports whether the visibility of a relationship has to be checked: the viewer
// may see its own relationships, and a relationship of a user with itself is empty.
func isBetweenOthers(e *prefetch.Access, p storage.Pair) bool {
	return p.From != e.Viewer && p.To != e.Viewer && p.From != p.To
}

// isViewers reports whether a relationship is the viewer's own, towards a user who is not a hidden user.
func isViewers(e *prefetch.Access, p storage.Pair) bool {
	return e.Viewer != 0 && p.From == e.Viewer && p.To != e.Viewer && !e.IsAbsent(p.To)
}

// isVisible reports whether the viewer may see a relationship. A relationship between two other users shows what is on both lists of the
// first user, so both lists have to be open, whatever the second user shows: otherwise a viewer could read a closed list by asking about
// every user who may be on it. A user in a block with the viewer is hidden here as in lists.
func isVisible(e *prefetch.Access, p storage.Pair) (bool, error) {
	if !isBetweenOthers(e, p) {
		return true, nil
	}
	a, err := e.Audience()
	if err == nil && a.InBlock(p.To) && !a.IsAbsent(p.To) {
		e.Notice(why.Block, p.To)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return e.AreOpen(social.List{Side: storage.Forward, Owner: p.From}, social.List{Side: storage.Inverse, Owner: p.From})
}

// relationshipsOf makes the relationships of a selection, from what the loaders hold. A relationship between two other users is nil if its
// edges are not visible. If a shard did not answer, the relationship is nil, with an error at its path.
func relationshipsOf(ctx context.Context, pairs []storage.Pair, on []*selections.Object, at prefetch.Paths) []*model.Relationship {
	e := prefetch.AccessOf(ctx)
	needs := prefetch.NeedsOf(ctx, on)
	list, made := make([]*model.Relationship, len(pairs)), make([]model.Relationship, len(pairs))
	for i, p := range pairs {
		e.At(at, i)
		visible, err := isVisible(e, p)
		r := &made[i]
		if err == nil && visible {
			err = addHalves(e, r, p, needs)
		}
		if err != nil {
			prefetch.FailAt(ctx, at(i), err)
		}
		if err == nil && visible {
			r.Pair, r.IsViewers = p, p.From == e.Viewer
			list[i] = r
		}
	}
	if needs&fields.Mark != 0 {
		addMarks(ctx, list, at)
	}
	if needs&fields.Mute != 0 {
		addMutes(ctx, list, at)
	}
	prefetch.ShowParts(ctx, list, on, at)
	return list
}

// addMarks adds the viewer's notes to its own relationships.
func addMarks(ctx context.Context, list []*model.Relationship, at prefetch.Paths) {
	e := prefetch.AccessOf(ctx)
	for i, r := range list {
		if r == nil || !r.IsViewers {
			continue
		}
		r.Mark = &storage.EdgeMark{}
		if !isViewers(e, r.Pair) {
			continue
		}
		mark := loaders.Of(e.Loaders, storage.MarkLookups).Load(r.Pair)
		if mark.Err != nil {
			prefetch.FailAt(ctx, at(i), mark.Err)
			list[i] = nil
			continue
		}
		r.Mark = &mark.Value
	}
}

// requestSides are the sides that have the requests of a user: those that it has sent, and those that it has received.
var requestSides = map[model.RequestKind][2]storage.Side{
	model.RequestKindFriend: {storage.Requests, storage.Inbox},
	model.RequestKindFollow: {storage.Forward, storage.Inverse},
}

// addMutes adds what the viewer has muted to its own relationships.
func addMutes(ctx context.Context, list []*model.Relationship, at prefetch.Paths) {
	e := prefetch.AccessOf(ctx)
	for i, r := range list {
		if r == nil || !isViewers(e, r.Pair) {
			continue
		}
		for _, scope := range model.AllMuteScope { // of two, which an import may have left, the later one is the wider one
			pair := muteKinds[scope].Pair(r.Pair.From, r.Pair.To)
			edge := loaders.Of(e.Loaders, storage.EdgeLookups[storage.Relations]).Load(pair)
			if edge.Err == nil && edge.Value.Type == storage.Related {
				detail := loaders.Of(e.Loaders, storage.DetailLookups).Load(pair)
				edge.Err = detail.Err
				r.Mute = &model.Mute{Scope: scope, EndsAt: detail.Value.EndsAt}
			}
			if edge.Err != nil {
				prefetch.FailAt(ctx, at(i), edge.Err)
				list[i] = nil
				break
			}
		}
	}
}

// addHalves adds the edges of a relationship that its needs name. Towards a hidden user there are none.
func addHalves(e *prefetch.Access, r *model.Relationship, p storage.Pair, needs fields.Needs) error {
	if p.From == p.To || e.IsAbsent(p.From) || e.IsAbsent(p.To) {
		return nil
	}
	for side, need := range edgeNeeds {
		if needs&need == 0 {
			continue
		}
		side := storage.Side(side)
		half := loaders.Of(e.Loaders, storage.EdgeLookups[side]).Load(side.Pair(p.From, p.To))
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
func relationshipEnd(side storage.Side) *prefetch.Inset[storage.Pair, model.Relationship] {
	ask := func(_ context.Context, level *prefetch.Level, f *selections.Field, pairs []storage.Pair) {
		level.Next = append(level.Next, prefetch.Users{IDs: endsOf(pairs, side), Exist: true, On: f.Below})
	}
	return prefetch.NewInset(ask, func(ctx context.Context, list []*model.Relationship, aliases []*selections.Field, at prefetch.Paths) {
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
		for k, u := range usersOf(ctx, prefetch.Users{IDs: ids, Exist: true, On: prefetch.Below(aliases)}, where) {
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
var relationshipTo = prefetch.NewField(
	func(ctx context.Context, f *selections.Field) (storage.UserID, error) {
		return userArgument(ctx, f, "to")
	},
	func(ctx context.Context, level *prefetch.Level, f *selections.Field, other storage.UserID, users []storage.UserID) {
		relationshipPairs{storage.Each(users, func(id storage.UserID) storage.Pair { return storage.Pair{From: id, To: other} }), f.Below}.AddTo(ctx, level)
	})

// viewerAmong says which of the users is the viewer.
var viewerAmong = prefetch.NewInset(func(context.Context, *prefetch.Level, *selections.Field, []storage.UserID) {},
	func(ctx context.Context, users []*model.User, _ []*selections.Field, _ prefetch.Paths) {
		for _, u := range users {
			if u != nil {
				u.IsViewer = prefetch.IsViewer(ctx, u.UserID)
			}
		}
	})

// viewerRelationship is that of the viewer to another user.
var viewerRelationship = prefetch.NewInset(
	func(ctx context.Context, level *prefetch.Level, f *selections.Field, users []storage.UserID) {
		if level.Viewer != 0 {
			relationshipPairs{pairsFrom(level.Viewer, users), f.Below}.AddTo(ctx, level)
		}
	},
	func(ctx context.Context, users []*model.User, aliases []*selections.Field, at prefetch.Paths) {
		viewer := prefetch.AccessOf(ctx).Viewer
		if viewer == 0 {
			return
		}
		pairs, index := make([]storage.Pair, 0, len(users)), make([]int, 0, len(users))
		for i, u := range users {
			if u != nil && u.UserID != viewer {
				pairs, index = append(pairs, storage.Pair{From: viewer, To: u.UserID}), append(index, i)
			}
		}
		for k, r := range relationshipsOf(ctx, pairs, prefetch.Below(aliases), at.Of(index...)) {
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
var relationshipsField = prefetch.NewField(
	func(ctx context.Context, f *selections.Field) (prefetch.Inputs[storage.Pair], error) {
		return pairsOf(texts(ctx, f, "from"), texts(ctx, f, "to"))
	},
	func(ctx context.Context, level *prefetch.Level, f *selections.Field, pairs prefetch.Inputs[storage.Pair], _ []prefetch.Root) {
		relationshipPairs{pairs.Good, f.Below}.AddTo(ctx, level)
	})

func askRelationshipNodes(ctx context.Context, level *prefetch.Level, ids []nodeID, on []*selections.Object) {
	relationshipPairs{storage.Each(ids, nodeID.pair), on}.AddTo(ctx, level)
}

// relationshipPairs are relationships.
type relationshipPairs prefetch.Rows[storage.Pair]

func (w relationshipPairs) AddTo(ctx context.Context, level *prefetch.Level) {
	needs, pairs := prefetch.NeedsOf(ctx, w.On), w.Rows
	for side, edge := range edgeNeeds {
		if needs&edge != 0 {
			level.Ask(loaders.Of(level.Loaders, storage.EdgeLookups[storage.Side(side)]).Ask(seenFrom(storage.Side(side), pairs)))
		}
	}
	var own []storage.Pair
	var shown prefetch.IDSet // users whose lists decide whether the viewer sees a relationship with another user
	for _, p := range pairs {
		switch {
		case isViewers(level.Access, p):
			own = append(own, p)
		case isBetweenOthers(level.Access, p):
			shown.Add(p.From, struct{}{})
		}
	}
	for _, id := range shown.Keys() {
		level.Opens = append(level.Opens, bothLists(id)...)
	}
	if needs&fields.Mark != 0 {
		level.Ask(loaders.Of(level.Loaders, storage.MarkLookups).Ask(own))
	}
	if needs&fields.Mute != 0 {
		for _, k := range muteKinds {
			mutes := storage.Each(own, func(p storage.Pair) storage.Pair { return k.Pair(p.From, p.To) })
			level.Ask(loaders.Of(level.Loaders, storage.EdgeLookups[storage.Relations]).Ask(mutes), loaders.Of(level.Loaders, storage.DetailLookups).Ask(mutes))
		}
	}
	prefetch.Rows[storage.Pair](w).AddTo(ctx, level)
}

// edgeNeeds are the needs of each half of a relationship.
var edgeNeeds = [...]fields.Needs{storage.Forward: fields.Edge, storage.Inverse: fields.Back}

// seenFrom turns pairs for a side so that both halves of a relationship are read on the shard of its first user: from → to is in its
// `following`, to → from in its `follower`. A user's relation to itself has nothing to read.
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
	return prefetch.Distinct(storage.Each(pairs, side.Owner))
}

func (queries) Relationship(ctx context.Context, _, _ string) (*model.Relationship, error) {
	return only(relationships(ctx, prefetch.Here(ctx)))
}

func (queries) Relationships(ctx context.Context, _, _ []string) ([]*model.Relationship, error) {
	return relationships(ctx, prefetch.Each(ctx))
}

func relationships(ctx context.Context, at prefetch.Paths) ([]*model.Relationship, error) {
	f := fetchQuery(ctx)
	pairs, err := prefetch.ArgumentsOf[prefetch.Inputs[storage.Pair]](prefetch.RequestOf(ctx), f)
	if err != nil {
		return nil, err
	}
	return prefetch.Placed(ctx, pairs, relationshipsOf(ctx, pairs.Good, f.Below, pairs.At(at)), at), nil
}

func (userFields) Relationship(ctx context.Context, obj *model.User, _ string) (*model.Relationship, error) {
	f, other, err := prefetch.RunningWith[storage.UserID](ctx)
	if err != nil {
		return nil, err
	}
	return relationshipsOf(ctx, []storage.Pair{{From: obj.UserID, To: other}}, f.Below, prefetch.Here(ctx))[0], nil
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
