package storagetest_test

import (
	"context"
	"slices"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// listsType keeps a second store for its lists, in which edges of one more type are follows.
type listsType struct {
	*oracle.Store
	lists *oracle.Store
	kind  storage.EdgeType
}

func (s listsType) Apply(ctx context.Context, side storage.Side, edges []storage.Edge, rule storage.Rule) []storage.Result[storage.Changed] {
	listed := slices.Clone(edges)
	for i := range listed {
		if listed[i].Type == s.kind {
			listed[i].Type = storage.Following
		}
	}
	s.lists.Apply(ctx, side, listed, rule)
	return s.Store.Apply(ctx, side, edges, rule)
}

func (s listsType) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	return storage.PageLookups[side].Read(ctx, s.lists, queries...)
}

func (s listsType) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.PageLookups.Instead(ctx, b, s.pages)
	s.Store.Bundle(ctx, b)
}
