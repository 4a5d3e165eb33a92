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
	add := func(handle string) {
		if storage.ValidHandle(handle) {
			handles = append(handles, handle)
		}
	}
	for _, f := range root {
		switch f.Ahead {
		case fields.Handles:
			given, _ := argument[[]string](stateOf(ctx), f)
			for _, handle := range given {
				add(handle)
			}
		case fields.Entities:
			ids, _ := argument[given[nodeID]](stateOf(ctx), f)
			for _, id := range ids.good {
				add(id.handle)
			}
		}
	}
	if len(handles) > 0 {
		loaders.For(ctx).Handles.Fetch(handles)
	}
}

// wantedByRoot is what a root field needs. Wrong arguments are left to the field's own resolver,
// which refuses them.
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
	case fields.Handles:
		handles, _ := argument[[]string](request, f)
		var ids []storage.UserID
		for _, handle := range handles {
			if id, _ := byHandle(ctx, handle); id != 0 {
				ids = append(ids, id)
			}
		}
		return users(ids...)
	case fields.NodeIDs, fields.Entities:
		if ids, err := argument[given[nodeID]](request, f); err == nil {
			return wantedNodes(withIDs(ctx, ids.good, func(int, error) {}), f)
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
		case id == nodeID{}: // of nobody
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
