package resolvers

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"kith/accounts/identity"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/storage"
)

// usersOf makes the users of a selection, from what the loaders hold.
// A user who does not exist, or is hidden from all others, is nil. If a shard did not answer, the
// user is nil, with an error at each of its paths.
func usersOf(ctx context.Context, w wanted, paths func(i int) []ast.Path) []*model.User {
	e := accessOf(ctx)
	needs := needsOf(ctx, w.on)
	l := e.loaders
	users, made := make([]*model.User, len(w.users)), make([]model.User, len(w.users))
	for i, id := range w.users {
		if e.isAbsent(id) {
			continue
		}
		u := &made[i]
		u.UserID, u.IsViewer = id, id == e.viewer
		if u.IsViewer && e.resolver.isHidden(id) {
			u.State = storage.Deactivated
		}
		if needs&fields.Row != 0 || w.exist {
			r := l.Users.Load(id)
			if r.Err != nil {
				failAt(ctx, paths(i), r.Err)
			}
			if !r.Found {
				continue
			}
			u.Row = r.Value
		}
		if needs&fields.Counts != 0 {
			u.Counts = l.Counts.Load(id)
		}
		users[i] = u
	}
	return users
}

// failAt reports why something could not be read, at each path of the answer that is empty because
// of it.
func failAt(ctx context.Context, paths []ast.Path, err error) {
	for _, p := range paths {
		graphql.AddError(ctx, gqlerror.WrapPath(p, err))
	}
}

// below is the path of something below the running field.
func below(ctx context.Context, steps ...any) ast.Path {
	parent := graphql.GetPath(ctx)
	path := make(ast.Path, len(parent), len(parent)+len(steps))
	copy(path, parent)
	for _, step := range steps {
		switch s := step.(type) {
		case int:
			path = append(path, ast.PathIndex(s))
		case string:
			path = append(path, ast.PathName(s))
		}
	}
	return path
}

// viewerAt answers `viewer`.
func viewerAt(ctx context.Context) (*model.User, error) {
	viewer, ok := identity.Of(ctx)
	if !ok {
		return nil, nil
	}
	return rootUser(ctx, fetchQuery(ctx), viewer.ID)
}

// userAt answers `user`.
func userAt(ctx context.Context) (*model.User, error) {
	f := fetchQuery(ctx)
	ids, err := argument[given[storage.UserID]](stateOf(ctx), f)
	if err != nil {
		return nil, err
	}
	if ids.wrong != nil {
		return nil, ids.wrong[0].err
	}
	return rootUser(ctx, f, ids.good[0])
}

// rootUser makes the user of a root field that is one.
func rootUser(ctx context.Context, f *selections.Field, id storage.UserID) (*model.User, error) {
	here := func(int) []ast.Path { return []ast.Path{graphql.GetPath(ctx)} }
	return usersOf(ctx, wanted{users: []storage.UserID{id}, exist: true, on: f.Below}, here)[0], nil
}

// usersAt answers `users`.
func usersAt(ctx context.Context) ([]*model.User, error) {
	f := fetchQuery(ctx)
	ids, err := argument[given[storage.UserID]](stateOf(ctx), f)
	if err != nil {
		return nil, err
	}
	w := wanted{users: ids.good, exist: true, on: f.Below}
	users := usersOf(ctx, w, func(i int) []ast.Path { return []ast.Path{below(ctx, ids.index(i))} })
	return placed(ctx, ids, users, func(i int) ast.Path { return below(ctx, i) }), nil
}

// usersByHandleAt answers `userByHandle` and `usersByHandle`. path is the path of each user in the
// answer.
func usersByHandleAt(ctx context.Context, path func(i int) ast.Path) ([]*model.User, error) {
	f := fetchQuery(ctx)
	handles, err := argument[[]string](stateOf(ctx), f)
	if err != nil {
		return nil, err
	}
	found, indexes := wanted{exist: true, on: f.Below}, []int{}
	for i, handle := range handles {
		id, err := byHandle(ctx, handle)
		if err != nil {
			failAt(ctx, []ast.Path{path(i)}, err)
		}
		if id != 0 {
			found.users, indexes = append(found.users, id), append(indexes, i)
		}
	}
	users := make([]*model.User, len(handles))
	for k, u := range usersOf(ctx, found, func(k int) []ast.Path { return []ast.Path{path(indexes[k])} }) {
		users[indexes[k]] = u
	}
	return users, nil
}

// byHandle is the user with a folded handle, which has been fetched; 0 if the handle belongs to
// nobody.
func byHandle(ctx context.Context, handle string) (storage.UserID, error) {
	if !storage.ValidHandle(handle) { // nobody has it
		return 0, nil
	}
	r := loaders.For(ctx).Handles.Load(handle)
	if r.Err != nil {
		return 0, fmt.Errorf("resolve handle %q: %w", handle, r.Err)
	}
	return r.Value, nil
}

