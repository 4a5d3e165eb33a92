package resolvers

import (
	"context"
	"slices"

	"kith/accounts/identity"
	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// viewerField is who is signed in.
var viewerField = fieldOf(noArguments, func(ctx context.Context, b *batch, f *selections.Field, _ none, _ []query) {
	if b.viewer != 0 {
		wantedViewer(ctx, b.viewer, f.Below, true).add(ctx, b)
	}
})

func (queries) Viewer(ctx context.Context) (*model.Viewer, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		return nil, nil
	}
	return viewerAt(ctx, viewer.ID, fetchQuery(ctx).Below, true), nil
}

// wantedViewer is what selections on the viewer need. If unsure, the viewer may not exist.
func wantedViewer(ctx context.Context, id storage.UserID, on []*selections.Object, unsure bool) wantedUsers {
	w := wantedUsers{ids: []storage.UserID{id}, exist: unsure || needsOf(ctx, on)&fields.Row != 0}
	for _, o := range on {
		w.on = append(w.on, belowOf(o.Named("user"))...)
	}
	return w
}

// viewerAt makes the viewer of selections, who has been fetched, at a path below the running field; nil if it does not exist.
func viewerAt(ctx context.Context, id storage.UserID, on []*selections.Object, unsure bool, path ...any) *model.Viewer {
	user := usersOf(ctx, wantedViewer(ctx, id, on, unsure), here(ctx, path...))[0]
	if user == nil {
		return nil
	}
	return &model.Viewer{User: user, Deactivated: accessOf(ctx).resolver.isHidden(id)}
}

// DismissedUsers is a part of a list of at most [storage.MaxDismissals], which is read whole: it comes by id.
func (r viewerFields) DismissedUsers(ctx context.Context, obj *model.Viewer, _ *int32, _ *string) (*model.UserConnection, error) {
	f, viewer := planned(ctx), obj.User.UserID
	args, err := pageOf(ctx, f, 0)
	if err != nil {
		return nil, err
	}
	cursors := bound{kind: cursor.Dismissed, to: []int64{int64(viewer)}, what: "list"}
	var after int64
	if err := cursors.read(ctx, "after", args.text, &after); err != nil {
		return nil, err
	}
	audience, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	all, err := social.New(loaders.For(ctx).Reader(), r.Budget, audience).Related(ctx, viewer, storage.Dismissals)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, audience.Hides)
	p := page{total: counted(len(all)), complete: true}
	from, _ := slices.BinarySearch(all, storage.UserID(after)+1)
	p.users = all[from:min(len(all), from+args.size)]
	for _, id := range p.users {
		p.cursors = append(p.cursors, cursors.spell(unsealed, int64(id)))
	}
	p.info = r.pageInfo(p.cursors, from+len(p.users) < len(all), nil)
	return readPage(ctx, f, p, plain), nil
}
