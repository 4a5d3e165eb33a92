package sqlstore

import (
	"context"

	"kith/storage"
)

// AtHand implements [storage.Bundler]: the store keeps nothing.
func (s *Store) AtHand(b *storage.Bundle) { b.WithoutSets() }

// Bundle implements [storage.Bundler]: each kind of look-up is a statement on each shard, all of them at once.
func (s *Store) Bundle(ctx context.Context, b *storage.Bundle) { b.ReadEach(ctx, s) }
