package resolvers

import (
	"context"
	"strings"

	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

func (r queries) SearchUsers(ctx context.Context, text string, _ *int32, _ *string) (*model.UserSearchConnection, error) {
	f := fetchQuery(ctx)
	args, err := pageOf(ctx, f, 0)
	if err != nil {
		return nil, err
	}
	words, err := wordsOf("text", text)
	if err != nil {
		return nil, err
	}
	cursors := bound{kind: cursor.RankedSearch, to: []int64{hashOf(strings.Join(words, " "))}, what: "search"}
	var near, followers, id int64
	if err := cursors.read(ctx, "after", args.text, &near, &followers, &id); err != nil {
		return nil, err
	}
	graph, err := r.graph(ctx, loaders.For(ctx).Reader())
	if err != nil {
		return nil, err
	}
	var found []social.Found
	complete := true
	if words != nil { // somebody has typed enough
		query := social.SearchQuery{Words: words, Names: r.reads()}
		if r.Popular != nil {
			query.Popular = r.Popular.Users
		}
		if found, complete, err = graph.Search(ctx, query); err != nil {
			return nil, err
		}
	}
	after := social.Found{Near: near, Followers: followers, User: storage.UserID(id)}
	found, _, more := cut(args, found, func(one social.Found) bool { return one.Compare(after) > 0 }, nil)
	var page userPage
	for _, one := range found {
		page.users = append(page.users, one.User)
		page.cursors = append(page.cursors, cursors.spell(unsealed, one.Near, one.Followers, int64(one.User)))
	}
	info := r.pageInfo(page.cursors, more, nil)
	page.fetch(ctx, f)
	nodes, places := page.nodes(ctx, f)
	return &model.UserSearchConnection{
		Nodes: nodes, PageInfo: info, Complete: complete,
		Edges: edges(len(nodes), func(i int) model.UserSearchEdge {
			return model.UserSearchEdge{Cursor: page.cursors[places[i]], Node: nodes[i]}
		}),
	}, nil
}
