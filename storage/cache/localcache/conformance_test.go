package localcache_test

import (
	"context"
	"testing"
	"time"

	"kith/internal/storagetest"
	"kith/internal/storagetest/oracle"
	"kith/internal/storagetest/watch"
	"kith/storage"
	"kith/storage/cache/localcache"
)

// cached is a store whose reads go through a cache that is notified of its writes.
type cached struct {
	*watch.Store
	cache *localcache.Cache
}

func newCached(store storage.Store) *cached {
	c := &cached{cache: localcache.New(localcache.Config{
		Source: store, Rows: store, Bytes: 64 << 20,
		// Edges of the suite are from the beginning of time, and so is the clock, so that tombstones are not too old.
		Now: func() time.Time { return time.UnixMicro(0) },
	})}
	c.Store = watch.Watch(store, func(_ context.Context, w storage.Change) { c.cache.Wrote(w) })
	return c
}

func (c *cached) Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	return c.cache.Users(ctx, ids)
}

func (c *cached) Counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	return c.cache.Counts(ctx, ids)
}

func (c *cached) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	results := c.cache.Edges(ctx, side, pairs)
	for i, r := range results {
		if side > storage.Inverse && !r.Found && r.Err == nil { // it may say of a tombstone that there is nothing
			if row := c.Store.Edges(ctx, side, pairs[i:i+1])[0]; row.Value.Type == storage.None {
				results[i] = row
			}
		}
	}
	return results
}

func (c *cached) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	return c.cache.Pages(ctx, side, queries)
}

func (c *cached) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return c.cache.Neighbours(ctx, side, owners)
}

func (c *cached) PackedNeighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return c.cache.PackedNeighbours(ctx, side, owners)
}

func (c *cached) Blocks(ctx context.Context, users []storage.UserID) []storage.Result[[]storage.UserID] {
	return c.cache.Blocks(ctx, users)
}

func (c *cached) Posts(ctx context.Context, ids []storage.PostID) []storage.Result[storage.Post] {
	return c.cache.Posts(ctx, ids)
}

func (c *cached) UserIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	return c.cache.UserIDs(ctx, handles)
}

func (c *cached) CountEdges(ctx context.Context, side storage.Side, q []storage.EdgeCountQuery) []storage.Result[int] {
	return c.cache.CountEdges(ctx, side, q)
}

func (c *cached) Marks(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.EdgeMark] {
	return c.cache.Marks(ctx, pairs)
}

func (c *cached) Messages(ctx context.Context, pairs []storage.Pair) []storage.Result[string] {
	return c.cache.Messages(ctx, pairs)
}

func (c *cached) Specials(ctx context.Context, users []storage.UserID) []storage.Result[[]storage.UserID] {
	return c.cache.Specials(ctx, users)
}

func (c *cached) PostPages(ctx context.Context, q []storage.PostsQuery) []storage.Result[[]storage.Post] {
	return c.cache.PostPages(ctx, q)
}

func (c *cached) LastPosts(ctx context.Context, authors []storage.UserID, upTo storage.Micros) []storage.Result[storage.Micros] {
	return c.cache.LastPosts(ctx, authors, upTo)
}

func (c *cached) CommentPages(ctx context.Context, q []storage.CommentsQuery) []storage.Result[[]storage.Comment] {
	return c.cache.CommentPages(ctx, q)
}

func (c *cached) FavoritePages(ctx context.Context, q []storage.FavoritesQuery) []storage.Result[[]storage.Edge] {
	return c.cache.FavoritePages(ctx, q)
}

func (c *cached) Details(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.Detail] {
	return c.cache.Details(ctx, pairs)
}

func (c *cached) KindCounts(ctx context.Context, of []storage.OwnerKind) []storage.Result[storage.KindCount] {
	return c.cache.KindCounts(ctx, of)
}

func (c *cached) WithWord(ctx context.Context, prefix string, limit int) ([]storage.UserID, error) {
	return c.cache.WithWord(ctx, prefix, limit)
}

func (c *cached) AtHand(b *storage.Bundle) { c.cache.AtHand(b) }

func (c *cached) Bundle(ctx context.Context, b *storage.Bundle) { c.cache.Bundle(ctx, b) }

func (c *cached) Close() error {
	c.cache.Close()
	return c.Store.Close()
}

// A write is visible at once, whatever was kept before it.
func TestConformance(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Store { return newCached(oracle.New()) })
}
