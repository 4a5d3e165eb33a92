package resolvers

import (
	"cmp"
	"context"
	"errors"
	"math"

	"kith/accounts"
	"kith/graph/apierr"
	"kith/graph/consistency"
	"kith/graph/cursor"
	"kith/graph/declared"
	"kith/graph/limits"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/graph/why"
	"kith/loaders"
	"kith/resolvers/prefetch"
	"kith/social"
	"kith/storage"
)

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

// oneList asks for a list.
func oneList(id storage.ListID) storage.ListsQuery {
	return storage.ListsQuery{Owner: id.Owner, UpTo: id.Number, Limit: 1}
}

// seenLists reads lists, each with its own error. Those that the viewer does not see are as those that there are not: not found.
func seenLists(ctx context.Context, ids []storage.ListID) []storage.Result[storage.UserList] {
	lists := make([]storage.Result[storage.UserList], len(ids))
	a, err := prefetch.AudienceOf(ctx)
	for i, read := range loaders.Of(loaders.For(ctx), storage.ListLookups).Fetch(storage.Each(ids, oneList)) {
		lists[i].Err = cmp.Or(err, read.Err)
		for _, l := range read.Value {
			if lists[i].Err == nil && l.ListID == ids[i] && !a.Hides(l.Owner) && isListOpen(prefetch.AccessOf(ctx), l) {
				lists[i] = storage.Result[storage.UserList]{Value: l, Found: true}
			}
		}
	}
	return lists
}

// isListOpen reports whether the viewer may see a list, whose owner is not hidden.
func isListOpen(e *prefetch.Access, l storage.UserList) bool {
	open := l.Public || l.Owner == e.Viewer
	if !open {
		e.Notice(why.Closed, l.Owner)
	}
	return open
}

// listOf is the list that an argument names; errNoList if the viewer does not see it.
func listOf(ctx context.Context, argument, text string) (*storage.UserList, error) {
	id, err := parseListID(argument, text)
	if err != nil {
		return &storage.UserList{}, err
	}
	list := seenLists(ctx, []storage.ListID{id})[0]
	if list.Err == nil && !list.Found {
		list.Err = errNoList.In(argument)
	}
	return &list.Value, list.Err
}

// ownListID is the id of a list of the viewer, who is about to change so many objects. Whether there is the list is not known. more are the
// checks of the other arguments.
func (r *Resolver) ownListID(ctx context.Context, text string, objects int, more ...error) (storage.ListID, error) {
	viewer, err := r.actorOf(ctx, objects)
	if err != nil {
		return storage.ListID{}, err
	}
	id, err := parseListID("listId", text)
	if err == nil && id.Owner != viewer {
		err = errNoList.In("listId")
	}
	return id, allOf(append(more, err))
}

// ownListOf is ownListID of a list that there is.
func (r *Resolver) ownListOf(ctx context.Context, text string, objects int, more ...error) (*storage.UserList, error) {
	if _, err := r.ownListID(ctx, text, objects, more...); err != nil {
		return nil, err
	}
	return listOf(ctx, "listId", text)
}

// userLists are the lists of a user that the viewer sees, newest first.
var userLists = prefetch.PlaceList[storage.UserID, storage.ListsQuery, storage.UserList]{
	Kind: cursor.Lists, Of: userName, Pages: storage.ListLookups,
	Place: func(l storage.UserList) storage.Place { return storage.Place{CreatedAt: storage.Micros(l.Number)} },
	Query: func(e *prefetch.Access, of storage.PostID, after storage.Place, limit int) storage.ListsQuery {
		q := storage.ListsQuery{Owner: of.Author, UpTo: int64(after.CreatedAt) - 1, Public: of.Author != e.Viewer && !e.IsAsked(), Limit: limit}
		if after == (storage.Place{}) {
			q.UpTo = math.MaxInt64
		}
		return q
	},
	Shows: func(e *prefetch.Access, _ *social.Audience, l storage.UserList) bool { return isListOpen(e, l) },
	Below: func(_ context.Context, _ *social.Audience, rows []storage.UserList, on []*selections.Object) prefetch.Objects {
		return prefetch.RowsOn(rows, on)
	},
}

