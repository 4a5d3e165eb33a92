package loaders_test

import (
	"context"
	"fmt"

	"kith/loaders"
	"kith/storage"
)

// Two answers of two steps each ask the store twice, not four times.
func ExampleLoaders_Together() {
	store := newCounting()
	ctx := loaders.Attach(context.Background(), store)
	loaders.For(ctx).Together(2, func(i int, read loaders.Reader) {
		ids := []storage.UserID{storage.UserID(2 * (i + 1))}
		storage.CountLookups.Read(ctx, read, ids...)
		storage.UserLookups.Read(ctx, read, ids...)
	})
	fmt.Println(store.bundles, "bundles")
	// Output:
	// 2 bundles
}
