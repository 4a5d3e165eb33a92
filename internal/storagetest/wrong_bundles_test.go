package storagetest_test

import (
	"context"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// The reference answers a bundle with its own methods. These types answer like the wrong store.

type lastKeyForgotten struct{ *oracle.Store }

func (s lastKeyForgotten) Bundle(ctx context.Context, b *storage.Bundle) {
	s.Store.Bundle(ctx, b)
	if l := storage.BlockLookups.In(b); l != nil { // the last result is lost
		l.Results = l.Results[:len(l.Results)-1]
	}
}

type mixesUp struct{ *oracle.Store }

func (s mixesUp) Bundle(ctx context.Context, b *storage.Bundle) {
	s.Store.Bundle(ctx, b)
	if one, two := storage.EdgeLookups[storage.Forward].In(b), storage.EdgeLookups[storage.Inverse].In(b); one != nil && two != nil && len(one.Keys) == len(two.Keys) {
		one.Results, two.Results = two.Results, one.Results
	}
}

type answersAgain struct{ *oracle.Store }

func (s answersAgain) Bundle(ctx context.Context, b *storage.Bundle) {
	if l := storage.UserLookups.In(b); l != nil {
		l.Results = nil
	}
	s.Store.Bundle(ctx, b)
}

type halfAtHand struct{ *oracle.Store }

func (s halfAtHand) AtHand(b *storage.Bundle) {
	if l := storage.UserLookups.In(b); l.Open() {
		l.Results = make([]storage.Result[storage.User], len(l.Keys))
		copy(l.Results, storage.UserLookups.Read(context.Background(), s, l.Keys[:1]...))
	}
}

type deafBundles struct{ *oracle.Store }

func (s deafBundles) Bundle(ctx context.Context, b *storage.Bundle) {
	s.Store.Bundle(context.WithoutCancel(ctx), b)
}