// listOwner is read in the level of the list.
var listOwner = prefetch.NewField(prefetch.NoArguments, func(ctx context.Context, level *prefetch.Level, f *selections.Field, _ prefetch.None, rows []storage.UserList) {
	owners := storage.Each(rows, func(l storage.UserList) storage.UserID { return l.Owner })
	prefetch.Users{IDs: prefetch.Distinct(owners), Exist: true, On: f.Below}.AddTo(ctx, level)
})

// listMembers is a page of the members of a list, or how many these are.
var listMembers = &setField[storage.UserList]{
	parse: parsePart(cursor.Edges), name: func(l storage.UserList) storage.PostID { return listName(l.ListID) },
	setWork: setWork{single: true, answer: func(q setQuestion, ctx context.Context) (userPage, error) {
		list := membersOf(storage.ListID{Owner: q.user, Number: q.name.Of.Number})
		return list.page(ctx, q.read, q.audience, q.arguments.PageArguments, list.cursorsOf(), q.needs())
	}},
}

// listHas asks for the edge from a list to the user of the argument `userId`.
var listHas = prefetch.NewField(
	func(ctx context.Context, f *selections.Field) (storage.UserID, error) {
		return userArgument(ctx, f, "userId")
	},
	func(_ context.Context, level *prefetch.Level, _ *selections.Field, user storage.UserID, lists []storage.UserList) {
		edges := storage.Each(lists, func(l storage.UserList) storage.Pair { return memberOf(l, user) })
		level.Ask(loaders.Of(level.Loaders, storage.EdgeLookups[storage.Relations]).Ask(edges))
	})

func memberOf(l storage.UserList, user storage.UserID) storage.Pair {
	return storage.Pair{From: l.Owner, To: user, Item: l.Kind()}
}

func askListNodes(_ context.Context, level *prefetch.Level, nodes []nodeID, on []*selections.Object) {
	ids := storage.Each(nodes, nodeID.list)
	level.Ask(loaders.Of(level.Loaders, storage.ListLookups).Ask(storage.Each(ids, oneList)))
	level.Seen = append(level.Seen, func(ctx context.Context, _ *social.Audience) {
		for _, l := range seenLists(ctx, ids) { // each field reports its error
			if l.Found {
				level.Next = append(level.Next, prefetch.RowsOn([]storage.UserList{l.Value}, on))
			}
		}
	})
}

func showListNode(ctx context.Context, id nodeID, _ []*selections.Object, at prefetch.Paths) model.Node {
	list := seenLists(ctx, []storage.ListID{id.list()})[0]
	if list.Err != nil {
		prefetch.FailAt(ctx, at(0), list.Err)
	}
	if !list.Found {
		return nil
	}
	return &model.List{Row: list.Value}
}

// listName names a list as what has an answer.
func listName(id storage.ListID) storage.PostID {
	return storage.PostID{Author: id.Owner, Number: id.Number}
}

// Lists is empty if the user is hidden.
func (userFields) Lists(ctx context.Context, obj *model.User, _ *int32, _ *string) (*model.ListConnection, error) {
	_, p, err := prefetch.Answer[storage.UserList](ctx, userName(obj.UserID))
	if err != nil {
		return nil, err
	}
	if p == nil {
		p = &prefetch.Page[storage.UserList]{Info: &model.PageInfo{}}
	}
	nodes := storage.Each(p.Rows, func(l storage.UserList) *model.List { return &model.List{Row: l} })
	return &model.ListConnection{Page: prefetch.PageOf(p.Info, nodes, func(i int) model.ListEdge {
		return model.ListEdge{Cursor: p.Cursors[i], Node: nodes[i]}
	})}, nil
}

// The members of a list, newest first.
func membersOf(id storage.ListID) ownList {
	return edgesFrom(id.Kind(), id.Owner)
}

func (listFields) Members(ctx context.Context, obj *model.List, _ *int32, _ *string) (*model.UserConnection, error) {
	return showPage(ctx, listName(obj.Row.ListID))
}

