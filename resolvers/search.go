package resolvers

import (
	"context"
	"strings"

	"kith/graph/apierr"
	"kith/graph/cursor"
	"kith/graph/model"
	"kith/graph/selections"
	"kith/loaders"
	"kith/social"
	"kith/storage"
)

// directory searches handles. The rows of the users found are kept for the fields below.
type directory struct {
	storage.HandleSearcher
	loaders.Reader
}

func (r queries) SearchUsers(ctx context.Context, text string, first *int32, after *string) (*model.UserSearchConnection, error) {
	f := fetchQuery(ctx)
	prefix := storage.FoldHandle(text)
	if !storage.ValidHandle(prefix) {
		return nil, apierr.BadInput("%q begins no handle: those are made of a to z, 0 to 9 and _, at most %d of them", abridged(text), storage.MaxHandleLength)
	}
	size, behind, err := forwardPage(first, after)
	if err != nil {
		return nil, err
	}
	from := ""
	if behind != "" {
		if from, err = r.decodeHandle(behind, prefix); err != nil {
			return nil, err
		}
	}
	audience, err := audienceOf(ctx)
	if err != nil {
		return nil, err
	}
	d := directory{r.Handles, loaders.For(ctx).Reader()}
	found, err := social.SearchHandles(ctx, d, audience, r.Budget, prefix, from, size)
	if err != nil {
		return nil, err
	}
	page := make([]item, len(found.Owners))
	for i, o := range found.Owners {
		page[i] = item{user: o.User, cursor: encodeHandle(unsealed, o.Handle)}
	}
	var beyond func() string
	if n := len(found.Owners); n == 0 || found.Next != found.Owners[n-1].Handle {
		beyond = func() string { return encodeHandle(r.Cursors.For(prefix), found.Next) }
	}
	return searchConnection(ctx, f, page, pageInfoOf(page, found.More, beyond)), nil
}

// searchConnection fetches the users of a page and makes its connection.
func searchConnection(ctx context.Context, f *selections.Field, page []item, info *model.PageInfo) *model.UserSearchConnection {
	fetchPage(ctx, f, page)
	users, places := usersOnPage(ctx, f, page)
	c := &model.UserSearchConnection{Nodes: users, PageInfo: info, Edges: make([]*model.UserSearchEdge, len(users))}
	for i, place := range places {
		c.Edges[i] = &model.UserSearchEdge{Cursor: page[place].cursor, Node: users[i]}
	}
	return c
}

// handleNumbers is how many numbers of a cursor hold the longest handle.
const handleNumbers = (storage.MaxHandleLength + 6) / 7

func encodeHandle(seal *cursor.Sealer, handle string) string {
	return seal.Encode(cursor.Search, cursor.Pack(handle, handleNumbers)...)
}

// decodeHandle accepts only a handle that begins with the prefix: any other belongs to
// another search. The handle is empty at the beginning.
func (r *Resolver) decodeHandle(text, prefix string) (string, error) {
	numbers := make([]int64, handleNumbers)
	into := make([]*int64, handleNumbers)
	for i := range numbers {
		into[i] = &numbers[i]
	}
	if err := r.Cursors.For(prefix).Decode(cursor.Search, text, into...); err != nil {
		return "", err
	}
	handle := cursor.Unpack(numbers)
	if handle != "" && (!storage.ValidHandle(handle) || !strings.HasPrefix(handle, prefix)) {
		return "", apierr.BadInput("the cursor %q belongs to another search", abridged(text))
	}
	return handle, nil
}
