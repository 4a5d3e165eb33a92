package resolvers

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"kith/identity"
	"kith/loaders"
	"kith/storage"
)

// fetchQuery reads what all root fields of the query and everything below them
// need, the first time that it is called in a request.
func fetchQuery(ctx context.Context) {
	loaders.For(ctx).Once.Do(func() {
		root := fieldsOf(ctx, graphql.GetOperationContext(ctx).Operation.SelectionSet, "Query")
		fetchHandles(ctx, root)
		var level []wanted
		sets := 0
		for _, f := range root {
			if f.Name == "people" {
				sets++
			}
			level = append(level, wantedByRoot(ctx, f)...)
		}
		fetch(ctx, level...)
		loaders.For(ctx).Crowd.Expect(sets)
	})
}

// fetchHandles resolves the handles of all root fields in one batch.
func fetchHandles(ctx context.Context, root []graphql.CollectedField) {
	var handles []string
	for _, f := range root {
		if f.Name == "userByHandle" {
			if handle, ok := handleOf(argumentOf(ctx, f, "handle")); ok {
				handles = append(handles, handle)
			}
		}
	}
	if len(handles) > 0 {
		loaders.For(ctx).Handles.Fetch(ctx, handles)
	}
}

// handleOf folds a handle; false where it cannot be one, so that nothing is asked.
func handleOf(argument any) (string, bool) {
	text, _ := argument.(string)
	handle := storage.FoldHandle(text)
	return handle, storage.ValidHandle(handle)
}

// wantedByRoot leaves arguments that are wrong to the field's own resolver, which
// refuses them.
func wantedByRoot(ctx context.Context, f graphql.CollectedField) []wanted {
	argument := func(name string) any { return argumentOf(ctx, f, name) }
	users := func(ids []storage.UserID) []wanted {
		return []wanted{{users: ids, exist: true, sel: f.Selections}}
	}
	switch f.Name {
	case "viewer":
		if viewer, ok := identity.Of(ctx); ok {
			return users([]storage.UserID{viewer.ID})
		}
	case "user":
		return users(parseEach(texts(argument("id")), parseUserID).good)
	case "users":
		if ids, err := parseUserIDs(texts(argument("ids")), maxIDs); err == nil {
			return users(ids.good)
		}
	case "userByHandle":
		if handle, ok := handleOf(argument("handle")); ok {
			if r := loaders.For(ctx).Handles.Load(ctx, handle); r.Found {
				return users([]storage.UserID{r.Value})
			}
		}
	case "node", "nodes":
		ids := append(texts(argument("id")), texts(argument("ids"))...)
		if len(ids) <= maxIDs {
			return wantedNodes(ids, f)
		}
	case "relationship", "relationships":
		if pairs, err := pairsOf(texts(argument("from")), texts(argument("to"))); err == nil {
			return []wanted{{pairs: pairs.good, sel: f.Selections}}
		}
	}
	return nil
}

func wantedNodes(ids []string, f graphql.CollectedField) []wanted {
	users := wanted{exist: true, sel: f.Selections}
	relationships := wanted{sel: f.Selections}
	for _, id := range parseEach(ids, parseNodeID).good {
		switch {
		case id.user != 0:
			users.users = append(users.users, id.user)
		case id.request != storage.Pair{}: // nodesAt reads them
		default:
			relationships.pairs = append(relationships.pairs, id.relationship)
		}
	}
	return []wanted{users, relationships}
}

// texts reads an argument of type ID or of a list of them.
func texts(argument any) []string {
	switch v := argument.(type) {
	case nil:
		return nil
	case []string:
		return v
	case []any:
		list := make([]string, len(v))
		for i := range v {
			list[i], _ = graphql.UnmarshalID(v[i])
		}
		return list
	}
	text, _ := graphql.UnmarshalID(argument)
	return []string{text}
}
