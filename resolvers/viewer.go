package resolvers

import (
	"context"
	"slices"

	"kith/accounts/identity"
	"kith/graph/declared"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/storage"
)

// viewerField is who is signed in.
var viewerField = prefetch.NewField(prefetch.NoArguments, func(ctx context.Context, level *prefetch.Level, f *selections.Field, _ prefetch.None, _ []prefetch.Root) {
	if level.Viewer != 0 {
		viewerObjects(level.Viewer, f.Below).AddTo(ctx, level)
	}
})

func (queries) Viewer(ctx context.Context) (*model.Viewer, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		return nil, nil
	}
	return viewerAt(ctx, viewer.ID, fetchQuery(ctx).Below, prefetch.Here(ctx)), nil
}

// viewerObjects is what selections on the viewer need, who may not exist.
func viewerObjects(id storage.UserID, on []*selections.Object) prefetch.Users {
	w := prefetch.Users{IDs: []storage.UserID{id}, Exist: true}
	for _, o := range on {
		w.On = append(w.On, prefetch.Below(o.Named("user"))...)
	}
	return w
}

// viewerAt makes the viewer of selections, who has been fetched; nil if it does not exist.
func viewerAt(ctx context.Context, id storage.UserID, on []*selections.Object, at prefetch.Paths) *model.Viewer {
	user := usersOf(ctx, viewerObjects(id, on), at)[0]
	if user == nil {
		return nil
	}
	return &model.Viewer{User: user}
}

// DismissedUsers is a part of a list of at most [declared.Dismissals].Max, which is read whole: it comes by id.
func (r viewerFields) DismissedUsers(ctx context.Context, obj *model.Viewer, _ *int32, _ *string) (*model.UserConnection, error) {
	f, viewer := prefetch.Running(ctx), obj.User.UserID
	cursors := dismissedCursors(viewer)
	args, err := prefetch.ParsePart(ctx, f, cursors)
	if err != nil {
		return nil, err
	}
	var after int64
	if err := cursors.Read(ctx, "after", args.Text, &after); err != nil {
		return nil, err
	}
	type key struct{}
	all, err := prefetch.Shared(ctx, key{}, func() ([]storage.UserID, error) {
		audience, err := prefetch.AudienceOf(ctx)
		if err != nil {
			return nil, err
		}
		all, err := prefetch.AccessOf(ctx).Graph(loaders.For(ctx).Reader(), audience).Related(ctx, viewer, declared.Dismissals)
		return slices.DeleteFunc(all, audience.Hides), err
	})
	if err != nil {
		return nil, err
	}
	p := &userPage{Total: prefetch.Counted(len(all)), Complete: true}
	from, _ := slices.BinarySearch(all, storage.UserID(after)+1)
	p.Rows = slices.Clip(all[from:min(len(all), from+args.Size)])
	for _, id := range p.Rows {
		p.Cursors = append(p.Cursors, cursors.Spell(prefetch.Unsealed, int64(id)))
	}
	p.Info = prefetch.PageInfo(r.Cursors, p.Cursors, from+len(p.Rows) < len(all), nil)
	return readPage(ctx, f, p), nil
}
