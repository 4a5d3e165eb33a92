package resolvers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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

// paths are where each of some objects is in the answer, by its index: a field that is selected under several names
// has several paths.
type paths func(i int) []ast.Path

// here are the paths of an object below the running field.
func here(ctx context.Context, steps ...any) paths {
	return func(int) []ast.Path { return []ast.Path{below(ctx, steps...)} }
}

// each are the paths of the elements of a list, which is the running field or below it.
func each(ctx context.Context, steps ...any) paths {
	return func(i int) []ast.Path { return here(ctx, append(steps[:len(steps):len(steps)], i)...)(i) }
}

// of are the paths of some of the objects.
func (p paths) of(indexes ...int) paths {
	return func(i int) []ast.Path { return p(indexes[i]) }
}

// below are the paths of some fields of each object.
func (p paths) below(asked []*selections.Field) paths {
	return func(i int) (all []ast.Path) {
		for _, path := range p(i) {
			for _, f := range asked {
				all = append(all, append(path[:len(path):len(path)], ast.PathName(f.Alias)))
			}
		}
		return all
	}
}

// usersOf makes the users of a selection, from what the loaders hold.
// A user who does not exist, or is hidden from all others, is nil. If a shard did not answer, the
// user is nil, with an error at each of its paths.
func usersOf(ctx context.Context, w wanted, at paths) []*model.User {
	e := accessOf(ctx)
	needs := needsOf(ctx, w.on)
	l := e.loaders
	users, made := make([]*model.User, len(w.users)), make([]model.User, len(w.users))
	for i, id := range w.users {
		if e.isAbsent(id) {
			continue
		}
		u := &made[i]
		u.UserID = id
		if needs&fields.Row != 0 || w.exist {
			r := l.Users.Load(id)
			if r.Err != nil {
				failAt(ctx, at(i), r.Err)
			}
			if !r.Found {
				continue
			}
			u.Row = r.Value
			u.Row.AvatarURL = e.resolver.absolute(r.Value.AvatarURL)
		}
		if needs&fields.Counts != 0 {
			u.Counts = l.Counts.Load(id)
		}
		users[i] = u
	}
	selected := fieldsOn(w.on)
	if aheadOn(selected, fields.FriendCount, storage.Forward) != nil {
		e.addFriendCounts(users)
	}
	if asked := aheadOn(selected, fields.FromViewer, storage.Forward); asked != nil && e.viewer != 0 {
		addViewers(ctx, users, asked, at)
	}
	return users
}

// absolute is the address of a picture for pages of other origins, if it is known.
func (r *Resolver) absolute(avatarURL string) string {
	if strings.HasPrefix(avatarURL, "/") {
		return r.PublicURL + avatarURL
	}
	return avatarURL
}

// addViewers adds the viewer's relationships.
func addViewers(ctx context.Context, users []*model.User, asked []*selections.Field, at paths) {
	viewer := accessOf(ctx).viewer
	pairs, index := make([]storage.Pair, 0, len(users)), make([]int, 0, len(users))
	for i, u := range users {
		if u != nil {
			pairs, index = append(pairs, storage.Pair{From: viewer, To: u.UserID}), append(index, i)
		}
	}
	for k, r := range relationshipsOf(ctx, pairs, belowOf(asked), at.of(index...).below(asked)) {
		users[index[k]].Viewers = r
	}
}