func (listFields) Has(ctx context.Context, obj *model.List, _ string) (bool, error) {
	_, user, err := prefetch.RunningWith[storage.UserID](ctx)
	if err != nil {
		return false, err
	}
	a, err := prefetch.AudienceOf(ctx)
	if err != nil || a.Hides(user) {
		return false, err
	}
	edge := loaders.Of(loaders.For(ctx), storage.EdgeLookups[storage.Relations]).Get(memberOf(obj.Row, user))
	return edge.Value.Type == storage.Related, edge.Err
}

// Lists asks for the edges from all lists of the viewer to a user, as [listHas] does.
func (viewerFields) Lists(ctx context.Context, obj *model.Viewer, with string) ([]*model.List, error) {
	user, err := parseUserID("with", with)
	if err != nil {
		return nil, err
	}
	a, err := prefetch.AudienceOf(ctx)
	if err != nil || a.Hides(user) {
		return []*model.List{}, err
	}
	l := loaders.For(ctx)
	all := loaders.Of(l, storage.ListLookups).Get(storage.ListsQuery{Owner: obj.User.UserID, UpTo: math.MaxInt64, Limit: storage.MaxLists})
	if all.Err != nil {
		return nil, all.Err
	}
	edges := storage.Each(all.Value, func(l storage.UserList) storage.Pair { return memberOf(l, user) })
	var on []storage.UserList
	for i, edge := range loaders.Of(l, storage.EdgeLookups[storage.Relations]).Fetch(edges) {
		if edge.Err != nil {
			return nil, edge.Err
		}
		if edge.Value.Type == storage.Related {
			on = append(on, all.Value[i])
		}
	}
	prefetch.Fetch(ctx, prefetch.RowsOn(on, prefetch.Running(ctx).Below))
	return storage.Each(on, func(l storage.UserList) *model.List { return &model.List{Row: l} }), nil
}

func (listFields) MemberCount(ctx context.Context, obj *model.List) (int32, error) {
	_, p, err := prefetch.Answer[storage.UserID](ctx, listName(obj.Row.ListID))
	switch {
	case err != nil:
		return 0, err
	case p.Total.Err == nil && !p.Complete:
		return 0, apierr.ListTooLong.Error("so many users are hidden that not all lists of the query are counted: ask for fewer")
	}
	return model.CountOf(p.Total.Value), p.Total.Err
}

func (listFields) Owner(ctx context.Context, obj *model.List) (*model.User, error) {
	return usersOf(ctx, prefetch.Users{IDs: []storage.UserID{obj.Row.Owner}, Exist: true, On: prefetch.Running(ctx).Below}, prefetch.Here(ctx))[0], nil
}

func (r mutations) CreateList(ctx context.Context, name string, public bool, texts []string) (*model.ListPayload, error) {
	viewer, err := r.actorOf(ctx, 1+len(texts))
	if err != nil {
		return nil, err
	}
	name, badName := accounts.CheckName("name", name, 1, storage.MaxListName)
	if err := apierr.All(badName, checkLength("userIds", len(texts), limits.MaxIDs)); err != nil {
		return nil, err
	}
	id := storage.ListID{Owner: viewer, Number: int64(storage.MicrosOf(r.Relations.Now()))}
	list, created, err := r.Writes.CreateList(ctx, storage.UserList{ListID: id, Name: name, Public: public})
	if err != nil {
		return nil, viewerGone(listError(err))
	}
	payload, err := r.changeMembers(ctx, &list, texts, created, true)
	if err == nil {
		payload.ListEdge = madeOne(payloadSelection(ctx), "listEdge", created, func() model.ListEdge {
			return model.ListEdge{Cursor: prefetch.Spell(prefetch.Unsealed, cursor.Lists, userLists.Place(list)), Node: payload.List}
		})
	}
	return payload, err
}

var listError = refusals{{storage.ErrLimitReached, apierr.TooManyLists.Error("you have as many lists as one may, which is %d", storage.MaxLists)}}.tell

