package demo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"kith/storage"
)

// Store is the store that the network is loaded into.
type Store interface {
	storage.Writer
	storage.PostWriter
	storage.CommentWriter
	storage.Checkpoints
	Empty(ctx context.Context) (bool, error)
}

// loading is the checkpoint of a store into which the network is being loaded.
const loading = "demo"

// Load puts the network of [Seed] and [Base] into an empty store, with posts until now, so that they are recent for a visitor. It
// completes the network if an earlier Load was interrupted. Any other store, and a complete network, is left unchanged; later
// changes of the network stay, too.
func Load(ctx context.Context, store Store, now time.Time) error {
	wanted, err := store.Empty(ctx)
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
	favorites := Favored(Seed, edges, posts)
	if err := apply(ctx, store, storage.Favorites, favorites, storage.IfAbsent); err != nil {
		return err
	}
	if err := apply(ctx, store, storage.FavoriteInbox, favorites, storage.IfNewer); err != nil {
		return err
	}
	slices.SortFunc(edges, func(a, b storage.Edge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	if err := apply(ctx, store, storage.Forward, edges, storage.IfAbsent); err != nil {
		return err
	}
	slices.SortFunc(edges, func(a, b storage.Edge) int {
		return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From))
	})
	if err := apply(ctx, store, storage.Inverse, edges, storage.IfNewer); err != nil {
		return err
	}
	return store.DeleteCheckpoint(ctx, loading)
}

// apply writes one side and puts into edges what the rows hold now: the inverse side is made from
// the forward side, even if that has changed since.
func apply(ctx context.Context, store Store, side storage.Side, edges []storage.Edge, rule storage.Rule) error {
	for i, result := range store.Apply(ctx, side, edges, rule) {
		if result.Err != nil {
			return fmt.Errorf("write %s of the demo graph: %w", side, result.Err)
		}
		edges[i] = result.Value.Row
	}
	return nil
}