// nodesAt answers a root field that is a list of nodes. path is the path of each node in the
// answer.
func nodesAt(ctx context.Context, path func(i int) ast.Path) ([]model.Node, error) {
	f := fetchQuery(ctx)
	ids, err := argument[given[nodeID]](stateOf(ctx), f)
	if err != nil {
		return nil, err
	}
	where := func(i int) ast.Path { return path(ids.index(i)) }
	ids.good = withIDs(ctx, ids.good, func(i int, err error) { failAt(ctx, []ast.Path{where(i)}, err) })
	nodes := make([]model.Node, len(ids.good))
	requestNodes(ctx, f, ids.good, nodes, where)
	if err := postNodes(ctx, f, ids.good, nodes, where); err != nil {
		return nil, err
	}
	onUser, onRelationship := []*selections.Object{f.On("User")}, []*selections.Object{f.On("Relationship")}
	for i, id := range ids.good {
		here := func(int) ast.Path { return where(i) }
		if id.user == 0 && id.relationship == (storage.Pair{}) {
			continue
		}
		if id.user == 0 {
			if r := relationshipsOf(ctx, []storage.Pair{id.relationship}, onRelationship, here)[0]; r != nil {
				nodes[i] = r
			}
			continue
		}
		w := wanted{users: []storage.UserID{id.user}, exist: true, on: onUser}
		if u := usersOf(ctx, w, func(i int) []ast.Path { return []ast.Path{here(i)} })[0]; u != nil {
			nodes[i] = u
		}
	}
	for i, id := range ids.good {
		if on := f.On(id.typeName()); nodes[i] != nil && on.Err != nil {
			nodes[i] = nil
			failAt(ctx, []ast.Path{where(i)}, on.Err)
		}
	}
	return placed(ctx, ids, nodes, path), nil
}

// friendCountAt answers `friendCount`, which is worked out from both lists of the user.
func friendCountAt(ctx context.Context, obj *model.User) (*int32, error) {
	if open, err := isOpen(ctx, bothLists(obj.UserID)...); err != nil || !open {
		return nil, err
	}
	n := int32(obj.Counts.Value.Friend)
	return &n, obj.Counts.Err
}

// fetchQuery reads what all root fields of the query and everything below them
// need, the first time that it is called in a request. It returns the running field.
func fetchQuery(ctx context.Context) *selections.Field {
	loaders.For(ctx).Once.Do(func() {
		root := stateOf(ctx).planOf(ctx).Root
		fetchHandles(ctx, root.Fields)
		var level []wanted
		for _, f := range root.Fields {
			level = append(level, wantedByRoot(ctx, f)...)
		}
		fetch(ctx, level...)
	})
	return planned(ctx)
}

// fetchHandles resolves the handles of all root fields in one batch.
func fetchHandles(ctx context.Context, root []*selections.Field) {
	var handles []string
	add := func(handle string) {
		if storage.ValidHandle(handle) {
			handles = append(handles, handle)
		}
	}
	for _, f := range root {
		switch f.Ahead {
		case fields.Handles:
			given, _ := argument[[]string](stateOf(ctx), f)
			for _, handle := range given {
				add(handle)
			}
		case fields.Entities:
			ids, _ := argument[given[nodeID]](stateOf(ctx), f)
			for _, id := range ids.good {
				add(id.handle)
			}
		}
	}
	if len(handles) > 0 {
		loaders.For(ctx).Handles.Fetch(handles)
	}
}

// wantedByRoot is what a root field needs. Wrong arguments are left to the field's own resolver,
// which refuses them.
func wantedByRoot(ctx context.Context, f *selections.Field) []wanted {
	request := stateOf(ctx)
	users := func(ids ...storage.UserID) []wanted {
		return []wanted{{users: ids, exist: true, on: f.Below}}
	}
	switch f.Ahead {
	case fields.Viewer:
		if viewer, ok := identity.Of(ctx); ok {
			return users(viewer.ID)
		}
	case fields.UserIDs:
		if ids, err := argument[given[storage.UserID]](request, f); err == nil {
			return users(ids.good...)
		}
	case fields.Handles:
		handles, _ := argument[[]string](request, f)
		var ids []storage.UserID
		for _, handle := range handles {
			if id, _ := byHandle(ctx, handle); id != 0 {
				ids = append(ids, id)
			}
		}
		return users(ids...)
	case fields.NodeIDs, fields.Entities:
		if ids, err := argument[given[nodeID]](request, f); err == nil {
			return wantedNodes(withIDs(ctx, ids.good, func(int, error) {}), f)
		}
	case fields.Relationships:
		if pairs, err := argument[given[storage.Pair]](request, f); err == nil {
			return []wanted{{pairs: pairs.good, on: f.Below}}
		}
	}
	return nil
}

func wantedNodes(ids []nodeID, f *selections.Field) []wanted {
	users := wanted{exist: true, on: []*selections.Object{f.On("User")}}
	relationships := wanted{on: []*selections.Object{f.On("Relationship")}}
	posts := wanted{on: []*selections.Object{f.On("Post")}}
	comments := wanted{on: []*selections.Object{f.On("Comment")}}
	for _, id := range ids {
		switch {
		case id == nodeID{}: // of nobody
		case id.user != 0:
			users.users = append(users.users, id.user)
		case id.request != storage.Pair{}: // nodesAt reads them
		case id.post != storage.PostID{}:
			posts.postIDs = append(posts.postIDs, id.post)
		case id.comment != storage.CommentID{}:
			comments.comments = append(comments.comments, id.comment)
		default:
			relationships.pairs = append(relationships.pairs, id.relationship)
		}
	}
	return []wanted{users, relationships, posts, comments}
}