// addFriendCounts adds how many friends users have, whose lists are both open.
func (e *access) addFriendCounts(users []*model.User) {
	for _, u := range users {
		if u == nil {
			continue
		}
		n, open := int32(u.Counts.Value.Friend), true
		for _, list := range bothLists(u.UserID) {
			if is, err := e.isOpen(list); err != nil || !is {
				open, u.Friends.Err = false, cmp.Or(u.Friends.Err, err)
			}
		}
		if open {
			u.Friends = storage.Result[*int32]{Value: &n, Err: u.Counts.Err}
		}
	}
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

func (queries) User(ctx context.Context, _ model.UserBy) (*model.User, error) {
	return only(usersBy(ctx, here(ctx)))
}

func (queries) Users(ctx context.Context, _ model.UsersBy) ([]*model.User, error) {
	return usersBy(ctx, each(ctx))
}

// usersBy answers a root field that is a user or a list of users.
func usersBy(ctx context.Context, at paths) ([]*model.User, error) {
	f := fetchQuery(ctx)
	ids, err := argument[given[nodeID]](stateOf(ctx), f)
	if err != nil {
		return nil, err
	}
	where := ids.at(at)
	found, indexes := wanted{exist: true, on: f.Below}, []int{}
	for i, id := range withIDs(ctx, ids.good, func(i int, err error) { failAt(ctx, where(i), err) }) {
		if user := id.numbers.From; user != 0 {
			found.users, indexes = append(found.users, user), append(indexes, i)
		}
	}
	users := make([]*model.User, len(ids.good))
	for k, u := range usersOf(ctx, found, where.of(indexes...)) {
		if i := indexes[k]; ids.good[i].isOf(u) {
			users[i] = u
		}
	}
	return placed(ctx, ids, users, at), nil
}

// only is the element of a list of one.
func only[T any](list []T, err error) (one T, _ error) {
	if err != nil {
		return one, err
	}
	return list[0], nil
}

// withIDs fills in the ids of users that are named by their handles. The handles have been fetched.
// If a handle belongs to nobody, or if its shard does not answer, the id is zero; failed gets the
// error and the index.
func withIDs(ctx context.Context, nodes []nodeID, failed func(i int, err error)) []nodeID {
	if !slices.ContainsFunc(nodes, func(id nodeID) bool { return id.handle != "" }) {
		return nodes
	}
	all := slices.Clone(nodes)
	for i, id := range nodes {
		if id.handle == "" {
			continue
		}
		user, err := byHandle(ctx, id.handle)
		if err != nil {
			failed(i, err)
		}
		all[i].numbers.From = user
	}
	return all
}

// isOf reports whether a user has the handle by which it was found: somebody may have claimed the handle for it in vain.
func (id nodeID) isOf(u *model.User) bool {
	return u == nil || id.handle == "" || id.handle == u.Row.Handle
}

// byHandle is the user for whom a folded handle is claimed, which has been fetched; 0 if the handle belongs to
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

func (queries) Node(ctx context.Context, _ string) (model.Node, error) {
	return only(nodes(ctx, here(ctx)))
}

func (queries) Nodes(ctx context.Context, _ []string) ([]model.Node, error) {
	return nodes(ctx, each(ctx))
}

// nodes answers a root field that is one node or a list of them.
func nodes(ctx context.Context, at paths) ([]model.Node, error) {
	f := fetchQuery(ctx)
	ids, err := argument[given[nodeID]](stateOf(ctx), f)
	if err != nil {
		return nil, err
	}
	where := ids.at(at)
	ids.good = withIDs(ctx, ids.good, func(i int, err error) { failAt(ctx, where(i), err) })
	all := make([]model.Node, len(ids.good))
	for i, id := range ids.good {
		on := f.On(id.typeName)
		if all[i], err = nodeOf(ctx, id, []*selections.Object{on}, where.of(i)); err != nil {
			return nil, err
		}
		if all[i] != nil && on.Err != nil {
			all[i] = nil
			failAt(ctx, where(i), on.Err)
		}
		if u, is := all[i].(*model.User); is && !id.isOf(u) {
			all[i] = nil
		}
	}
	return placed(ctx, ids, all, at), nil
}

// nodeOf makes a node, which has been fetched; nil if the viewer does not see it.
func nodeOf(ctx context.Context, id nodeID, on []*selections.Object, at paths) (model.Node, error) {
	if id.numbers == (storage.Pair{}) {
		return nil, nil
	}
	switch id.typeName {
	case "List":
		list := seenLists(ctx, []storage.ListID{id.list()})[0]
		if list.Err != nil {
			failAt(ctx, at(0), list.Err)
		}
		if !list.Found {
			return nil, nil
		}
		return &model.List{Row: list.Value}, nil
	case "Relationship":
		return orNil(relationshipsOf(ctx, []storage.Pair{id.numbers}, on, at)), nil
	case "FriendRequest":
		return orNil(requestOf(ctx, id.numbers, on, at)), nil
	case "User":
		return orNil(usersOf(ctx, wanted{users: []storage.UserID{id.numbers.From}, exist: true, on: on}, at)), nil
	}
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	l := loaders.For(ctx)
	if id.typeName == "Post" {
		if err := postErr(ctx, a, id.post()); err != nil {
			failAt(ctx, at(0), err)
		}
		return orNil(postsOf(ctx, visiblePosts(ctx, a, []storage.PostID{id.post()}), on, at)), nil
	}
	_, err = accessOf(ctx).shows(a, id.comment().Author)
	if err = cmp.Or(l.Comments().Load(id.comment()).Err, err); err != nil {
		failAt(ctx, at(0), err)
	}
	return orNil(commentsOf(ctx, visibleComments(ctx, a, []storage.CommentID{id.comment()}), on, at)), nil
}

// orNil is the node in a list of at most one.
func orNil[T any, N interface {
	*T
	model.Node
}](list []N) model.Node {
	for _, one := range list {
		if one != nil {
			return one
		}
	}
	return nil
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
	for _, f := range root {
		if f.Ahead != fields.Users && f.Ahead != fields.Entities {
			continue
		}
		ids, _ := argument[given[nodeID]](stateOf(ctx), f)
		for _, id := range ids.good {
			if storage.ValidHandle(id.handle) {
				handles = append(handles, id.handle)
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
	switch f.Ahead {
	case fields.Viewer:
		if viewer, ok := identity.Of(ctx); ok {
			return []wanted{wantedViewer(ctx, viewer.ID, f.Below, true)}
		}
	case fields.Users, fields.NodeIDs, fields.Entities:
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

// wantedNodes are nodes, by type.
func wantedNodes(ids []nodeID, f *selections.Field) []wanted {
	level := make([]wanted, len(f.Below))
	for i, on := range f.Below {
		w := &level[i]
		w.exist, w.on = true, []*selections.Object{on}
		for _, id := range ids {
			if id.typeName != on.Type || id.numbers == (storage.Pair{}) {
				continue
			}
			switch on.Type {
			case "User":
				w.users = append(w.users, id.numbers.From)
			case "Relationship":
				w.pairs = append(w.pairs, id.numbers)
			case "FriendRequest":
				w.requests = append(w.requests, id.numbers)
			case "Post":
				w.postIDs = append(w.postIDs, id.post())
			case "Comment":
				w.comments = append(w.comments, id.comment())
			case "List":
				w.listIDs = append(w.listIDs, id.list())
			}
		}
	}
	return level
}
