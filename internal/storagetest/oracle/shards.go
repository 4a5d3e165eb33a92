package oracle

import (
	"context"
	"maps"
	"slices"

	"kith/storage"
)

// Placed has users on the shards that a map names at present, see [Store.Move]. Without it there is one shard.
func Placed(on *storage.ShardMap) Option {
	return func(s *Store) {
		s.placed = on
		s.together = func(a, b storage.UserID) bool { return on.Of(a) == on.Of(b) }
	}
}

// Shards implements [storage.ShardAnswerer].
func (s *Store) Shards() int { return s.placed.Now().Shards() }

// ShardOf is the shard that has a user at present.
func (s *Store) ShardOf(user storage.UserID) int { return s.placed.Of(user) }

// Look implements [kith/files/changes.Store]. Where users are is always known.
func (s *Store) Look(context.Context) {}

// Move gives buckets to another shard, or to one that is added, all rows at one moment. The shards that had them still list their posts
// until removed is called.
func (s *Store) Move(buckets storage.BucketRange, to int) (removed func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := &leftBehind{}
	for id, p := range s.posts {
		if owner := s.placed.Of(id.Author); owner != to && buckets.Contains(id.Author.Bucket()) && !p.deleted {
			left.posts = append(left.posts, shardPost{owner, p.Post})
		}
	}
	s.left = append(s.left, left)
	s.assign(buckets, to)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left = slices.DeleteFunc(s.left, func(l *leftBehind) bool { return l == left })
	}
}

// assign gives buckets to a shard, whose epoch rises, as do those of the others that had some.
func (s *Store) assign(buckets storage.BucketRange, to int) {
	old := s.placed.Now()
	epochs := make([]int64, max(old.Shards(), to+1))
	for i := range epochs {
		epochs[i] = old.Epoch(i)
	}
	epochs[to]++
	next := &storage.Assignment{Epochs: epochs}
	for b := range storage.Buckets {
		owner, state := old.Owner(b)
		if buckets.Contains(b) {
			epochs[owner]++
			owner = to
		}
		next.Assign(storage.BucketRange{First: b, Last: b}, owner, state)
	}
	s.placed.Set(next)
}

// Readmit begins a new life of a shard that has been restored.
func (s *Store) Readmit(shard int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives[shard]++
	s.assign(storage.BucketRange{First: 0, Last: -1}, shard)
}

// leftBehind is what is still where it was before a move.
type leftBehind struct{ posts []shardPost }

type shardPost struct {
	shard int
	storage.Post
}

// on is the rows of a shard, among some of users.
func on[K comparable, V any](s *Store, shard int, rows map[K]V, owner func(K) storage.UserID) map[K]V {
	own := maps.Clone(rows)
	maps.DeleteFunc(own, func(k K, _ V) bool { return s.placed.Of(owner(k)) != shard })
	return own
}

func itself(id storage.UserID) storage.UserID   { return id }
func authorOf(id storage.PostID) storage.UserID { return id.Author }
