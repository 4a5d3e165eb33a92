package resolvers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/fields"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// Bounds on a page.
const (
	defaultFirst = 20
	maxFirst     = 100
)

// listKinds are the cursors of followings and followers.
var listKinds = [...]cursor.Kind{storage.Forward: cursor.Followings, storage.Inverse: cursor.Followers}

// pageArguments are the arguments of a plain list, checked.
type pageArguments struct {
	size          int
	after, before storage.Position // zero: not given
	backward      bool             // `last` was given
}

// pageOf reads first, after, last and before.
func pageOf(ctx context.Context, f *selections.Field) (pageArguments, error) {
	first, hasFirst, err := sizeOf("first", f.Argument(ctx, "first"))
	if err != nil {
		return pageArguments{}, err
	}
	last, hasLast, err := sizeOf("last", f.Argument(ctx, "last"))
	if err != nil {
		return pageArguments{}, err
	}
	p := pageArguments{size: defaultFirst}
	switch {
	case hasFirst && hasLast:
		return p, apierr.BadInput("first and last cannot be given together")
	case hasFirst:
		p.size = first
	case hasLast:
		p.size, p.backward = last, true
	}
	if p.after, err = positionOf(ctx, listKinds[f.Side], f.Argument(ctx, "after")); err != nil {
		return p, err
	}
	p.before, err = positionOf(ctx, listKinds[f.Side], f.Argument(ctx, "before"))
	return p, err
}

// sizeOf reads a number of edges, 0 to maxFirst, as the plan or gqlgen has it.
func sizeOf(name string, argument any) (n int, given bool, err error) {
	size := int64(-1)
	switch v := argument.(type) {
	case nil:
		return 0, false, nil
	case *int32:
		if v == nil {
			return 0, false, nil
		}
		size = int64(*v)
	case int64:
		size = v
	}
	if size < 0 || size > maxFirst {
		return 0, true, apierr.BadInput("%s is 0 to %d", name, maxFirst)
	}
	return int(size), true, nil
}

func positionOf(ctx context.Context, kind cursor.Kind, argument any) (storage.Position, error) {
	text, given := textOf(argument)
	if !given {
		return storage.Position{}, nil
	}
	var at, peer int64
	err := resolverOf(ctx).Cursors.Decode(kind, text, &at, &peer)
	return storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}, err
}

// textOf reads an optional string, as the plan or gqlgen has it.
func textOf(argument any) (text string, given bool) {
	if v, ok := argument.(*string); ok && v != nil {
		return *v, true
	}
	text, given = argument.(string)
	return text, given
}

// query asks for the page.
func (p pageArguments) query(owner storage.UserID) storage.PageQuery {
	return storage.PageQuery{Owner: owner, Limit: p.size, After: p.after, Before: p.before, Backward: p.backward}
}

// info reports what is on both sides of the page of edges. If a cursor was given, something is
// assumed to be behind it.
func (p pageArguments) info(side storage.Side, more bool, edges []storage.Edge) *model.PageInfo {
	info := &model.PageInfo{
		HasNextPage:     more,
		HasPreviousPage: p.after != storage.Position{},
	}
	if p.backward {
		info.HasNextPage, info.HasPreviousPage = p.before != storage.Position{}, more
	}
	if n := len(edges); n > 0 {
		first, last := cursorOf(side, storage.PositionOf(side, edges[0])), cursorOf(side, storage.PositionOf(side, edges[n-1]))
		info.StartCursor, info.EndCursor = &first, &last
	}
	return info
}

// listPage names a page of a plain list.
type listPage struct {
	social.List
	page pageArguments
}

// page is what has been fetched of a list, if the list is open.
func (r *requestState) page(p listPage) (shown storage.Result[social.Shown], ok bool) {
	return kept(r, &r.shown, p)
}

// kept is the value that the plan has read under a name.
func kept[K comparable, V any](r *requestState, of *few[K, V], name K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return of.get(name)
}

// mustHave is [kept] for values that the plan reads for every field.
func mustHave[K comparable, V any](r *requestState, of *few[K, V], name K) V {
	value, ok := kept(r, of, name)
	if !ok {
		panic(fmt.Sprintf("the plan has not read %+v", name))
	}
	return value
}

// pagesOfSide are pages of plain lists of one side that are fetched together, and lists whose
// lengths are fetched.
type pagesOfSide struct {
	side   storage.Side
	names  []listPage
	asked  []storage.PageQuery
	pages  *loaders.Asked[storage.PageQuery, []storage.Edge]
	totals distinct
}

// pagesAhead lists the reads for the lists of a level, each page once; nil if there are none. If
// the hidden users are not known yet, pages are completed later.
func (b *batch) pagesAhead(a *social.Audience) (all [len(sides)]*pagesOfSide) {
	if len(b.lists) == 0 {
		return all
	}
	var seen few[listPage, struct{}]
	for _, list := range b.lists {
		n, p := pageNeedsOf(list.Field), all[list.Side]
		if p == nil {
			p = &pagesOfSide{side: list.Side}
			all[list.Side] = p
		}
		for _, owner := range list.owners {
			if n.total {
				p.totals.add(owner, struct{}{})
			}
			name := listPage{social.List{Side: list.Side, Owner: owner}, list.page}
			if !n.rows {
				continue
			}
			if seen.add(name, struct{}{}) {
				p.names = append(p.names, name)
				p.asked = append(p.asked, a.Ahead(name.page.query(name.Owner)))
			}
		}
	}
	return all
}

