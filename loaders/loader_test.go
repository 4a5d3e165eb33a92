package loaders_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kith/internal/check"
	"kith/loaders"
	"kith/storage"
)

// counting is a store that counts how often each user and each count is read. Users with even ids exist.
type counting struct {
	mu      sync.Mutex
	users   map[storage.UserID]int
	counts  map[storage.UserID]int
	batches int // of users or of counts
	bundles int
}

func newCounting() *counting {
	return &counting{users: map[storage.UserID]int{}, counts: map[storage.UserID]int{}}
}

func (c *counting) note(read map[storage.UserID]int, ids []storage.UserID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.batches++
	for _, id := range ids {
		read[id]++
	}
}

func (c *counting) AtHand(*storage.Bundle) {}

// Bundle answers look-ups of users and of counts only, each separately.
func (c *counting) Bundle(_ context.Context, b *storage.Bundle) {
	c.mu.Lock()
	c.bundles++
	c.mu.Unlock()
	if l := storage.UserLookups.In(b); l.Open() {
		l.Results = c.readUsers(l.Keys)
	}
	if l := storage.CountLookups.In(b); l.Open() {
		l.Results = c.readCounts(l.Keys)
	}
}

func (c *counting) readUsers(ids []storage.UserID) []storage.Result[storage.User] {
	c.note(c.users, ids)
	results := make([]storage.Result[storage.User], len(ids))
	for i, id := range ids {
		if id < 0 {
			panic("no such id")
		}
		if id%2 == 0 {
			results[i] = storage.Result[storage.User]{Value: storage.User{ID: id}, Found: true}
		}
	}
	return results
}

func (c *counting) readCounts(ids []storage.UserID) []storage.Result[storage.Counts] {
	c.note(c.counts, ids)
	results := make([]storage.Result[storage.Counts], len(ids))
	for i, id := range ids {
		results[i] = storage.Result[storage.Counts]{Value: storage.Counts{Following: int64(id)}, Found: true}
	}
	return results
}

// isUser reports whether a result is the one that counting gives for a user.
func isUser(id storage.UserID, r storage.Result[storage.User]) bool {
	return r.Err == nil && r.Found == (id%2 == 0) && (!r.Found || r.Value.ID == id)
}

// Each key is read once, whether callers ask for one key or for many. Every caller gets the answers to
// its own keys, in their order.
func TestNoKeyIsReadTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := newCounting()
		ctx := loaders.Attach(context.Background(), store)
		l := loaders.For(ctx)
		keys := rapid.SliceOfN(rapid.Map(rapid.IntRange(1, 12), func(n int) storage.UserID { return storage.UserID(n) }), 1, 6)
		var all sync.WaitGroup
		for range rapid.IntRange(1, 8).Draw(t, "askers") {
			ids, way := keys.Draw(t, "ids"), rapid.IntRange(0, 4).Draw(t, "way")
			all.Go(func() {
				var got []storage.Result[storage.User]
				switch way {
				case 0:
					got = l.Users.Fetch(ids)
				case 1:
					users, counts := l.Users.Ask(ids), l.Counts.Ask(ids)
					l.Dispatch(users, counts)
					users.Results()
					got = users.Results()
					for i, r := range counts.Results() {
						check.That(t, r.Value.Following == int64(ids[i]), "the counts of %d are %+v", ids[i], r)
					}
				case 2:
					for _, id := range ids {
						got = append(got, l.Users.Load(id))
					}
				case 3:
					for _, id := range ids {
						got = append(got, l.Users.Get(id))
					}
				case 4:
					l.Users.Fetch(ids)
					for _, id := range ids {
						got = append(got, l.Users.Load(id))
					}
				}
				for i, r := range got {
					check.That(t, isUser(ids[i], r), "of %v, asked in way %d, the answer to %d is %+v", ids, way, ids[i], r)
				}
				check.That(t, len(got) == len(ids), "%d answers to %v", len(got), ids)
			})
		}
		all.Wait()
		for id, n := range store.users {
			check.That(t, n == 1 && store.counts[id] <= 1, "user %d was read %d times, its counts %d times", id, n, store.counts[id])
		}
	})
}

