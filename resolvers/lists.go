package resolvers

import (
	"cmp"
	"context"
	"slices"
	"time"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// listKinds are the cursors of followings and followers.
var listKinds = [...]cursor.Kind{storage.Forward: cursor.Followings, storage.Inverse: cursor.Followers}

// listArguments are those of `followings` and `followers`.
type listArguments struct {
	pageArguments
	filtered, special bool // only the viewer's follows that are special, or only the others: a separate answer
}

// query asks for the page.
func (p pageArguments) query(owner storage.UserID) storage.PageQuery {
	return storage.PageQuery{Owner: owner, Limit: p.size, After: positionAt(p.after), Before: positionAt(p.before), Backward: p.backward}
}

// info reports what is on both sides of the page of edges. If a cursor was given, something is
// assumed to be behind it.
func (p pageArguments) info(r *Resolver, side storage.Side, more bool, edges []storage.Edge) *model.PageInfo {
	var ends []string
	if n := len(edges); n > 0 {
		ends = []string{cursorOf(side, edges[0]), cursorOf(side, edges[n-1])}
	}
	info := r.pageInfo(ends, more, nil)
	info.HasPreviousPage = p.after != storage.Place{}
	if p.backward {
		info.HasNextPage, info.HasPreviousPage = p.before != storage.Place{}, more
	}
	return info
}

func cursorOf(side storage.Side, e storage.Edge) string {
	return spell(unsealed, listKinds[side], placeAt(storage.PositionOf(side, e)))
}

// followEdge is an edge of a plain list.
func followEdge(side storage.Side, e storage.Edge, node *model.User) *model.FollowEdge {
	return &model.FollowEdge{Cursor: cursorOf(side, e), Node: node, FollowedAt: e.UpdateTime.Time()}
}

// pagesOfSide are pages of plain lists of one side that are fetched together, and lists whose
// lengths are fetched.
type pagesOfSide struct {
	side    storage.Side
	names   smallMap[answerName, struct{}] // of the pages, each once
	queries []storage.PageQuery            // for the pages
	ahead   []storage.PageQuery            // what is read first for them
	pages   *loaders.Asked[storage.PageQuery, []storage.Edge]
	totals  idSet
}

// pagesAhead lists the reads for the lists of a level; nil if there are none. If
// the hidden users are not known yet, pages are completed later.
func (b *batch) pagesAhead(a *social.Audience) (all [len(sides)]*pagesOfSide) {
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
			if n.rows && p.names.add(nameOf(list.Field, owner), struct{}{}) {
				q := list.page.query(owner)
				p.queries, p.ahead = append(p.queries, q), append(p.ahead, a.Ahead(q))
			}
		}
	}
	return all
}

// show keeps the pages that are open to the audience, without hidden users, and the lengths of the
// lists.
func (p *pagesOfSide) show(ctx context.Context, a *social.Audience) {
	e := accessOf(ctx)
	request, graph := e.request, social.New(e.loaders.Reader(), e.resolver.Budget, a)
	isOpen := func(owner storage.UserID) bool {
		open, err := e.isOpen(social.List{Side: p.side, Owner: owner})
		return err == nil && open
	}
	var names []answerName
	var queries, ahead []storage.PageQuery
	var read []storage.Result[[]storage.Edge]
	if p.pages != nil {
		for i, r := range p.pages.Results() {
			if isOpen(p.queries[i].Owner) {
				names, read = append(names, p.names.keys[i]), append(read, r)
				queries, ahead = append(queries, p.queries[i]), append(ahead, p.ahead[i])
			}
		}
	}
	shown := graph.Show(ctx, p.side, queries, ahead, read)
	owners := slices.DeleteFunc(p.totals.keys, func(owner storage.UserID) bool { return !isOpen(owner) })
	var sizes []storage.Result[social.Size]
	if len(owners) > 0 {
		sizes = graph.Sizes(ctx, p.side, owners)
	}
	request.mu.Lock()
	defer request.mu.Unlock()
	for i, name := range names {
		request.answers.put(name, shown[i])
	}
	for i, owner := range owners {
		request.sizes.put(social.List{Side: p.side, Owner: owner}, sizes[i])
	}
}

