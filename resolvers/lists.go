package resolvers

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
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
func pageOf(kind cursor.Kind, args map[string]any) (pageArguments, error) {
	first, hasFirst, err := sizeOf("first", args["first"])
	if err != nil {
		return pageArguments{}, err
	}
	last, hasLast, err := sizeOf("last", args["last"])
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
	if p.after, err = positionOf(kind, args["after"]); err != nil {
		return p, err
	}
	p.before, err = positionOf(kind, args["before"])
	return p, err
}

// sizeOf reads a number of edges, 0 to maxFirst.
func sizeOf(name string, argument any) (n int, given bool, err error) {
	var size int64
	switch v := argument.(type) {
	case nil:
		return 0, false, nil
	case *int32:
		if v == nil {
			return 0, false, nil
		}
		size = int64(*v)
	case int32:
		size = int64(v)
	case int64:
		size = v
	case int:
		size = int64(v)
	case float64:
		size = int64(v)
	case json.Number:
		if size, err = v.Int64(); err != nil {
			size = math.MaxInt64
		}
	}
	if size < 0 || size > maxFirst {
		return 0, true, apierr.BadInput("%s is 0 to %d", name, maxFirst)
	}
	return int(size), true, nil
}

func positionOf(kind cursor.Kind, argument any) (storage.Position, error) {
	text, given := textOf(argument)
	if !given {
		return storage.Position{}, nil
	}
	var at, peer int64
	err := cursor.Decode(kind, text, &at, &peer)
	return storage.Position{UpdateTime: storage.Micros(at), Peer: storage.UserID(peer)}, err
}

// textOf reads an optional string.
func textOf(argument any) (text string, given bool) {
	switch v := argument.(type) {
	case string:
		return v, true
	case *string:
		if v != nil {
			return *v, true
		}
	}
	return "", false
}

// query asks for one edge more than the page has, to learn whether there is one.
func (p pageArguments) query(owner storage.UserID) storage.PageQuery {
	return storage.PageQuery{Owner: owner, Limit: p.size + 1, After: p.after, Before: p.before, Backward: p.backward}
}

// trim takes that edge off again.
func (p pageArguments) trim(edges []storage.Edge) (page []storage.Edge, more bool) {
	if len(edges) <= p.size {
		return edges, false
	}
	if p.backward {
		return edges[len(edges)-p.size:], true
	}
	return edges[:p.size], true
}

// info tells what lies on both sides of the page. Behind a given cursor something
// is taken to lie without a look.
func (p pageArguments) info(more bool, cursors []string) *model.PageInfo {
	info := &model.PageInfo{
		HasNextPage:     more,
		HasPreviousPage: p.after != storage.Position{},
	}
	if p.backward {
		info.HasNextPage, info.HasPreviousPage = p.before != storage.Position{}, more
	}
	if n := len(cursors); n > 0 {
		info.StartCursor, info.EndCursor = &cursors[0], &cursors[n-1]
	}
	return info
}

// listAt answers `followings` and `followers`.
func listAt(ctx context.Context, obj *model.User, side storage.Side, args map[string]any) (*model.UserConnection, error) {
	p, err := pageOf(listKinds[side], args)
	if err != nil {
		return nil, err
	}
	n := needsOfConnection(ctx, "UserConnection", "UserEdge", selectedHere(ctx))
	c := &model.UserConnection{Complete: true, PageInfo: &model.PageInfo{}}
	if n.total {
		r := loaders.For(ctx).Counts.Load(ctx, obj.UserID)
		c.Total = storage.Result[int64]{Value: r.Value.Of(side), Err: r.Err}
	}
	if !n.rows {
		return c, nil
	}
	r := loaders.For(ctx).Pages(side).Load(ctx, p.query(obj.UserID))
	if r.Err != nil {
		return nil, r.Err
	}
	edges, more := p.trim(r.Value)
	page := make([]entry, len(edges))
	cursors := make([]string, len(edges))
	for i, e := range edges {
		at := storage.PositionOf(side, e)
		cursors[i] = cursor.Encode(listKinds[side], int64(at.UpdateTime), int64(at.Peer))
		page[i] = entry{at.Peer, cursors[i], timeOf(e.UpdateTime)}
	}
	fill(ctx, c, n, page)
	c.PageInfo = p.info(more, cursors)
	return c, nil
}

// entry is one place on a page of users.
type entry struct {
	user   storage.UserID
	cursor string
	since  *time.Time // nil: the list is made of no edge
}

// fill makes the users of a page, which have been fetched, and puts them into the
// connection.
func fill(ctx context.Context, c *model.UserConnection, n connectionNeeds, page []entry) {
	users := usersOnPage(ctx, n, page)
	c.Nodes = users
	c.Edges = make([]*model.UserEdge, len(page))
	for i, e := range page {
		c.Edges[i] = &model.UserEdge{Cursor: e.cursor, Node: users[i], FollowedAt: e.since}
	}
}

func timeOf(m storage.Micros) *time.Time {
	t := m.Time()
	return &t
}

// usersOnPage makes the users of a page, nil where they could not be read.
func usersOnPage(ctx context.Context, n connectionNeeds, page []entry) []*model.User {
	if n.users == nil {
		return make([]*model.User, len(page))
	}
	ids := make([]storage.UserID, len(page))
	for i, e := range page {
		ids[i] = e.user
	}
	return usersOf(ctx, wanted{users: ids, sel: n.users}, func(i int) []ast.Path {
		var paths []ast.Path
		for _, nodes := range n.nodes {
			paths = append(paths, below(ctx, nodes, i))
		}
		for _, keys := range n.edges {
			paths = append(paths, below(ctx, keys[0], i, keys[1]))
		}
		return paths
	})
}
