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
	found, err := shared(ctx, searchKey(strings.Join(words, " ")), func() (foundUsers, error) { return r.search(ctx, words) })
	if err != nil {
		return nil, err
	}
	after := social.Found{Near: near, Followers: followers, User: storage.UserID(id)}
	all, _, more := cut(args, found.all, func(one social.Found) bool { return one.Compare(after) > 0 }, nil)
	p := page{complete: found.complete}
	for _, one := range all {
		p.users = append(p.users, one.User)
		p.cursors = append(p.cursors, cursors.spell(unsealed, one.Near, one.Followers, int64(one.User)))
	}
	p.info = r.pageInfo(p.cursors, more, nil)
	return readPage(ctx, f, p, func(users model.UserPage, p page) *model.UserSearchConnection {
		return &model.UserSearchConnection{
			Nodes: users.Nodes, PageInfo: users.PageInfo, Complete: users.Complete,
			Edges: edges(len(users.Nodes), func(i int) model.UserSearchEdge {
				return model.UserSearchEdge{Cursor: p.cursors[i], Node: users.Nodes[i]}
			}),
		}
	}), nil
}

// searchKey is the words of a search, whose pages share what was found.
type searchKey string

type foundUsers struct {
	all      []social.Found
	complete bool
}

func (r *Resolver) search(ctx context.Context, words []string) (found foundUsers, err error) {
	if words == nil { // nobody has typed enough
		return foundUsers{complete: true}, nil
	}
	graph, err := r.graph(ctx, loaders.For(ctx).Reader())
	if err != nil {
		return found, err
	}
	query := social.SearchQuery{Words: words, Names: r.reads()}
	if r.Popular != nil {
		query.Popular = r.Popular.Users
	}
	found.all, found.complete, err = graph.Search(ctx, query)
	return found, err
}