// show keeps the pages that are open to the audience, without hidden users, and the lengths of the
// lists.
func (p *pagesOfSide) show(ctx context.Context, a *social.Audience) {
	if len(p.names)+len(p.totals.keys) == 0 {
		return
	}
	e := accessOf(ctx)
	request, graph := e.request, social.New(e.loaders.Reader(), e.resolver.Budget, a)
	var names []listPage
	var queries, asked []storage.PageQuery
	var read []storage.Result[[]storage.Edge]
	if p.pages != nil {
		for i, r := range p.pages.Results() {
			if open, err := e.isOpen(p.names[i].List); err == nil && open {
				names = append(names, p.names[i])
				queries = append(queries, p.names[i].page.query(p.names[i].Owner))
				asked = append(asked, p.asked[i])
				read = append(read, r)
			}
		}
	}
	shown := graph.Show(ctx, p.side, queries, asked, read)
	var owners []storage.UserID
	for _, owner := range p.totals.keys {
		if open, err := e.isOpen(social.List{Side: p.side, Owner: owner}); err == nil && open {
			owners = append(owners, owner)
		}
	}
	var sizes []storage.Result[social.Size]
	if len(owners) > 0 {
		sizes = graph.Sizes(ctx, p.side, owners)
	}
	request.mu.Lock()
	defer request.mu.Unlock()
	for i, name := range names {
		request.shown.put(name, shown[i])
	}
	for i, owner := range owners {
		request.sizes.put(social.List{Side: p.side, Owner: owner}, sizes[i])
	}
}

func (r userFields) Followings(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.FollowingsFilter) (*model.UserConnection, error) {
	return r.list(ctx, obj)
}

func (r userFields) Followers(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string) (*model.UserConnection, error) {
	return r.list(ctx, obj)
}

func (r *Resolver) list(ctx context.Context, obj *model.User) (*model.UserConnection, error) {
	f, request := planned(ctx), stateOf(ctx)
	args, err := argument[listArguments](request, f)
	switch {
	case err != nil:
		return nil, err
	case args.filtered:
		return r.markedAt(ctx, obj, f, args)
	}
	name := listPage{social.List{Side: f.Side, Owner: obj.UserID}, args.pageArguments}
	if open, err := isOpen(ctx, name.List); err != nil || !open {
		return nil, err
	}
	n := pageNeedsOf(f)
	c := &model.UserConnection{Complete: true, PageInfo: &model.PageInfo{}}
	if n.total {
		size := mustHave(request, &request.sizes, name.List)
		c.Total = storage.Result[int64]{Value: size.Value.Total, Err: size.Err}
		c.Complete = size.Value.Complete || size.Err != nil
	}
	if !n.rows {
		return c, nil
	}
	shown := mustHave(request, &request.shown, name)
	if shown.Err != nil {
		return nil, shown.Err
	}
	fill(ctx, c, f, itemsOf(f.Side, shown.Value.Edges, n.cursors))
	c.PageInfo = args.info(f.Side, shown.Value.More, shown.Value.Edges)
	if !shown.Value.Complete {
		c.Complete = false
		goOn := r.Cursors.Seal(listKinds[f.Side], int64(shown.Value.End.UpdateTime), int64(shown.Value.End.Peer))
		if args.backward {
			c.PageInfo.StartCursor = &goOn
		} else {
			c.PageInfo.EndCursor = &goOn
		}
	}
	return c, nil
}

// pageNeeds is what the selection on a page needs.
type pageNeeds struct {
	rows    bool // anything but totalCount and complete
	total   bool // totalCount
	cursors bool // `cursor` of the edges
}

func pageNeedsOf(f *selections.Field) pageNeeds {
	needs := f.Below[0].Needs(true)
	return pageNeeds{needs&fields.Rows != 0, needs&fields.Total != 0, needs&fields.Cursors != 0}
}

// itemsOf makes the items of a page of a plain list, with cursors only if
// they are selected.
func itemsOf(side storage.Side, edges []storage.Edge, cursors bool) []item {
	page, times := make([]item, len(edges)), make([]time.Time, len(edges))
	for i, e := range edges {
		at := storage.PositionOf(side, e)
		times[i] = e.UpdateTime.Time()
		page[i] = item{user: at.Peer, since: &times[i]}
		if cursors {
			page[i].cursor = cursorOf(side, at)
		}
	}
	return page
}

func cursorOf(side storage.Side, at storage.Position) string {
	return cursor.Encode(listKinds[side], int64(at.UpdateTime), int64(at.Peer))
}

