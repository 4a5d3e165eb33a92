package resolvers

import (
	"context"

	"kith/graph/consistency"
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
	unsure        bool // whether the viewer exists

	token consistency.Token // of all that was written
	late  consistency.Token // of rows that may not have been propagated to their other side yet
	stale bool              // some of it will not be propagated without a repair
}

// doneBy is the effect of an outcome of the rules.
func doneBy(ctx context.Context, viewer, other storage.UserID, o social.Outcome) done {
	d := done{viewer: viewer, other: other, unsure: o.Row.Edge.From != viewer, stale: o.Stale}
	for _, w := range o.Written {
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

// commonFields are the fields that all payloads between two users have.
type commonFields struct {
	viewer       *model.Viewer
	user         *model.User
	relationship *model.Relationship
}

// payload reads the selection of the parts, and whatever else the payload needs, once the write has arrived on the sides that are read.
func (r *Resolver) payload(ctx context.Context, s selection, d done, more ...prefetch.Objects) commonFields {
	r.await(ctx, d, s.readsInverse())
	pair := storage.Pair{From: d.viewer, To: d.other}
	more = append(more,
		s.viewerObjects(ctx, d.viewer, d.unsure),
		prefetch.Users{IDs: []storage.UserID{d.other}, Exist: s.has("user") || s.below("followingEdge").has("node"), On: append(s.of("user"), s.below("followingEdge").of("node")...)},
	)
	if s.has("relationship") {
		more = append(more, relationshipPairs{[]storage.Pair{pair}, s.of("relationship")})
	}
	prefetch.Fetch(ctx, more...)
	return commonFields{
		viewer:       s.showViewer(ctx, d.viewer, d.unsure),
		user:         s.user(ctx, "user", d.other, true),
		relationship: s.relationship(ctx, pair),
	}
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

// key is the response key of a field: the first, if it has several.
func (s selection) key(field string) string {
	for _, f := range s.Named(field) {
		return f.Alias
	}
	return ""
}

// user makes the user of a field; nil if it is not selected. If unsure, the user may not
// exist, and has been read. above is the path of the object that has the field.
func (s selection) user(ctx context.Context, field string, id storage.UserID, unsure bool, above ...any) *model.User {
	if !s.has(field) {
		return nil
	}
	w := prefetch.Users{IDs: []storage.UserID{id}, Exist: unsure, On: s.of(field)}
	return usersOf(ctx, w, prefetch.Here(ctx, append(above, s.key(field))...))[0]
}

// viewerObjects is what the field `viewer` needs.
func (s selection) viewerObjects(ctx context.Context, id storage.UserID, unsure bool) prefetch.Users {
	if !s.has("viewer") {
		return prefetch.Users{}
	}
	return viewerObjects(ctx, id, s.of("viewer"), unsure)
}

// showViewer makes the viewer of the field `viewer`; nil if it is not selected. If unsure, the viewer may not exist.
func (s selection) showViewer(ctx context.Context, id storage.UserID, unsure bool) *model.Viewer {
	if !s.has("viewer") {
		return nil
	}
	return viewerAt(ctx, id, s.of("viewer"), unsure, s.key("viewer"))
}

// readViewer is showViewer for a payload that has nothing else to read.
func (s selection) readViewer(ctx context.Context, id storage.UserID) *model.Viewer {
	prefetch.Fetch(ctx, s.viewerObjects(ctx, id, true))
	return s.showViewer(ctx, id, true)
}

func (s selection) relationship(ctx context.Context, p storage.Pair) *model.Relationship {
	if !s.has("relationship") {
		return nil
	}
	return relationshipsOf(ctx, []storage.Pair{p}, s.of("relationship"), prefetch.Here(ctx, s.key("relationship")))[0]
}

func markOf(row storage.Row) consistency.Mark {
	return consistency.Mark{Side: row.Side, Pair: row.Edge.Pair(), Version: row.Edge.UpdateTime}
}

func remember(ctx context.Context, row storage.Edge) {
	loaders.Of(loaders.For(ctx), storage.EdgeLookups[storage.Forward]).Prime(row.Pair(), row)
}
