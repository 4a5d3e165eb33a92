package resolvers_test

import (
	"context"
	"fmt"

	"kith/storage"
)

// faulty is a store in which some look-ups fail: those for which the function fails returns an
// error. It gets the name of the look-up ("users", "edges.following" …) and the shard of the key.
type faulty struct {
	storage.Store
	shards *storage.ShardMap
	fails  func(ctx context.Context, lookup string, shard int) error
}

// dead is a store of so many shards of which one does not answer.
func dead(store storage.Store, shards, deadShard int) *faulty {
	return &faulty{store, storage.NewShardMap(shards), func(_ context.Context, lookup string, shard int) error {
		if shard == deadShard {
			return fmt.Errorf("read %s on shard %d (db.internal:3306/kith): %w", lookup, shard, storage.ErrUnavailable)
		}
		return nil
	}}
}

// broken is a store in which all look-ups of one name fail, whatever the key.
func broken(store storage.Store, lookup string, err error) *faulty {
	return &faulty{store, storage.NewShardMap(1), func(_ context.Context, l string, _ int) error {
		if l == lookup {
			return err
		}
		return nil
	}}
}

func failing[K, V any](ctx context.Context, f *faulty, lookup string, keys []K, shardOf func(K) int, results []storage.Result[V]) []storage.Result[V] {
	for i, k := range keys {
		if err := f.fails(ctx, lookup, shardOf(k)); err != nil {
			results[i] = storage.Result[V]{Err: err}
		}
	}
	return results
}

func (f *faulty) Users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	return failing(ctx, f, "users", ids, f.shards.Of, f.Store.Users(ctx, ids))
}

func (f *faulty) UserIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	return failing(ctx, f, "handles", handles, f.shards.OfHandle, f.Store.UserIDs(ctx, handles))
}

func (f *faulty) Counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	return failing(ctx, f, "counts", ids, f.shards.Of, f.Store.Counts(ctx, ids))
}

func (f *faulty) Profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return failing(ctx, f, "profiles", ids, f.shards.Of, f.Store.Profiles(ctx, ids))
}

func (f *faulty) Lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	owner := func(q storage.ListQuery) int { return f.shards.Of(q.Owner) }
	return failing(ctx, f, "lists."+side.String(), queries, owner, f.Store.Lists(ctx, side, queries))
}

func (f *faulty) UserLists(ctx context.Context, queries []storage.ListsQuery) []storage.Result[[]storage.UserList] {
	owner := func(q storage.ListsQuery) int { return f.shards.Of(q.Owner) }
	return failing(ctx, f, "user lists", queries, owner, f.Store.UserLists(ctx, queries))
}

func (f *faulty) Edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	owner := func(p storage.Pair) int { return f.shards.Of(side.Owner(p)) }
	return failing(ctx, f, "edges."+side.String(), pairs, owner, f.Store.Edges(ctx, side, pairs))
}

func (f *faulty) Pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	owner := func(q storage.PageQuery) int { return f.shards.Of(q.Owner) }
	return failing(ctx, f, "pages."+side.String(), queries, owner, f.Store.Pages(ctx, side, queries))
}

func (f *faulty) Neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return failing(ctx, f, "neighbours."+side.String(), owners, f.shards.Of, f.Store.Neighbours(ctx, side, owners))
}

func (f *faulty) Posts(ctx context.Context, ids []storage.PostID) []storage.Result[storage.Post] {
	author := func(id storage.PostID) int { return f.shards.Of(id.Author) }
	return failing(ctx, f, "posts", ids, author, f.Store.Posts(ctx, ids))
}

func (f *faulty) Bundle(ctx context.Context, b *storage.Bundle) { b.ReadEach(ctx, f) }
