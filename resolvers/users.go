package resolvers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"kith/graph/fields"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/storage"
)

// usersOf makes the users of a selection, from what the loaders hold.
// A user who does not exist, or is hidden from all others, is nil. If a shard did not answer, the
// user is nil, with an error at each of its paths.
func usersOf(ctx context.Context, w wantedUsers, at paths) []*model.User {
	e := accessOf(ctx)
	needs := needsOf(ctx, w.on)
	l := e.loaders
	users, made := make([]*model.User, len(w.ids)), make([]model.User, len(w.ids))
	for i, id := range w.ids {
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
	if needs&fields.Friends != 0 {
		e.addFriendCounts(users)
	}
	showParts(ctx, users, w.on, at)
	return users
}

// absolute is the address of a picture for pages of other origins, if it is known.
func (r *Resolver) absolute(avatarURL string) string {
	if strings.HasPrefix(avatarURL, "/") {
		return r.PublicURL + avatarURL
	}
	return avatarURL
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
	found, indexes := wantedUsers{exist: true, on: f.Below}, []int{}
	for i, id := range withIDs(ctx, ids.good, func(i int, err error) { failAt(ctx, where(i), err) }) {
		if user := id.numbers.From; user != 0 {
			found.ids, indexes = append(found.ids, user), append(indexes, i)
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
	return id.of().show(ctx, id, on, at)
}

func askUserNodes(ctx context.Context, b *batch, ids []nodeID, on []*selections.Object) {
	wantedUsers{ids: storage.Each(ids, nodeID.user), exist: true, on: on}.add(ctx, b)
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
		root := []*selections.Object{stateOf(ctx).planOf(ctx).Root}
		fetchHandles(ctx, root[0].Fields)
		fetch(ctx, wantedRows[query]{make([]query, 1), root})
	})
	return planned(ctx)
}

// query is what root fields belong to.
type query struct{}

// fetchHandles resolves the handles of all root fields in one batch.
func fetchHandles(ctx context.Context, root []*selections.Field) {
	var handles []string
	for _, f := range root {
		if _, byHandle := f.Read.(*field[query, given[nodeID]]); !byHandle {
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

// The root fields that are nodes.
var (
	usersField = nodesBy(func(ctx context.Context, f *selections.Field) (given[nodeID], error) {
		by, _ := f.Argument(ctx, "by").(map[string]any)
		return parseUsers(by)
	})
	nodesField = nodesBy(func(ctx context.Context, f *selections.Field) (given[nodeID], error) {
		name := "id"
		if f.Has("ids") {
			name = "ids"
		}
		ids := texts(ctx, f, name)
		if err := checkLength(name, len(ids), limits.MaxIDs); err != nil {
			return given[nodeID]{}, err
		}
		return resolverOf(ctx).served(parseEach(ids, func(text string) (nodeID, error) {
			id, _ := parseNodeID(name, text) // another's id may be a node behind the same router
			return id, nil
		})), nil
	})
)

// nodesBy is a root field that is nodes.
func nodesBy(parse func(context.Context, *selections.Field) (given[nodeID], error)) *field[query, given[nodeID]] {
	return fieldOf(parse, func(ctx context.Context, b *batch, f *selections.Field, ids given[nodeID], _ []query) {
		known := withIDs(ctx, ids.good, func(int, error) {})
		for _, on := range f.Below {
			ofType, isOther := known, func(id nodeID) bool { return id.typeName != on.Type || id.numbers == storage.Pair{} }
			if slices.ContainsFunc(known, isOther) {
				ofType = slices.DeleteFunc(slices.Clone(known), isOther)
			}
			if len(ofType) > 0 {
				ofType[0].of().ask(ctx, b, ofType, []*selections.Object{on})
			}
		}
	})
}

// served are nodes, without those of types that the schema lacks, which do not exist.
func (r *Resolver) served(ids given[nodeID]) given[nodeID] {
	for i, id := range ids.good {
		if r.Schema != nil && r.Schema.Types[id.typeName] == nil {
			ids.good[i] = nodeID{}
		}
	}
	return ids
}
