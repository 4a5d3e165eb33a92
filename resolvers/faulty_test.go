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

// failing has look-ups of some kinds fail for the keys for which f says so. shardOf is where what a key asks for is.
func failing[K, V any](f *faulty, a *storage.Answering, name string, shardOf func(storage.Side, K) int, kinds ...*storage.LookupKind[K, V]) {
	storage.SideLookups[K, V](kinds).AnsweredBy(a, func(ctx context.Context, side storage.Side, keys []K) []storage.Result[V] {
		lookup := name
		if len(kinds) > 1 {
			lookup += "." + side.String()
		}
		results := kinds[side].Read(ctx, f.Store, keys...)
		for i, k := range keys {
			if err := f.fails(ctx, lookup, shardOf(side, k)); err != nil {
				results[i] = storage.Result[V]{Err: err}
			}
		}
		return results
	})
}

func (f *faulty) Bundle(ctx context.Context, b *storage.Bundle) {
	var a storage.Answering
	a.Over(f.Store)
	ofUser := func(_ storage.Side, id storage.UserID) int { return f.shards.Of(id) }
	failing(f, &a, "users", ofUser, storage.UserLookups)
	failing(f, &a, "counts", ofUser, storage.CountLookups)
	failing(f, &a, "profiles", ofUser, storage.ProfileLookups)
	failing(f, &a, "blocks", ofUser, storage.BlockLookups)
	failing(f, &a, "neighbours", ofUser, storage.NeighbourLookups...)
	failing(f, &a, "handles", func(_ storage.Side, handle string) int { return f.shards.OfHandle(handle) }, storage.HandleLookups)
	failing(f, &a, "lists", func(_ storage.Side, q storage.ListQuery) int { return f.shards.Of(q.Owner) }, storage.SnapshotLookups...)
	failing(f, &a, "user lists", func(_ storage.Side, q storage.ListsQuery) int { return f.shards.Of(q.Owner) }, storage.ListLookups)
	failing(f, &a, "edges", func(side storage.Side, p storage.Pair) int { return f.shards.Of(side.Owner(p)) }, storage.EdgeLookups...)
	failing(f, &a, "pages", func(_ storage.Side, q storage.PageQuery) int { return f.shards.Of(q.Owner) }, storage.PageLookups...)
	failing(f, &a, "posts", func(_ storage.Side, id storage.PostID) int { return f.shards.Of(id.Author) }, storage.PostLookups)
	failing(f, &a, "details", func(_ storage.Side, p storage.Pair) int { return f.shards.Of(p.From) }, storage.DetailLookups)
	a.Bundle(ctx, b)
}
