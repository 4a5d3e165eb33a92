package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kith/storage"
)

// Store is the store that the network is loaded into.
type Store interface {
	storage.Store
	storage.Checkpoints
}

// loading is the checkpoint of a store into which the network is being loaded.
const loading = "demo"

// Load puts the network of [Seed] and [Base] into an empty store, with posts until now, so that they are recent for a visitor. It
// completes the network if an earlier Load was interrupted. Any other store, and a complete network, is left unchanged; later
// changes of the network stay, too.
func Load(ctx context.Context, store Store, now time.Time) error {
	wanted, err := storage.IsEmpty(ctx, store)
	if err == nil && !wanted {
		_, wanted, err = store.LoadCheckpoint(ctx, loading)
	}
	if err != nil {
		return fmt.Errorf("look for the demo graph: %w", err)
	}
	if !wanted {
		return nil
	}
	if err := store.SaveCheckpoint(ctx, loading, []byte("{}")); err != nil {
		return fmt.Errorf("begin the demo graph: %w", err)
	}
	users, edges := Graph(Seed, Base)
	for i, result := range store.CreateUsers(ctx, users) {
		if result.Err != nil {
			return fmt.Errorf("create demo user %d: %w", users[i].ID, result.Err)
		}
	}
	posts, comments := Writings(Seed, now, edges)
	if err := write(ctx, store, posts, comments); err != nil {
		return err
	}
	if err := apply(ctx, store, storage.Favorites, Favored(Seed, edges, posts)); err != nil {
		return err
	}
	if err := apply(ctx, store, storage.Forward, edges); err != nil {
		return err
	}
	return store.DeleteCheckpoint(ctx, loading)
}

// apply writes edges to both sides, in the order of each. The inverse side is made from what the rows of the forward side hold
// now, even if that has changed since.
func apply(ctx context.Context, store Store, truth storage.Side, edges []storage.Edge) error {
	rule := storage.IfAbsent
	for _, side := range []storage.Side{truth, truth.Replica()} {
		slices.SortFunc(edges, func(a, b storage.Edge) int { return side.Compare(a.Pair(), b.Pair()) })
		for i, result := range store.Apply(ctx, side, edges, rule) {
			if result.Err != nil {
				return fmt.Errorf("write %s of the demo graph: %w", side, result.Err)
			}
			edges[i] = result.Value.Row
		}
		rule = storage.IfNewer
	}
	return nil
}