// markedAt answers `followings(filter: {special: true})`, and false, which are for the viewer's
// own list. They have the order and the cursors of the list that they are a part of.
func (r *Resolver) markedAt(ctx context.Context, obj *model.User, f *selections.Field, args listArguments) (*model.UserConnection, error) {
	graph, err := r.graph(ctx, loaders.For(ctx).Reader())
	if err != nil || !obj.IsViewer {
		return nil, err
	}
	specials, err := graph.Specials(ctx, loaders.For(ctx).Specials().Fetch([]storage.UserID{obj.UserID})[0], obj.UserID)
	if err != nil {
		return nil, err
	}
	a, edges, more := setAnswer{total: len(specials), complete: true}, specials, false
	if args.special {
		edges, more = args.cut(edges)
	} else if edges, more, err = r.others(ctx, graph, &a, args.query(obj.UserID), specials); err != nil {
		return nil, err
	}
	a.page, a.info = itemsOf(storage.Forward, edges, true), args.info(storage.Forward, more, edges)
	fetchPage(ctx, f, a.page)
	return pageOfUsers(ctx, f, &a), nil
}

// others reads a page of the follows that are not special: so many more that all special ones may be among them.
func (r *Resolver) others(ctx context.Context, graph *social.Graph, a *setAnswer, q storage.PageQuery, specials []storage.Edge) (page []storage.Edge, more bool, err error) {
	size := graph.Sizes(ctx, storage.Forward, []storage.UserID{q.Owner})[0]
	audience, err := audienceOf(ctx)
	if err := cmp.Or(err, size.Err); err != nil {
		return nil, false, err
	}
	wanted := q.Limit
	q.Limit += len(specials)
	shown, err := r.show(ctx, storage.Forward, audience, q)
	a.total, a.complete = int(size.Value.Total)-len(specials), size.Value.Complete && shown.Complete
	page = slices.DeleteFunc(slices.Clone(shown.Edges), func(e storage.Edge) bool {
		return slices.ContainsFunc(specials, func(special storage.Edge) bool { return special.To == e.To }) // it may have been renewed meanwhile
	})
	switch {
	case len(page) <= wanted:
		return page, shown.More, err
	case q.Backward:
		return page[len(page)-wanted:], true, err
	}
	return page[:wanted], true, err
}

// cut takes the page out of a whole list, newest first.
func (p pageArguments) cut(edges []storage.Edge) (page []storage.Edge, more bool) {
	edges = slices.DeleteFunc(edges, func(e storage.Edge) bool {
		at := storage.PositionOf(storage.Forward, e)
		return p.after != (storage.Position{}) && at.Compare(p.after) <= 0 ||
			p.before != (storage.Position{}) && at.Compare(p.before) >= 0
	})
	switch {
	case len(edges) <= p.size:
		return edges, false
	case p.backward:
		return edges[len(edges)-p.size:], true
	}
	return edges[:p.size], true
}

// item is one user on a page.
type item struct {
	user   storage.UserID
	cursor string
	since  *time.Time // nil: the list is not made of edges
}

// fill makes the users of a page, which have been fetched, and puts them into the
// connection.
func fill(ctx context.Context, c *model.UserConnection, f *selections.Field, page []item) {
	users, places := usersOnPage(ctx, f, page)
	c.Nodes = users
	c.Edges = make([]*model.UserEdge, len(users))
	made := make([]model.UserEdge, len(users))
	for i, place := range places {
		made[i] = model.UserEdge{Cursor: page[place].cursor, Node: users[i], FollowedAt: page[place].since}
		c.Edges[i] = &made[i]
	}
}

func timeOf(m storage.Micros) *time.Time {
	t := m.Time()
	return &t
}

// usersOnPage makes the users of a page, nil if they could not be read, and tells their places on the page. It leaves out
// users who have gone since the page was read: they would be null without an error.
func usersOnPage(ctx context.Context, f *selections.Field, page []item) (users []*model.User, places []int) {
	items := f.Below[0].Items
	if users = make([]*model.User, len(page)); items != nil {
		users = usersOf(ctx, wanted{users: usersOfPage(page), on: items}, itemPaths(ctx, f))
	}
	e := accessOf(ctx)
	places = make([]int, 0, len(page))
	for i, u := range users {
		id := page[i].user
		if u != nil || items == nil || !e.isAbsent(id) && e.loaders.Users.Load(id).Err != nil {
			users[len(places)] = u
			places = append(places, i)
		}
	}
	return users[:len(places)], places
}

func usersOfPage(page []item) []storage.UserID {
	ids := make([]storage.UserID, len(page))
	for i, e := range page {
		ids[i] = e.user
	}
	return ids
}

// itemPaths are the paths of the items of a page.
func itemPaths(ctx context.Context, f *selections.Field) paths {
	return func(i int) (all []ast.Path) {
		for _, on := range f.Below[0].Fields {
			switch on.Ahead {
			case fields.Item:
				all = append(all, below(ctx, on.Alias, i))
			case fields.Edges:
				for _, node := range on.Below[0].Fields {
					if node.Ahead == fields.Item {
						all = append(all, below(ctx, on.Alias, i, node.Alias))
					}
				}
			}
		}
		return all
	}
}
