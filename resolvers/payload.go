package resolvers

import (
	"cmp"
	"context"

	"kith/graph/consistency"
	"kith/graph/declared"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

// done is the effect of a mutation between the viewer and another user.
type done struct {
	viewer, other storage.UserID
	made          []storage.Row      // forward rows that it has written, none if it has changed nothing
	requests      []model.RequestRow // that it has made, answered or withdrawn: at most one

	token consistency.Token // of all that was written
	late  consistency.Token // of rows that may not have been propagated to their other side yet
	stale bool              // some of it will not be propagated without a repair
}

// doneBy is the effect of an outcome of the rules.
func doneBy(ctx context.Context, viewer, other storage.UserID, o social.Outcome) done {
	d := done{viewer: viewer, other: other, stale: o.Stale}
	for _, w := range o.Written {
		if o.Changed && !o.Kept && w.Edge.UpdateTime >= o.Row.Edge.UpdateTime { // older ones are only written to their other side
			d.made = append(d.made, w.Row)
		}
		d.token = append(d.token, markOf(w.Row))
		if !w.Inverse {
			d.late = append(d.late, markOf(w.Row))
		}
		if w.Side == storage.Forward {
			remember(ctx, w.Edge)
		}
	}
	return d
}

// sentBy is the request of the viewer that rows written have made, at most one.
func sentBy(viewer storage.UserID, made []storage.Row) (rows []model.RequestRow) {
	waits := map[model.RequestKind]storage.EdgeType{model.RequestKindFriend: storage.Pending, model.RequestKindFollow: storage.Requested}
	for kind, sides := range requestSides {
		for _, row := range made {
			if row.Side == sides[0] && row.Edge.From == viewer && row.Edge.Type == waits[kind] {
				rows = append(rows, model.RequestRow{Edge: row.Edge, Kind: kind})
			}
		}
	}
	return rows
}

// requestEdges show, of each outcome, the request that it has made; nil if it has made none. They have been fetched.
func (s selection) requestEdges(ctx context.Context, viewer storage.UserID, made [][]storage.Row, pathsOf pathsOf) []*model.RequestEdge {
	edges, on, at := make([]*model.RequestEdge, len(made)), s.below("requestEdge"), pathsOf("requestEdge", "node")
	for i, rows := range made {
		for _, row := range sentBy(viewer, rows) {
			if s.has("requestEdge") {
				side, node := requestSides[row.Kind][0], resolverOf(ctx).requestsOf(ctx, []model.RequestRow{row}, on.of("node"), at.Of(i))[0]
				edges[i] = &model.RequestEdge{Cursor: spelled(requestCursors(side, model.RequestStatePending), side, row.Edge), Node: node}
			}
		}
	}
	return edges
}

// payload is that of a change between two users. It reads the selection once the write has arrived on the sides that are read.
func (r *Resolver) payload(ctx context.Context, changed bool, d done) *model.RelationshipPayload {
	s, pair := payloadSelection(ctx), storage.Pair{From: d.viewer, To: d.other}
	r.await(ctx, d, s.readsInverse())
	level := []prefetch.Objects{
		s.viewerObjects(d.viewer),
		s.userObjects(d.other),
		prefetch.RowsOn(d.requests, s.of("request")),
		prefetch.RowsOn(sentBy(d.viewer, d.made), s.below("requestEdge").of("node")),
	}
	if s.has("relationship") {
		level = append(level, relationshipPairs{[]storage.Pair{pair}, s.of("relationship")})
	}
	prefetch.Fetch(ctx, level...)
	made, here := [][]storage.Row{d.made}, func(names ...string) prefetch.Paths { return s.at(ctx, names...) }
	edge := func(f edgeField) *model.UserEdge { return s.madeEdges(ctx, f, d.viewer, made, here)[0] }
	return &model.RelationshipPayload{
		Changed: changed, Viewer: s.showViewer(ctx, d.viewer), User: s.user(ctx, d.other, true, "user"),
		Relationship: one(ctx, s, func(on []*selections.Object, at prefetch.Paths) []*model.Relationship {
			return relationshipsOf(ctx, []storage.Pair{pair}, on, at)
		}, "relationship"),
		Request: one(ctx, s, func(on []*selections.Object, at prefetch.Paths) []*model.Request {
			return r.requestsOf(ctx, d.requests, on, at)
		}, "request"),
		FollowingEdge: edge(followingEdge), FollowerEdge: edge(followerEdge), BlockEdge: edge(blockEdge), MuteEdge: edge(muteEdge),
		DismissedEdge: edge(dismissedEdge), RequestEdge: s.requestEdges(ctx, d.viewer, made, here)[0],
	}
}

// An edgeField shows an edge between users that a mutation has made as the viewer's list has it that it belongs to.
type edgeField struct {
	name string
	side storage.Side          // of the list
	kind storage.EdgeType      // of its edges
	has  func(item int64) bool // which of their items; nil: they have none
}

func isListed(item int64) bool { _, is := storage.OwnerKind{Kind: item}.List(); return is }
func isMute(item int64) bool {
	return item == declared.Mutes.Number || item == declared.PostMutes.Number
}
func isDismissal(i int64) bool { return i == declared.Dismissals.Number }

var (
	followingEdge = edgeField{name: "followingEdge", side: storage.Forward, kind: storage.Following}
	followerEdge  = edgeField{name: "followerEdge", side: storage.Inverse, kind: storage.Following}
	blockEdge     = edgeField{name: "blockEdge", side: storage.Forward, kind: storage.Blocking}
	muteEdge      = edgeField{"muteEdge", storage.Relations, storage.Related, isMute}
	memberEdge    = edgeField{"memberEdge", storage.Relations, storage.Related, isListed}
	dismissedEdge = edgeField{"dismissedEdge", storage.Relations, storage.Related, isDismissal}
)

// userObjects are other users, and what the payload, or each of its outcomes, selects of them.
func (s selection) userObjects(others ...storage.UserID) prefetch.Users {
	w := prefetch.Users{IDs: others, Exist: s.has("user"), On: s.of("user")}
	for _, f := range []edgeField{followingEdge, followerEdge, blockEdge, muteEdge, memberEdge, dismissedEdge} {
		edge := s.below(f.name)
		w.Exist, w.On = w.Exist || edge.has("node"), append(w.On, edge.of("node")...)
	}
	return w
}

// madeEdges show in a field, of each outcome, the row written that is an edge of its list; nil if there is none. Their users have been fetched.
func (s selection) madeEdges(ctx context.Context, f edgeField, viewer storage.UserID, made [][]storage.Row, pathsOf pathsOf) []*model.UserEdge {
	edges, on, at := make([]*model.UserEdge, len(made)), s.below(f.name), pathsOf(f.name, "node")
	for i, rows := range made {
		for _, row := range rows {
			pair := row.Edge.Pair()
			if s.has(f.name) && row.Side == f.side.Truth() && row.Edge.Type == f.kind && (f.has == nil || f.has(pair.Item)) && f.side.Owner(pair) == viewer {
				nodes := usersOf(ctx, prefetch.Users{IDs: []storage.UserID{f.side.Peer(pair)}, Exist: on.has("node"), On: on.of("node")}, at.Of(i))
				edges[i] = listedEdge(f.side, row.Edge, nodes[0])
			}
		}
	}
	return edges
}

// madeOne shows an object that the mutation has made, if it has, as the edge of its list; nil if that is not selected.
func madeOne[E any](s selection, field string, made bool, show func() E) *E {
	if !made || !s.has(field) {
		return nil
	}
	edge := show()
	return &edge
}

// await waits until a payload that reads the inverse side sees the write.
func (r *Resolver) await(ctx context.Context, d done, readsInverse bool) {
	request := consistency.For(ctx)
	request.Wrote(d.token)
	if d.stale || readsInverse && !r.Tokens.Wait(ctx, d.late) {
		request.Stale()
	}
}

// selection is the selection on a payload.
type selection struct{ *selections.Object }

func payloadSelection(ctx context.Context) selection {
	return selection{prefetch.Running(ctx).Below[0]}
}

func (s selection) has(field string) bool { return s.Named(field) != nil }

// of joins the selections on some fields.
func (s selection) of(names ...string) (on []*selections.Object) {
	for _, name := range names {
		on = append(on, prefetch.Below(s.Named(name))...)
	}
	return on
}

// below is the selection on a field that is a part of the payload.
func (s selection) below(field string) selection {
	joined := &selections.Object{}
	for _, on := range s.of(field) {
		joined.Fields = append(joined.Fields, on.Fields...)
	}
	return selection{joined}
}

// readsInverse reports whether a selected field comes from the inverse side.
func (s selection) readsInverse() bool { return s.Needs(true)&fields.Inverse != 0 }

// pathsOf are the paths of a field of some objects, or of a field of that one, and so on, by their names.
type pathsOf func(names ...string) prefetch.Paths

// at is pathsOf the payload. Each field is there under all names that the document gives it, and an outcome at its index.
func (s selection) at(ctx context.Context, names ...string) prefetch.Paths {
	at := prefetch.Here(ctx)
	for _, name := range names {
		if at = at.Below(ctx, s.Named(name)); name == "outcomes" {
			at = at.Each()
		}
		s = s.below(name)
	}
	return at
}

// one makes the object of a field, which has been fetched; nil if it is not selected. names are those of the fields above it and its own.
func one[M any](ctx context.Context, s selection, made func(on []*selections.Object, at prefetch.Paths) []*M, names ...string) *M {
	on, field := s, names[len(names)-1]
	for _, name := range names[:len(names)-1] {
		on = on.below(name)
	}
	if !on.has(field) {
		return nil
	}
	return cmp.Or(made(on.of(field), s.at(ctx, names...))...)
}

// user makes the user of a field. If unsure, the user may not exist, and has been read.
func (s selection) user(ctx context.Context, id storage.UserID, unsure bool, names ...string) *model.User {
	return one(ctx, s, func(on []*selections.Object, at prefetch.Paths) []*model.User {
		return usersOf(ctx, prefetch.Users{IDs: []storage.UserID{id}, Exist: unsure, On: on}, at)
	}, names...)
}

// viewerObjects is what the field `viewer` needs.
func (s selection) viewerObjects(id storage.UserID) prefetch.Users {
	if !s.has("viewer") {
		return prefetch.Users{}
	}
	return viewerObjects(id, s.of("viewer"))
}

// showViewer makes the viewer of the field `viewer`; nil if it is not selected, or if there is no such user.
func (s selection) showViewer(ctx context.Context, id storage.UserID) *model.Viewer {
	if !s.has("viewer") {
		return nil
	}
	return viewerAt(ctx, id, s.of("viewer"), s.at(ctx, "viewer"))
}

// readViewer is showViewer, once what the payload needs has been read.
func (s selection) readViewer(ctx context.Context, id storage.UserID, others ...prefetch.Objects) *model.Viewer {
	prefetch.Fetch(ctx, append(others, s.viewerObjects(id))...)
	return s.showViewer(ctx, id)
}

func markOf(row storage.Row) consistency.Mark {
	return consistency.Mark{Side: row.Side, Pair: row.Edge.Pair(), Version: row.Edge.UpdateTime}
}

func remember(ctx context.Context, row storage.Edge) {
	loaders.Of(loaders.For(ctx), storage.EdgeLookups[storage.Forward]).Prime(row.Pair(), row)
}
