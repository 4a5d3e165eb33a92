package loaders_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/internal/must"
	"kith/loaders"
	"kith/storage"
)

// remembering is a store that has the users in near at hand.
type remembering struct {
	*counting
	near   map[storage.UserID]bool
	broken bool
	asked  int
}

func (r *remembering) AtHand(b *storage.Bundle) {
	r.asked++
	if r.broken {
		panic("no memory")
	}
	users := storage.UserLookups.In(b)
	results := make([]storage.Result[storage.User], len(users.Keys))
	for i, id := range users.Keys {
		if !r.near[id] {
			return
		}
		results[i] = storage.Result[storage.User]{Value: storage.User{ID: id}, Found: id%2 == 0}
	}
	users.Results = results
}

func TestWhatIsAtHandIsNotRead(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *loaders.Loaders, []storage.UserID) []storage.Result[storage.User]{
		"Fetch": func(ctx context.Context, l *loaders.Loaders, ids []storage.UserID) []storage.Result[storage.User] {
			return l.Users.Fetch(ids)
		},
		"Dispatch": func(ctx context.Context, l *loaders.Loaders, ids []storage.UserID) []storage.Result[storage.User] {
			users, counts := l.Users.Ask(ids), l.Counts.Ask(ids)
			l.Dispatch(users, counts)
			counts.Results()
			return users.Results()
		},
		"Together": func(_ context.Context, l *loaders.Loaders, ids []storage.UserID) (users []storage.Result[storage.User]) {
			l.Together(2, func(i int, r loaders.Reader) {
				if i == 0 {
					users = storage.UserLookups.Read(t.Context(), r, ids...)
				}
			})
			return users
		},
	} {
		for _, tt := range []struct {
			near   []storage.UserID
			broken bool
			reads  bool
		}{
			{near: []storage.UserID{2, 3, 4}},
			{near: []storage.UserID{2, 3}, reads: true}, // not all of them are near
			{reads: true},
			{near: []storage.UserID{2, 3, 4}, broken: true, reads: true},
		} {
			store := &remembering{counting: newCounting(), near: map[storage.UserID]bool{}, broken: tt.broken}
			for _, id := range tt.near {
				store.near[id] = true
			}
			ctx := loaders.Attach(t.Context(), store)
			ids := []storage.UserID{2, 3, 4, 2}
			for i, r := range ask(ctx, loaders.For(ctx), ids) {
				check.That(t, isUser(ids[i], r), "%s, with %v at hand: the answer to %d is %+v", name, tt.near, ids[i], r)
			}
			if read := len(store.users) > 0; read != tt.reads || store.asked != 1 {
				t.Errorf("%s, with %v at hand: users were read %v, want %v, after %d looks into the memory", name, tt.near, store.users, tt.reads, store.asked)
			}
		}
	}
}

// Many keys, some of them repeated: every user is read once, and found.
func TestManyKeysAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := newCounting()
		ctx := loaders.Attach(context.Background(), store)
		l := loaders.For(ctx)
		keys := rapid.SliceOfN(rapid.Map(rapid.Int64Range(1, 500), func(n int64) storage.UserID { return storage.UserID(n << 22) }), 0, 200)
		var all []storage.UserID
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			ids := keys.Draw(t, "ids")
			if rapid.Bool().Draw(t, "prime") {
				id := rapid.Int64Range(501, 600).Draw(t, "primed") << 22
				l.Users.Prime(storage.UserID(id), storage.User{ID: storage.UserID(id)})
				ids = append(ids, storage.UserID(id))
			}
			l.Users.Fetch(ids)
			all = append(all, ids...)
		}
		all = rapid.Permutation(all).Draw(t, "order")
		for i, r := range l.Users.Fetch(all) {
			must.That(t, isUser(all[i], r), "the answer to %d is %+v", all[i], r)
		}
		for _, id := range slices.Backward(all) {
			r := l.Users.Load(id)
			must.That(t, isUser(id, r), "the answer to %d is %+v", id, r)
		}
		for id, n := range store.users {
			check.That(t, n == 1 && id <= 500<<22, "user %d was read %d times", id, n)
		}
	})
}
