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
	storage.UserReader
	storage.EdgeReader
	storage.PostWriter
	storage.CommentWriter
	Empty(ctx context.Context) (bool, error)
}

// Load puts the network of [Seed] and [Base] into an empty store, with posts until now, so that they are recent for a visitor. It
// completes the network if an earlier Load was interrupted. Posts come before the edges by which a complete network is known. Any
// other store, and a complete network, is left unchanged; later changes of the network stay, too.
func Load(ctx context.Context, store Store, now time.Time) error {
	users, edges := Graph(Seed, Base)
	wanted, err := wanted(ctx, store, users, edges)
	if err != nil {
		return fmt.Errorf("look for the demo graph: %w", err)
	}
	if !wanted {
		return nil
	}
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
	return apply(ctx, store, storage.Inverse, edges, storage.IfNewer)
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

// wanted reports whether the store is empty or holds a part of the network. The
// inverse side is written last, with one transaction a shard, so the network is
// complete if every user with followers has the first of them.
func wanted(ctx context.Context, store Store, users []storage.User, edges []storage.Edge) (bool, error) {
	empty, err := store.Empty(ctx)
	if err != nil || empty {
		return empty, err
	}
	ours, err := holds(ctx, store, users)
	if err != nil || !ours {
		return false, err
	}
	var firsts []storage.Pair
	seen := map[storage.UserID]bool{}
	for _, edge := range edges {
		if !seen[edge.To] {
			seen[edge.To] = true
			firsts = append(firsts, edge.Pair())
		}
	}
	missing := false
	for _, result := range store.Edges(ctx, storage.Inverse, firsts) {
		if result.Err != nil {
			return false, result.Err
		}
		missing = missing || !result.Found
	}
	return missing, nil
}

// holds reports whether all users that the store has under the network's ids are the
// network's own, and there is at least one.
func holds(ctx context.Context, store Store, users []storage.User) (bool, error) {
	ids := make([]storage.UserID, len(users))
	for i, user := range users {
		ids[i] = user.ID
	}
	some := false
	for i, result := range store.Users(ctx, ids) {
		if result.Err != nil {
			return false, result.Err
		}
		if result.Found && result.Value.CreatedAt != users[i].CreatedAt {
			return false, nil
		}
		some = some || result.Found
	}
	return some, nil
}
