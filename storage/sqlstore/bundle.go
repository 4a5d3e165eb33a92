package sqlstore

import (
	"context"
	"sync"

	"kith/storage"
	"kith/storage/sqlstore/internal/db"
)

// A statement costs the server and the gateway some 30 µs each, whatever it asks, and small
// look-ups of one user take less than that. So some of them become one statement if they are asked
// of one shard at the same time:
//
//   - users and counts, also of several shards: [Store.Profiles],
//   - a user and the first page of one of its lists (bundlepage.go),
//   - users, or counts, and edges (bundleedges.go). Edges of both sides alone stay two
//     statements, which run side by side.

// bundleKeys bounds a bundle. More keys are better read side by side.
const bundleKeys = 128

// AtHand implements [storage.Bundler]: the store keeps nothing.
func (s *Store) AtHand(b *storage.Bundle) { b.WithoutSets() }

// Bundle implements [storage.Bundler].
func (s *Store) Bundle(ctx context.Context, b *storage.Bundle) {
	small := storage.Bundle{Users: unanswered(b.Users), Counts: unanswered(b.Counts)}
	others := *b
	others.Users, others.Counts = nil, nil
	for _, side := range db.Follows {
		small.Edges[side], small.Pages[side] = unanswered(b.Edges[side]), unanswered(b.Pages[side])
		others.Edges[side], others.Pages[side] = nil, nil
	}
	switch {
	case small == storage.Bundle{}:
		others.ReadEach(ctx, s)
		return
	case others != storage.Bundle{}:
		var beside sync.WaitGroup
		defer beside.Wait()
		beside.Go(func() { others.ReadEach(ctx, s) })
	}
	if !s.oneStatement(ctx, &small) {
		small.ReadEach(ctx, s)
	}
}

// oneStatement answers a bundle by one statement on each shard, if it can be one.
func (s *Store) oneStatement(ctx context.Context, b *storage.Bundle) bool {
	pages, edges := asked(b.Pages[0])+asked(b.Pages[1]), asked(b.Edges[0])+asked(b.Edges[1])
	shard, ok := s.shardOfBundle(b)
	switch {
	case !ok:
		return false
	case pages == 1 && edges == 0 && asked(b.Users) == 1:
		return s.bundledPage(ctx, shard, b)
	case pages == 0 && edges > 0 && asked(b.Users)+asked(b.Counts) > 0:
		return s.bundledEdges(ctx, shard, b)
	}
	return false
}

// unanswered is a look-up, if it is asked for and has not been answered.
func unanswered[K, V any](l *storage.Lookup[K, V]) *storage.Lookup[K, V] {
	if l.Open() {
		return l
	}
	return nil
}

// asked is how many keys a look-up has.
func asked[K, V any](l *storage.Lookup[K, V]) int {
	if l == nil {
		return 0
	}
	return len(l.Keys)
}

// shardOfBundle is the shard that has all of a bundle; false if the bundle is too large or there is
// no such shard.
func (s *Store) shardOfBundle(b *storage.Bundle) (shard int, ok bool) {
	shard = -1
	keys := 0
	same := func(id storage.UserID) bool {
		of := s.shards.Of(id)
		if keys++; keys == 1 {
			shard = of
		}
		return shard == of && keys <= bundleKeys
	}
	self := func(id storage.UserID) storage.UserID { return id }
	ok = allOf(b.Users, self, same) && allOf(b.Counts, self, same)
	for _, side := range db.Follows {
		ok = ok && allOf(b.Edges[side], side.Owner, same) &&
			allOf(b.Pages[side], func(q storage.PageQuery) storage.UserID { return q.Owner }, same)
	}
	return shard, ok
}

// allOf reports whether something holds of the owners of all keys.
func allOf[K, V any](l *storage.Lookup[K, V], owner func(K) storage.UserID, holds func(storage.UserID) bool) bool {
	if l == nil {
		return true
	}
	for _, k := range l.Keys {
		if !holds(owner(k)) {
			return false
		}
	}
	return true
}

// put answers a key, wherever it occurs.
func put[K comparable, V any](l *storage.Lookup[K, V], key K, value V) {
	for i, k := range l.Keys {
		if k == key {
			l.Results[i] = storage.Result[V]{Value: value, Found: true}
		}
	}
}

// begin makes room for the answers of a look-up, if it is asked for.
func begin[K, V any](l *storage.Lookup[K, V]) {
	if l != nil {
		l.Results = make([]storage.Result[V], len(l.Keys))
	}
}

// fail answers a look-up with an error, if it is asked for.
func fail[K, V any](l *storage.Lookup[K, V], err error) {
	if l != nil {
		l.Fail(err)
	}
}
