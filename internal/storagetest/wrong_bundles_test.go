package storagetest_test

import (
	"context"

	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Mistakes about bundles. The reference answers a bundle with its own methods; these stores answer it like the wrong store.
var bundleMistakes = []mistake{
	{"a bundle loses its last key", func(s *oracle.Store, w *double.Store) {
		w.Instead.Bundle = func(ctx context.Context, b *storage.Bundle) {
			s.Bundle(ctx, b)
			if l := storage.BlockLookups.In(b); l != nil { // the last result is lost
				l.Results = l.Results[:len(l.Results)-1]
			}
		}
	}, "bundles/EachKeyIsAnsweredAsAlone", promiseOnly},
	{"a bundle mixes the sides up", func(s *oracle.Store, w *double.Store) {
		w.Instead.Bundle = func(ctx context.Context, b *storage.Bundle) {
			s.Bundle(ctx, b)
			if one, two := storage.EdgeLookups[storage.Forward].In(b), storage.EdgeLookups[storage.Inverse].In(b); one != nil && two != nil && len(one.Keys) == len(two.Keys) {
				one.Results, two.Results = two.Results, one.Results
			}
		}
	}, "bundles/KindsTogetherAreAnsweredAsApart", promiseOnly},
	{"a bundle answers what has been answered", func(s *oracle.Store, w *double.Store) {
		w.Instead.Bundle = func(ctx context.Context, b *storage.Bundle) {
			if l := storage.UserLookups.In(b); l != nil {
				l.Results = nil
			}
			s.Bundle(ctx, b)
		}
	}, "bundles/WhatIsAnsweredIsLeftAsItIs", promiseOnly},
	{"half of a kind is at hand", func(s *oracle.Store, w *double.Store) {
		w.Instead.AtHand = func(b *storage.Bundle) {
			if l := storage.UserLookups.In(b); l.Open() {
				l.Results = make([]storage.Result[storage.User], len(l.Keys))
				copy(l.Results, storage.UserLookups.Read(context.Background(), s, l.Keys[:1]...))
			}
		}
	}, "bundles/AtHandIsAllOrNothing", promiseOnly},
	{"bundles outlive their context", func(s *oracle.Store, w *double.Store) {
		w.Instead.Bundle = func(ctx context.Context, b *storage.Bundle) { s.Bundle(context.WithoutCancel(ctx), b) }
	}, "bundles/ErrorsAreOfEveryKey", promiseOnly},
}
