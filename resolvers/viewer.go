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

func (queries) Viewer(ctx context.Context) (*model.Viewer, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		return nil, nil
	}
	return viewerAt(ctx, viewer.ID, fetchQuery(ctx).Below, true), nil
}

// wantedViewer is what selections on the viewer need. If unsure, the viewer may not exist.
func wantedViewer(ctx context.Context, id storage.UserID, on []*selections.Object, unsure bool) wanted {
	w := wanted{users: []storage.UserID{id}, exist: unsure || needsOf(ctx, on)&fields.Row != 0}
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
	a := setAnswer{total: counted(len(all)), complete: true}
	from, _ := slices.BinarySearch(all, storage.UserID(after)+1)
	a.page.users = all[from:min(len(all), from+args.size)]
	for _, id := range a.page.users {
		a.page.cursors = append(a.page.cursors, cursors.spell(unsealed, int64(id)))
	}
	a.info = r.pageInfo(a.page.cursors, from+len(a.page.users) < len(all), nil)
	a.page.fetch(ctx, f)
	return plain(a.show(ctx, f)), nil
}