// Each of several loaders sends its keys as one batch. Keys that are known are not sent.
func TestQuestionsLeaveTogether(t *testing.T) {
	store := newCounting()
	ctx := loaders.Attach(loaders.WithWait(t.Context(), long), store)
	l := loaders.For(ctx)
	start := time.Now()
	l.Dispatch(l.Users.Ask([]storage.UserID{1, 2, 1}), l.Counts.Ask([]storage.UserID{2}), l.Users.Ask([]storage.UserID{4, 2}))
	l.Users.Fetch([]storage.UserID{4, 1, 2})
	l.Counts.Load(2)
	l.Users.Fetch(nil)
	if store.batches != 2 || store.bundles != 1 {
		t.Errorf("there were %d bundles with %d batches, want one with one of users and one of counts", store.bundles, store.batches)
	}
	check.Most(t, "the time that it took", time.Since(start), patience)
}

// A caller also waits for those of its keys that another caller is already reading.
func TestWaitIsForTheKeysOfOthersToo(t *testing.T) {
	store := held{newCounting(), make(chan bool), make(chan bool)}
	ctx := loaders.Attach(t.Context(), store)
	l := loaders.For(ctx)
	var all sync.WaitGroup
	all.Go(func() { l.Users.Fetch([]storage.UserID{heldUser}) })
	<-store.reading

	var released atomic.Bool
	asked := l.Users.Ask([]storage.UserID{heldUser, 4})
	l.Dispatch(asked) // reads user 4
	all.Go(func() {
		asked.Results()
		check.That(t, released.Load(), "it did not wait for both")
	})
	time.Sleep(10 * time.Millisecond) // time in which a wrong loader would fail; a correct one does not depend on it
	released.Store(true)
	store.release <- true
	all.Wait()
	got := asked.Results()
	check.That(t, isUser(heldUser, got[0]) && isUser(4, got[1]), "the answers are %+v", got)
}

// held is a store that reports when one user is read, and then waits until that read is released.
type held struct {
	*counting
	reading, release chan bool
}

const heldUser = 2

func (h held) Bundle(ctx context.Context, b *storage.Bundle) {
	if l := storage.UserLookups.In(b); l != nil && slices.Contains(l.Keys, heldUser) {
		h.reading <- true
		<-h.release
	}
	h.counting.Bundle(ctx, b)
}

// Single edges that are not known wait for one another.
func TestLateKeysShareABatch(t *testing.T) {
	store := &echoing{}
	ctx := loaders.Attach(loaders.WithWait(t.Context(), time.Second), store)
	edges := loaders.Of(loaders.For(ctx), storage.EdgeLookups[storage.Inverse])
	pair := func(from storage.UserID) storage.Pair { return storage.Pair{From: from, To: from % 2} }
	primed := storage.Edge{From: 6, Type: storage.Following}
	edges.Prime(pair(6), primed)
	edges.Prime(pair(6), storage.Edge{})
	var all sync.WaitGroup
	for _, from := range []storage.UserID{2, 3, 4, 2, 6} {
		all.Go(func() {
			r := edges.Load(pair(from))
			check.That(t, r.Found && r.Value.From == from, "the answer to %d is %+v", from, r)
		})
	}
	all.Wait()
	r := edges.Load(pair(6))
	check.That(t, r.Value == primed, "the primed edge is %+v", r)
	if len(store.seen) != 1 || len(storage.EdgeLookups[storage.Inverse].In(&store.seen[0]).Keys) != 3 {
		t.Errorf("there were %d bundles, want one of three edges: %+v", len(store.seen), store.seen)
	}
}

// If a look-up panics, it has failed for every caller that waits for it.
func TestLookUpThatPanicsHasFailed(t *testing.T) {
	ctx := loaders.Attach(t.Context(), newCounting())
	l := loaders.For(ctx)
	fetched := l.Users.Fetch([]storage.UserID{2, -1})
	for _, r := range slices.Concat(fetched, []storage.Result[storage.User]{l.Users.Load(2), l.Users.Load(-3)}) {
		check.That(t, !r.Found && r.Err != nil && strings.Contains(r.Err.Error(), "no such id"), "the answer is %+v, want an error that says why", r)
	}
}
