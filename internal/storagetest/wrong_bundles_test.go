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
	if b.Blocks != nil { // the last result is lost
		b.Blocks.Results = b.Blocks.Results[:len(b.Blocks.Results)-1]
	}
}

type mixesUp struct{ *oracle.Store }

func (s mixesUp) Bundle(ctx context.Context, b *storage.Bundle) {
	s.Store.Bundle(ctx, b)
	if one, two := b.Edges[storage.Forward], b.Edges[storage.Inverse]; one != nil && two != nil && len(one.Keys) == len(two.Keys) {
		one.Results, two.Results = two.Results, one.Results
	}
}

type answersAgain struct{ *oracle.Store }

func (s answersAgain) Bundle(ctx context.Context, b *storage.Bundle) {
	if b.Users != nil {
		b.Users.Results = nil
	}
	s.Store.Bundle(ctx, b)
}

type halfAtHand struct{ *oracle.Store }

func (s halfAtHand) AtHand(b *storage.Bundle) {
	if b.Users.Open() {
		b.Users.Results = make([]storage.Result[storage.User], len(b.Users.Keys))
		copy(b.Users.Results, s.Users(context.Background(), b.Users.Keys[:1]))
	}
}

type deafBundles struct{ *oracle.Store }

func (s deafBundles) Bundle(ctx context.Context, b *storage.Bundle) {
	s.Store.Bundle(context.WithoutCancel(ctx), b)
}
