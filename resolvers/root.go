package resolvers

import (
	"context"

	"kith/graph/fields"
	"kith/graph/selections"
	"kith/identity"
	"kith/loaders"
	"kith/storage"
)

// fetchQuery reads what all root fields of the query and everything below them
// need, the first time that it is called in a request. It returns the running field.
func fetchQuery(ctx context.Context) *selections.Field {
	loaders.For(ctx).Once.Do(func() {
		root := stateOf(ctx).planOf(ctx).Root
		fetchHandles(ctx, root.Fields)
		var level []wanted
		for _, f := range root.Fields {
			level = append(level, wantedByRoot(ctx, f)...)
		}
		fetch(ctx, level...)
	})
	return planned(ctx)
}

// fetchHandles resolves the handles of all root fields in one batch.
func fetchHandles(ctx context.Context, root []*selections.Field) {
	var handles []string
	for _, f := range root {
		if f.Ahead == fields.Handle {
			if handle, _ := argument[string](stateOf(ctx), f); storage.ValidHandle(handle) {
				handles = append(handles, handle)
			}
		}
	}
	if len(handles) > 0 {
		loaders.For(ctx).Handles.Fetch(handles)
	}
}

// wantedByRoot leaves arguments that are wrong to the field's own resolver, which
// refuses them.
func wantedByRoot(ctx context.Context, f *selections.Field) []wanted {
	request := stateOf(ctx)
	users := func(ids ...storage.UserID) []wanted {
		return []wanted{{users: ids, exist: true, on: f.Below}}
	}
	switch f.Ahead {
	case fields.Viewer:
		if viewer, ok := identity.Of(ctx); ok {
			return users(viewer.ID)
		}
	case fields.UserIDs:
		if ids, err := argument[given[storage.UserID]](request, f); err == nil {
			return users(ids.good...)
		}
	case fields.Handle:
		if handle, _ := argument[string](request, f); storage.ValidHandle(handle) {
			if r := loaders.For(ctx).Handles.Load(handle); r.Found {
				return users(r.Value)
			}
		}
	case fields.NodeIDs:
		if ids, err := argument[given[nodeID]](request, f); err == nil {
			return wantedNodes(ids.good, f)
		}
	case fields.Relationships:
		if pairs, err := argument[given[storage.Pair]](request, f); err == nil {
			return []wanted{{pairs: pairs.good, on: f.Below}}
		}
	}
	return nil
}

func wantedNodes(ids []nodeID, f *selections.Field) []wanted {
	users := wanted{exist: true, on: []*selections.Object{f.On("User")}}
	relationships := wanted{on: []*selections.Object{f.On("Relationship")}}
	posts := wanted{on: []*selections.Object{f.On("Post")}}
	comments := wanted{on: []*selections.Object{f.On("Comment")}}
	for _, id := range ids {
		switch {
		case id.user != 0:
			users.users = append(users.users, id.user)
		case id.request != storage.Pair{}: // nodesAt reads them
		case id.post != storage.PostID{}:
			posts.postIDs = append(posts.postIDs, id.post)
		case id.comment != storage.CommentID{}:
			comments.comments = append(comments.comments, id.comment)
		default:
			relationships.pairs = append(relationships.pairs, id.relationship)
		}
	}
	return []wanted{users, relationships, posts, comments}
}
