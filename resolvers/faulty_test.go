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

// byShard lists the users 1 to n by the shards on which they are for a store with a dead one of four.
func byShard(n storage.UserID) map[int][]storage.UserID {
	shards, users := storage.NewShardMap(4), map[int][]storage.UserID{}
	for id := storage.UserID(1); id <= n; id++ {
		users[shards.Of(id)] = append(users[shards.Of(id)], id)
	}
	return users
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

func (f *faulty) users(ctx context.Context, ids []storage.UserID) []storage.Result[storage.User] {
	return failing(ctx, f, "users", ids, f.shards.Of, storage.UserLookups.Read(ctx, f.Store, ids...))
}

func (f *faulty) userIDs(ctx context.Context, handles []string) []storage.Result[storage.UserID] {
	return failing(ctx, f, "handles", handles, f.shards.OfHandle, storage.HandleLookups.Read(ctx, f.Store, handles...))
}

func (f *faulty) counts(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Counts] {
	return failing(ctx, f, "counts", ids, f.shards.Of, storage.CountLookups.Read(ctx, f.Store, ids...))
}

func (f *faulty) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	return failing(ctx, f, "profiles", ids, f.shards.Of, storage.ProfileLookups.Read(ctx, f.Store, ids...))
}

func (f *faulty) lists(ctx context.Context, side storage.Side, queries []storage.ListQuery) []storage.Result[storage.List] {
	owner := func(q storage.ListQuery) int { return f.shards.Of(q.Owner) }
	return failing(ctx, f, "lists."+side.String(), queries, owner, storage.SnapshotLookups[side].Read(ctx, f.Store, queries...))
}

func (f *faulty) userLists(ctx context.Context, queries []storage.ListsQuery) []storage.Result[[]storage.UserList] {
	owner := func(q storage.ListsQuery) int { return f.shards.Of(q.Owner) }
	return failing(ctx, f, "user lists", queries, owner, storage.ListLookups.Read(ctx, f.Store, queries...))
}

func (f *faulty) edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	owner := func(p storage.Pair) int { return f.shards.Of(side.Owner(p)) }
	return failing(ctx, f, "edges."+side.String(), pairs, owner, storage.EdgeLookups[side].Read(ctx, f.Store, pairs...))
}

func (f *faulty) pages(ctx context.Context, side storage.Side, queries []storage.PageQuery) []storage.Result[[]storage.Edge] {
	owner := func(q storage.PageQuery) int { return f.shards.Of(q.Owner) }
	return failing(ctx, f, "pages."+side.String(), queries, owner, storage.PageLookups[side].Read(ctx, f.Store, queries...))
}

func (f *faulty) neighbours(ctx context.Context, side storage.Side, owners []storage.UserID) []storage.Result[[]storage.UserID] {
	return failing(ctx, f, "neighbours."+side.String(), owners, f.shards.Of, storage.NeighbourLookups[side].Read(ctx, f.Store, owners...))
}

func (f *faulty) posts(ctx context.Context, ids []storage.PostID) []storage.Result[storage.Post] {
	author := func(id storage.PostID) int { return f.shards.Of(id.Author) }
	return failing(ctx, f, "posts", ids, author, storage.PostLookups.Read(ctx, f.Store, ids...))
}

func (f *faulty) blocks(ctx context.Context, viewers []storage.UserID) []storage.Result[[]storage.UserID] {
	return failing(ctx, f, "blocks", viewers, f.shards.Of, storage.BlockLookups.Read(ctx, f.Store, viewers...))
}

func (f *faulty) details(ctx context.Context, pairs []storage.Pair) []storage.Result[storage.Detail] {
	return failing(ctx, f, "details", pairs, func(p storage.Pair) int { return f.shards.Of(p.From) }, storage.DetailLookups.Read(ctx, f.Store, pairs...))
}

func (f *faulty) Bundle(ctx context.Context, b *storage.Bundle) {
	var a storage.Answering
	a.Over(f.Store)
	storage.UserLookups.AnsweredBy(&a, f.users)
	storage.HandleLookups.AnsweredBy(&a, f.userIDs)
	storage.CountLookups.AnsweredBy(&a, f.counts)
	storage.ProfileLookups.AnsweredBy(&a, f.profiles)
	storage.SnapshotLookups.AnsweredBy(&a, f.lists)
	storage.ListLookups.AnsweredBy(&a, f.userLists)
	storage.EdgeLookups.AnsweredBy(&a, f.edges)
	storage.PageLookups.AnsweredBy(&a, f.pages)
	storage.NeighbourLookups.AnsweredBy(&a, f.neighbours)
	storage.PostLookups.AnsweredBy(&a, f.posts)
	storage.BlockLookups.AnsweredBy(&a, f.blocks)
	storage.DetailLookups.AnsweredBy(&a, f.details)
	a.Bundle(ctx, b)
}
