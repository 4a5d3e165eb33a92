package resolvers

import (
	"context"
	"errors"
	"math"
	"slices"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

var errNoList = apierr.ListNotFound.Error("there is no such list")

// isNoList reports whether the viewer does not see a list.
func isNoList(err error) bool {
	known, ok := apierr.Of(err)
	return ok && known.Reason == apierr.ListNotFound
}

// parseListID reads the id of a list.
func parseListID(argument, text string) (storage.ListID, error) {
	id, err := parseNodeID(argument, text)
	if err == nil && id.typeName != "List" {
		err = apierr.IDMalformed.Error("%q is not the id of a list", abridged(text)).In(argument)
	}
	return id.list(), err
}

// seenLists reads lists. Nil stands for those that do not exist, as for those that the viewer does not see.
func (r *Resolver) seenLists(ctx context.Context, ids []storage.ListID) ([]*storage.UserList, error) {
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	queries := storage.Each(ids, func(id storage.ListID) storage.ListsQuery {
		return storage.ListsQuery{Owner: id.Owner, UpTo: id.Number, Limit: 1}
	})
	lists := make([]*storage.UserList, len(ids))
	for i, read := range r.Lists.UserLists(ctx, queries) {
		if read.Err != nil {
			return nil, read.Err
		}
		for _, l := range read.Value {
			if l.ListID == ids[i] && !a.Hides(l.Owner) && (l.Public || isViewer(ctx, l.Owner)) {
				lists[i] = &l
			}
		}
	}
	return lists, nil
}

// listNodes are those of some nodes that are lists.
func (r *Resolver) listNodes(ctx context.Context, nodes []nodeID) (map[storage.ListID]*storage.UserList, error) {
	var ids []storage.ListID
	for _, id := range nodes {
		if id.typeName == "List" {
			ids = append(ids, id.list())
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	lists, err := r.seenLists(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[storage.ListID]*storage.UserList, len(ids))
	for i, id := range ids {
		byID[id] = lists[i]
	}
	return byID, nil
}

// listOf is the list that an argument names; errNoList if the viewer does not see it.
func (r *Resolver) listOf(ctx context.Context, argument, text string) (*storage.UserList, error) {
	id, err := parseListID(argument, text)
	if err != nil {
		return nil, err
	}
	lists, err := r.seenLists(ctx, []storage.ListID{id})
	if err == nil && lists[0] == nil {
		err = errNoList.In(argument)
	}
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}

// ownListOf is a list of the viewer, who is about to change so many objects.
func (r *Resolver) ownListOf(ctx context.Context, text string, objects int) (*storage.UserList, error) {
	viewer, err := r.actorOf(ctx, objects)
	if err != nil {
		return nil, err
	}
	list, err := r.listOf(ctx, "listId", text)
	if err == nil && list.Owner != viewer {
		return nil, errNoList.In("listId")
	}
	return list, err
}

// Lists is a page of lists that the viewer sees.
func (r userFields) Lists(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.ListConnection, error) {
	args, err := pageOf(ctx, planned(ctx), cursor.Lists)
	if err != nil {
		return nil, err
	}
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	q := storage.ListsQuery{Owner: obj.UserID, UpTo: math.MaxInt64, Public: !isViewer(ctx, obj.UserID), Limit: args.size + 1}
	if args.after != (storage.Place{}) {
		q.UpTo = int64(args.after.CreatedAt) - 1
	}
	var page social.Page[storage.UserList]
	if !a.Hides(obj.UserID) {
		read := r.Resolver.Lists.UserLists(ctx, []storage.ListsQuery{q})[0]
		if read.Err != nil {
			return nil, read.Err
		}
		page.Rows, page.More = read.Value[:min(len(read.Value), args.size)], len(read.Value) > args.size
	}
	cursors, info := placeInfo(r.Resolver, cursor.Lists, page, func(l storage.UserList) storage.Place {
		return storage.Place{CreatedAt: storage.Micros(l.Number)}
	})
	nodes := storage.Each(page.Rows, func(l storage.UserList) *model.List { return &model.List{Row: l} })
	return &model.ListConnection{PageInfo: info, Nodes: nodes, Edges: edges(len(nodes), func(i int) model.ListEdge {
		return model.ListEdge{Cursor: cursors[i], Node: nodes[i]}
	})}, nil
}

// The members of a list, newest first.
func membersOf(l storage.UserList) ownList {
	return ownList{side: storage.Relations, owner: l.Owner, item: l.Kind().Number, kind: storage.Related}
}

func (r listFields) Members(ctx context.Context, obj *model.List, _ *int32, _ *string) (*model.UserConnection, error) {
	return r.edgesOf(ctx, membersOf(obj.Row))
}

func (r listFields) MemberCount(ctx context.Context, obj *model.List) (int32, error) {
	a, err := audienceOf(ctx)
	if err != nil {
		return 0, err
	}
	n, _, err := membersOf(obj.Row).size(ctx, r.Resolver, a)
	return int32(n), err
}

func (r listFields) Owner(ctx context.Context, obj *model.List) (*model.User, error) {
	owner := wanted{users: []storage.UserID{obj.Row.Owner}, exist: true, on: planned(ctx).Below}
	fetch(ctx, owner)
	return usersOf(ctx, owner, here(ctx))[0], nil
}

func (r mutations) CreateList(ctx context.Context, name string, public bool, texts []string) (*model.ListPayload, error) {
	viewer, err := r.actorOf(ctx, 1+len(texts))
	if err != nil {
		return nil, err
	}
	if name, err = accounts.CheckName("name", name, 1, storage.MaxListName); err != nil {
		return nil, err
	}
	if err := checkLength("userIds", len(texts), limits.MaxIDs); err != nil {
		return nil, err
	}
	id := storage.ListID{Owner: viewer, Number: int64(storage.MicrosOf(r.Relations.Now()))}
	list, err := r.Lists.CreateList(ctx, storage.UserList{ListID: id, Name: name, Public: public})
	if errors.Is(err, storage.ErrLimitReached) {
		err = apierr.TooManyLists.Error("you have as many lists as one may, which is %d", storage.MaxLists)
	}
	if err != nil {
		return nil, viewerGone(err)
	}
	return r.changeMembers(ctx, &list, texts, true, true)
}

func (r mutations) UpdateList(ctx context.Context, id string, name *string, public *bool) (*model.ListPayload, error) {
	list, err := r.ownListOf(ctx, id, 1)
	if err != nil {
		return nil, err
	}
	if name != nil {
		if list.Name, err = accounts.CheckName("name", *name, 1, storage.MaxListName); err != nil {
			return nil, err
		}
	}
	if public != nil {
		list.Public = *public
	}
	changed, err := r.Lists.UpdateList(ctx, *list)
	if err != nil {
		return nil, clientError(err)
	}
	return r.changeMembers(ctx, list, nil, changed, true)
}

func (r mutations) DeleteList(ctx context.Context, id string) (*model.ListPayload, error) {
	list, err := r.ownListOf(ctx, id, 1)
	if err != nil {
		return nil, err
	}
	if err := r.Relations.DeleteList(ctx, r.Lists, list.ListID); err != nil {
		return nil, clientError(err)
	}
	return &model.ListPayload{Changed: true, Viewer: payloadSelection(ctx).readViewer(ctx, list.Owner), Outcomes: []*model.FollowOutcome{}}, nil
}

func (r mutations) AddToList(ctx context.Context, id string, texts []string) (*model.ListPayload, error) {
	list, err := r.ownListOf(ctx, id, len(texts))
	if err != nil {
		return nil, err
	}
	return r.changeMembers(ctx, list, texts, false, true)
}

func (r mutations) RemoveFromList(ctx context.Context, id string, texts []string) (*model.ListPayload, error) {
	list, err := r.ownListOf(ctx, id, len(texts))
	if err != nil {
		return nil, err
	}
	return r.changeMembers(ctx, list, texts, false, false)
}

// changeMembers adds users to a list of the viewer, or takes them out; changed says whether the list itself has changed before.
func (r mutations) changeMembers(ctx context.Context, list *storage.UserList, texts []string, changed, add bool) (*model.ListPayload, error) {
	ids, err := parseUserIDs("userIds", texts)
	if err != nil {
		return nil, err
	}
	var results []storage.Result[storage.Changed]
	if add {
		results = r.Relations.Relate(ctx, loaders.For(ctx).Reader(), list.Owner, list.Kind(), ids.good, storage.Detail{})
	} else {
		results = r.Relations.Unrelate(ctx, list.Owner, list.Kind(), ids.good)
	}
	for i, r := range results {
		changed, results[i].Err = changed || r.Value.Changed, relationError(r.Err)
	}
	outcomes, viewer := r.outcomes(ctx, list.Owner, ids, texts, results)
	return &model.ListPayload{Changed: changed, List: &model.List{Row: *list}, Viewer: viewer, Outcomes: outcomes}, nil
}

// followedAtOnce is how many members of a list are followed by one call.
const followedAtOnce = limits.MaxIDs

func (r mutations) FollowList(ctx context.Context, id string, after *string) (*model.FollowListPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	list, err := r.listOf(ctx, "listId", id)
	if err != nil {
		return nil, err
	}
	a, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	args := pageArguments{size: followedAtOnce}
	if after != nil {
		args.text = *after
	}
	l := membersOf(*list)
	page, err := l.read(ctx, r.Resolver, a, args, l.cursors(), pageNeeds{rows: true})
	if err != nil {
		return nil, err
	}
	members := storage.Each(page.edges, func(e storage.Edge) storage.UserID { return e.To })
	members = slices.DeleteFunc(members, func(id storage.UserID) bool { return id == viewer })
	if len(members) > 1 { // one has been counted
		if _, err := r.actorOf(ctx, len(members)-1); err != nil {
			return nil, err
		}
	}
	relations, stale, err := r.Relations.Follow(ctx, loaders.For(ctx).Reader(), viewer, members)
	if err != nil {
		return nil, viewerGone(err)
	}
	texts := storage.Each(members, storage.UserID.String)
	outcomes, self := r.followed(ctx, viewer, given[storage.UserID]{good: members}, texts, relations, stale)
	return &model.FollowListPayload{Viewer: self, Outcomes: outcomes, PageInfo: page.info}, nil
}