func (r mutations) UpdateList(ctx context.Context, id string, name *string, public *bool) (*model.ListPayload, error) {
	name, badName := checked(accounts.CheckName, "name", name, 1, storage.MaxListName)
	which, err := r.ownListID(ctx, id, 1, badName)
	if err != nil {
		return nil, err
	}
	list, changed, err := r.Writes.UpdateList(ctx, which, storage.ListChange{Name: name, Public: public})
	if err != nil {
		return nil, clientError(err)
	}
	return r.changeMembers(ctx, &list, nil, changed, true)
}

func (r mutations) DeleteList(ctx context.Context, id string) (*model.ListPayload, error) {
	list, err := r.ownListID(ctx, id, 1)
	if err != nil {
		return nil, err
	}
	err = r.Relations.DeleteList(ctx, r.Writes, list)
	if err != nil && !errors.Is(err, storage.ErrListUnknown) {
		return nil, clientError(err)
	}
	payload := &model.ListPayload{Changed: err == nil, Viewer: payloadSelection(ctx).readViewer(ctx, list.Owner), Outcomes: []*model.FollowOutcome{}}
	if payload.Changed {
		payload.DeletedListID = new((&model.List{Row: storage.UserList{ListID: list}}).ID())
	}
	return payload, nil
}

func (r mutations) AddToList(ctx context.Context, id string, texts []string) (*model.ListPayload, error) {
	list, err := r.ownListOf(ctx, id, len(texts), checkLength("userIds", len(texts), limits.MaxIDs))
	if err != nil {
		return nil, err
	}
	return r.changeMembers(ctx, list, texts, false, true)
}

func (r mutations) RemoveFromList(ctx context.Context, id string, texts []string) (*model.ListPayload, error) {
	list, err := r.ownListOf(ctx, id, len(texts), checkLength("userIds", len(texts), limits.MaxIDs))
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
	var stale bool
	members := declared.Members(list.ListID)
	if add {
		results, stale = r.Relations.Relate(ctx, loaders.For(ctx).Reader(), list.Owner, members, ids.Good, storage.DetailChange{})
	} else {
		results, stale = r.Relations.Unrelate(ctx, list.Owner, members, ids.Good)
	}
	for i, r := range results {
		changed, results[i].Err = changed || r.Value.Changed, relationError(r.Err)
	}
	r.await(ctx, done{token: consistency.Beside(list.Owner), stale: stale}, false) // nobody reads the inverse side of a list
	outcomes, viewer := r.outcomes(ctx, list.Owner, "userIds", ids, texts, results, madeBy(results))
	s := payloadSelection(ctx)
	prefetch.Fetch(ctx, prefetch.RowsOn([]storage.UserList{*list}, append(s.of("list"), s.below("listEdge").of("node")...)))
	return &model.ListPayload{Changed: changed, List: &model.List{Row: *list}, Viewer: viewer, Outcomes: outcomes}, nil
}

// followedAtOnce is how many members of a list are followed by one call.
const followedAtOnce = limits.MaxIDs

func (r mutations) FollowList(ctx context.Context, id string, _ *string) (*model.FollowListPayload, error) {
	viewer, err := r.actorOf(ctx, 1)
	if err != nil {
		return nil, err
	}
	list, badList := listOf(ctx, "listId", id)
	args, badAfter, l := prefetch.PageArguments{Size: followedAtOnce}, error(nil), membersOf(list.ListID)
	args.Text, badAfter = prefetch.ParseCursor(ctx, prefetch.Running(ctx), l.cursorsOf().If(badList), "after")
	if err := apierr.All(badList, badAfter); err != nil {
		return nil, err
	}
	page, err := r.toChange(ctx, viewer, l, args, l.cursorsOf())
	if err != nil {
		return nil, err
	}
	relations, stale, err := r.Relations.Follow(ctx, loaders.For(ctx).Reader(), viewer, page.Rows)
	if err != nil {
		return nil, viewerGone(err)
	}
	outcomes, self := r.followed(ctx, viewer, "listId", prefetch.Inputs[storage.UserID]{Good: page.Rows}, nil, relations, stale)
	return &model.FollowListPayload{Viewer: self, Outcomes: outcomes, PageInfo: page.Info}, nil
}
