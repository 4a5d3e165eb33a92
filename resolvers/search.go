package resolvers

import (
	"context"
	"strings"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// directory searches handles. The rows of the users found are kept for the fields below.
type directory struct {
	storage.HandleSearcher
	loaders.Reader
}

func (r queries) SearchUsers(ctx context.Context, text string, _ *int32, _ *string) (*model.UserSearchConnection, error) {
	f := fetchQuery(ctx)
	prefix := storage.FoldHandle(text)
	args, err := pageOf(ctx, f, 0)
	if err != nil {
		return nil, err
	}
	from, err := r.decodeHandle(args.text, prefix)
	if err != nil {
		return nil, err
	}
	audience, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	if !storage.ValidHandle(prefix) { // nobody has typed enough, or somebody something else
		return &model.UserSearchConnection{Nodes: []*model.User{}, Edges: []*model.UserSearchEdge{}, PageInfo: &model.PageInfo{}}, nil
	}
	d := directory{r.reads(), loaders.For(ctx).Reader()}
	found, err := social.SearchHandles(ctx, d, audience, r.Budget, prefix, from, args.size)
	if err != nil {
		return nil, err
	}
	var page userPage
	for _, o := range found.Owners {
		page.users, page.cursors = append(page.users, o.User), append(page.cursors, encodeHandle(unsealed, o.Handle))
	}
	info := r.pageInfo(page.cursors, found.More, func(seal *cursor.Sealer) string {
		if seal != unsealed {
			seal = seal.For(prefix)
		}
		return encodeHandle(seal, found.Next)
	})
	page.fetch(ctx, f)
	nodes, places := page.nodes(ctx, f)
	return &model.UserSearchConnection{
		Nodes: nodes, PageInfo: info,
		Edges: edges(len(nodes), func(i int) model.UserSearchEdge {
			return model.UserSearchEdge{Cursor: page.cursors[places[i]], Node: nodes[i]}
		}),
	}, nil
}

// handleNumbers is how many numbers of a cursor hold the longest handle.
const handleNumbers = (storage.MaxHandleLength + 6) / 7

func encodeHandle(seal *cursor.Sealer, handle string) string {
	return seal.Encode(cursor.Search, cursor.Pack(handle, handleNumbers)...)
}

// decodeHandle accepts only a handle that begins with the prefix: any other belongs to
// another search. The handle is empty at the beginning.
func (r *Resolver) decodeHandle(text, prefix string) (string, error) {
	if text == "" {
		return "", nil
	}
	numbers := make([]int64, handleNumbers)
	into := make([]*int64, handleNumbers)
	for i := range numbers {
		into[i] = &numbers[i]
	}
	if err := r.Cursors.For(prefix).Decode(cursor.Search, text, into...); err != nil {
		return "", apierr.In("after", err)
	}
	handle := cursor.Unpack(numbers)
	if handle != "" && (!storage.ValidHandle(handle) || !strings.HasPrefix(handle, prefix)) {
		return "", apierr.CursorForeign.Error("the cursor %q belongs to another search", abridged(text)).In("after")
	}
	return handle, nil
}
