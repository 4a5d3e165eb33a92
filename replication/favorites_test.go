package replication_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
	"kith/storage/sides"
)

// Favorites arrive at their other side in any order, and twice. After that both sides agree, and all counts
// are exact, including those of posts that have been deleted in between.
func TestFavoritesArriveInAnyOrder(t *testing.T) {
	everywhere(t, func(t *testing.T, r *relations) {
		var posts []storage.PostID
		for i := range int64(2 * people) {
			id := storage.PostID{Author: storage.UserID(1 + i%people), Number: 100 + i}
			_, _, err := r.store.Publish(t.Context(), storage.PostRow{PostID: id, Key: storage.UserID(id.Number).String(), At: 1})
			must.OK(t, err)
			posts = append(posts, id)
		}
		random := rand.New(rand.NewPCG(1, people))
		pairs := map[storage.Pair]bool{}
		for i := range 200 {
			user, post := storage.UserID(1+random.IntN(people)), posts[random.IntN(len(posts))]
			changes := []storage.EdgeChange{post.Favorite(storage.EdgeType(random.IntN(2)), storage.Micros(1000+i))}
			result := r.store.ChangeEdges(context.Background(), storage.Favorites, user, changes, storage.ChangeOptions{Peace: true, Inverse: i%3 == 0})[0]
			must.OK(t, result.Err)
			changed := result.Value
			pairs[changed.Row.Pair()] = changed.Row.UpdateTime > 0 || pairs[changed.Row.Pair()]
			r.wrote(changed.Written())
			if i == 100 {
				_, err := r.store.DeletePost(t.Context(), posts[0])
				must.OK(t, err)
			}
			if i%50 == 49 {
				rows := r.take()
				rows = append(rows, rows...)
				random.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
				r.propagate(rows)
			}
		}
		favorites := 0
		for p, there := range pairs {
			truth := storage.EdgeLookups[storage.Favorites].Read(t.Context(), r.store, p)[0]
			replica := storage.EdgeLookups[storage.FavoriteInbox].Read(t.Context(), r.store, p)[0]
			check.That(t, truth == replica && truth.Found == there, "%+v is %+v and %+v", p, truth, replica)
			favorites += int(truth.Value.Type)
		}
		check.That(t, favorites != 0, "there are no favorites")
		c := r.store.(sides.Comparer)
		for shard := range c.Shards() {
			all := sides.OwnerRange{UpTo: 1<<63 - 1}
			for _, side := range []storage.Side{storage.Favorites, storage.FavoriteInbox} {
				wrong, err := c.WrongCounts(t.Context(), side, shard, all)
				check.That(t, err == nil && len(wrong) == 0, "counts of %s: %+v, %v", side, wrong, err)
			}
			wrong, err := c.WrongItemCounts(t.Context(), storage.FavoriteInbox, shard, all)
			check.That(t, err == nil && len(wrong) == 0, "counts of posts: %+v, %v", wrong, err)
		}
	})
}