func (r userFields) Followings(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.FollowingsFilter) (*model.FollowConnection, error) {
	return r.list(ctx, obj)
}

func (r userFields) Followers(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string) (*model.FollowConnection, error) {
	return r.list(ctx, obj)
}

func (r *Resolver) list(ctx context.Context, obj *model.User) (*model.FollowConnection, error) {
	f, request := planned(ctx), stateOf(ctx)
	args, err := argument[listArguments](request, f)
	switch {
	case err != nil:
		return nil, err
	case args.filtered:
		return r.marked(ctx, obj, f, args)
	}
	list := social.List{Side: f.Side, Owner: obj.UserID}
	if open, err := isOpen(ctx, list); err != nil || !open {
		return nil, err
	}
	n := pageNeedsOf(f)
	c := &model.FollowConnection{UserPage: model.UserPage{Complete: true, PageInfo: &model.PageInfo{}}}
	if n.total {
		size := mustHave(request, &request.sizes, list)
		c.Total = storage.Result[int64]{Value: size.Value.Total, Err: size.Err}
		c.Complete = size.Value.Complete || size.Err != nil
	}
	if !n.rows {
		return c, nil
	}
	shown, err := answerTo[social.Shown](request, nameOf(f, obj.UserID))
	if err != nil {
		return nil, err
	}
	users := pageOfEdges(f.Side, shown.Edges, n.cursors).shown(ctx, f)
	c.Nodes, c.Edges = users.nodes, users.follows()
	c.Complete = c.Complete && shown.Complete
	if !n.around {
		return c, nil
	}
	c.PageInfo = args.info(r, f.Side, shown.More, shown.Edges)
	if !shown.Complete {
		goOn := spell(r.Cursors, listKinds[f.Side], placeAt(shown.End))
		if args.backward {
			c.PageInfo.StartCursor = &goOn
		} else {
			c.PageInfo.EndCursor = &goOn
		}
	}
	return c, nil
}

// pageOfEdges is the users on a page of a plain list, with cursors only if they are selected.
func pageOfEdges(side storage.Side, edges []storage.Edge, cursors bool) userPage {
	p := userPage{users: make([]storage.UserID, len(edges)), since: make([]time.Time, len(edges))}
	if cursors {
		p.cursors = make([]string, len(edges))
	}
	for i, e := range edges {
		p.users[i], p.since[i] = side.Peer(e.Pair()), e.UpdateTime.Time()
		if cursors {
			p.cursors[i] = cursorOf(side, e)
		}
	}
	return p
}

// marked answers `followings(filter: {special: true})`, and false, which are for the viewer's
// own list. They have the order and the cursors of the list that they are a part of.
func (r *Resolver) marked(ctx context.Context, obj *model.User, f *selections.Field, args listArguments) (*model.FollowConnection, error) {
	graph, err := r.graph(ctx, loaders.For(ctx).Reader())
	if err != nil || !isViewer(ctx, obj.UserID) {
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
	a.page, a.info = pageOfEdges(storage.Forward, edges, true), args.info(r, storage.Forward, more, edges)
	a.page.fetch(ctx, f)
	return follows(a.show(ctx, f)), nil
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
	page, cut := endOf(page, wanted, q.Backward)
	return page, cut || shown.More, err
}

// cut takes the page out of a whole list, newest first.
func (p pageArguments) cut(edges []storage.Edge) (page []storage.Edge, more bool) {
	return endOf(slices.DeleteFunc(edges, func(e storage.Edge) bool {
		at := placeAt(storage.PositionOf(storage.Forward, e))
		return p.after != (storage.Place{}) && at.Compare(p.after) <= 0 ||
			p.before != (storage.Place{}) && at.Compare(p.before) >= 0
	}), p.size, p.backward)
}

// endOf is at most so many edges of a list: its first, or its last ones.
func endOf(edges []storage.Edge, size int, last bool) (page []storage.Edge, more bool) {
	switch {
	case len(edges) <= size:
		return edges, false
	case last:
		return edges[len(edges)-size:], true
	}
	return edges[:size], true
}
