package resolvers

import (
	"context"
	"slices"
	"time"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// listKinds are the cursors of followings and followers.
var listKinds = [...]cursor.Kind{storage.Forward: cursor.Followings, storage.Inverse: cursor.Followers}

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
	p.around(info, more, p.after != storage.Place{}, p.before != storage.Place{})
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
	names   loaders.SmallMap[answerName, struct{}] // of the pages, each once
	queries []storage.PageQuery                    // for the pages
	ahead   []storage.PageQuery                    // what is read first for them
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
				p.totals.Add(owner, struct{}{})
			}
			if n.rows && p.names.Add(nameOf(list.Field, owner), struct{}{}) {
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
				names, read = append(names, p.names.Keys()[i]), append(read, r)
				queries, ahead = append(queries, p.queries[i]), append(ahead, p.ahead[i])
			}
		}
	}
	shown := graph.Show(ctx, p.side, queries, ahead, read)
	owners := slices.DeleteFunc(p.totals.Keys(), func(owner storage.UserID) bool { return !isOpen(owner) })
	var sizes []storage.Result[social.Size]
	if len(owners) > 0 {
		sizes = graph.Sizes(ctx, p.side, owners)
	}
	request.mu.Lock()
	defer request.mu.Unlock()
	for i, name := range names {
		request.answers.Put(name, shown[i])
	}
	for i, owner := range owners {
		request.sizes.Put(social.List{Side: p.side, Owner: owner}, sizes[i])
	}
}

func (r userFields) Followings(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.ListFilter, _ model.ListOrder) (*model.FollowConnection, error) {
	return r.list(ctx, obj)
}

func (r userFields) Followers(ctx context.Context, obj *model.User, _ *int32, _ *string, _ *int32, _ *string, _ *model.ListFilter, _ model.ListOrder) (*model.FollowConnection, error) {
	return r.list(ctx, obj)
}

func (r *Resolver) list(ctx context.Context, obj *model.User) (*model.FollowConnection, error) {
	f, request := planned(ctx), stateOf(ctx)
	args, err := argument[setArguments](request, f)
	switch {
	case err != nil:
		return nil, err
	case args.selected != nil:
		return set(ctx, obj, follows)
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
