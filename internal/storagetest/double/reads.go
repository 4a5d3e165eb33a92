package double

import (
	"context"

	"kith/storage"
)

// Read has a double read some kinds by a function. The kinds are at the indexes of their sides.
func Read[K, V any](s *Store, read func(context.Context, storage.Side, []K) []storage.Result[V], kinds ...*storage.LookupKind[K, V]) {
	rest := s.Instead.Bundle
	s.Instead.Bundle = func(ctx context.Context, b *storage.Bundle) {
		storage.SideLookups[K, V](kinds).Instead(ctx, b, read)
		rest(ctx, b)
	}
}

// Before has a double call a function before each read of some kinds. With its error, the read fails.
func Before[K, V any](s *Store, call func(context.Context, []K) error, kinds ...*storage.LookupKind[K, V]) {
	as := answerer(s.Instead.Bundle)
	Read(s, func(ctx context.Context, side storage.Side, keys []K) []storage.Result[V] {
		if err := call(ctx, keys); err != nil {
			return storage.Each(keys, func(K) storage.Result[V] { return storage.Result[V]{Err: err} })
		}
		return kinds[side].Read(ctx, as, keys...)
	}, kinds...)
}

// After has a double call a function after each read of some kinds. It may change the results.
func After[K, V any](s *Store, call func(storage.Side, []K, []storage.Result[V]), kinds ...*storage.LookupKind[K, V]) {
	as := answerer(s.Instead.Bundle)
	Read(s, func(ctx context.Context, side storage.Side, keys []K) []storage.Result[V] {
		results := kinds[side].Read(ctx, as, keys...)
		call(side, keys, results)
		return results
	}, kinds...)
}

// answerer is how a double has answered bundles so far.
type answerer func(context.Context, *storage.Bundle)

func (a answerer) Bundle(ctx context.Context, b *storage.Bundle) { a(ctx, b) }
