package sqlstore

import (
	"context"
	"slices"

	"kith/storage"
)

// A statement costs the server and the gateway some 30 µs each, whatever it asks, and small
// look-ups of one user take less than that. So some of them become one statement, where they
// are asked of one shard at the same time:
//
//   - users and counts (bundleprofiles.go), also of several shards,
//   - a user and the first page of a list of its (bundlepage.go),
//   - users, or counts, and edges (bundleedges.go). Edges of both sides alone stay two
//     statements, which run side by side.

// bundleKeys bounds a bundle. What is larger is better read side by side.
const bundleKeys = 128

// Bundle implements [storage.Bundler].
func (s *Store) Bundle(ctx context.Context, b storage.Bundle) (answers storage.BundleAnswers, ok bool) {
	pages, edges := len(b.Pages[0])+len(b.Pages[1]), len(b.Edges[0])+len(b.Edges[1])
	if pages+edges == 0 {
		if len(b.Users) == 0 || len(b.Counts) == 0 {
			return answers, false
		}
		return s.bundledProfiles(ctx, b), true
	}
	shard, ok := s.shardOfBundle(b)
	if !ok {
		return answers, false
	}
	switch {
	case pages == 1 && edges == 0 && len(b.Users) == 1:
		return s.bundledPage(ctx, shard, b)
	case pages == 0 && edges > 0 && len(b.Users)+len(b.Counts) > 0:
		return s.bundledEdges(ctx, shard, b)
	}
	return answers, false
}

// shardOfBundle is where all of a bundle lies; false where it is too large or has no such
// shard.
func (s *Store) shardOfBundle(b storage.Bundle) (shard int, ok bool) {
	keys := 0
	shard = -1
	same := func(id storage.UserID) bool {
		of := s.place.Of(id)
		if keys++; keys == 1 {
			shard = of
		}
		return shard == of && keys <= bundleKeys
	}
	for _, ids := range [...][]storage.UserID{b.Users, b.Counts} {
		for _, id := range ids {
			if !same(id) {
				return 0, false
			}
		}
	}
	for side := range b.Edges {
		for _, p := range b.Edges[side] {
			if !same(storage.Side(side).Owner(p)) {
				return 0, false
			}
		}
		for _, q := range b.Pages[side] {
			if !same(q.Owner) {
				return 0, false
			}
		}
	}
	return shard, true
}

// put answers a key, wherever it occurs.
func put[K comparable, V any](keys []K, results []storage.Result[V], key K, value V) {
	for i, k := range keys {
		if k == key {
			results[i] = storage.Result[V]{Value: value, Found: true}
		}
	}
}

// failed answers as many keys with an error.
func failed[V any](n int, err error) []storage.Result[V] {
	return slices.Repeat([]storage.Result[V]{{Err: err}}, n)
}
