package localcache_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/internal/storagetest/watch"
	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/cache/localcache"
	"kith/storage/events"
)

// slow is a store of which answers can be held back after they were read.
func slow(inner *oracle.Store, hold func(what string)) *double.Store {
	s := double.Of(inner)
	double.After(s, func(storage.Side, []storage.UserID, []storage.Result[storage.Profile]) { hold("profiles") }, storage.ProfileLookups)
	double.After(s, func(storage.Side, []storage.ListQuery, []storage.Result[storage.List]) { hold("lists") }, storage.SnapshotLookups...)
	double.After(s, func(storage.Side, []storage.UserID, []storage.Result[[]storage.UserID]) { hold("blocks") }, storage.BlockLookups)
	double.After(s, func(storage.Side, []storage.UserID, []storage.Result[[]storage.UserID]) { hold("neighbours") }, storage.NeighbourLookups...)
	double.After(s, func(storage.Side, []storage.WordQuery, []storage.Result[[]storage.UserID]) { hold("words") }, storage.WordLookups)
	return s
}

// Another gateway writes. Its events come late, twice and in any order, while this gateway's reads take
// their time. Once all events have come, the cache returns what the store has.
func TestLateDoubledAndReorderedEvents(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex // protects random, for reads in the background
			draw := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }

			const people = 6
			inner := oracle.New()
			store := slow(inner, func(string) { time.Sleep(time.Duration(draw(300)) * time.Microsecond) })
			var users []storage.User
			for id := range storage.UserID(people) {
				users = append(users, storage.User{ID: id + 1, Handle: fmt.Sprint("u", id+1)})
			}
			inner.CreateUsers(t.Context(), users)
			now := time.Now()
			cache := localcache.New(localcache.Config{Store: store, Bytes: 1 << 20, Now: func() time.Time { return now }})
			defer cache.Close()
			hub := events.NewHub(nil)
			defer hub.Close()
			var following sync.WaitGroup
			following.Go(cache.Follow(t.Context(), hub))

			readers := sync.WaitGroup{}
			done := make(chan struct{})
			for range 3 {
				readers.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
							ask(t.Context(), cache, storage.UserID(1+draw(people)))
						}
					}
				})
			}
			at := storage.MicrosOf(now)
			var pending []storage.Change
			others := watch.Watch(inner, func(_ context.Context, w storage.Change) { pending = append(pending, w) })
			for range 300 {
				from, to := storage.UserID(1+draw(people)), storage.UserID(1+draw(people))
				switch at++; draw(9) {
				case 0:
					name, whoSees := fmt.Sprint("name ", at), storage.Visibility(draw(3))
					if _, _, err := others.UpdateProfile(t.Context(), from, storage.ProfileChange{Name: &name, FollowingsVisibility: &whoSees}, at); err != nil {
						t.Error(err)
					}
				case 1: // the post does not exist, so only the user's own count changes
					change := storage.PostID{Author: to, Number: 1}.Favorite(storage.EdgeType(draw(2)), at)
					others.ChangeEdges(t.Context(), storage.Favorites, from, []storage.EdgeChange{change}, storage.ChangeOptions{Peace: true, Inverse: true})
				default:
					if from == to {
						continue
					}
					kind := []storage.EdgeType{storage.Following, storage.Following, storage.None, storage.Blocking, storage.Requested}[draw(5)]
					change := storage.EdgeChange{To: to, Type: kind, At: at - storage.Micros(draw(50))}
					if kind == storage.None {
						change.Ends = storage.EdgeType(draw(4))
					}
					others.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{change}, storage.ChangeOptions{Inverse: true})
				}
				if draw(8) == 0 { // or all is written before anything is read
					ask(t.Context(), cache, storage.UserID(1+draw(people)))
				}
				for len(pending) > 0 && draw(3) > 0 {
					i := draw(len(pending))
					hub.Publish(events.Of(pending[i])...)
					if draw(4) > 0 { // otherwise it comes again
						pending = append(pending[:i], pending[i+1:]...)
					}
				}
			}
			mu.Lock() // reads are still running
			order := random.Perm(len(pending))
			mu.Unlock()
			for _, i := range order {
				hub.Publish(events.Of(pending[i])...)
			}
			close(done)
			readers.Wait()
			settled(t, cache, inner, people)
			cache.Switch(false)
			hub.Close()
			following.Wait()
		})
	}
}

// ask reads everything that a cache keeps of a user.
func ask(ctx context.Context, r storage.Bundler, id storage.UserID) []any {
	ids := []storage.UserID{id}
	named, err := storage.WordLookups.Get(ctx, r, storage.WordQuery{Prefix: "n", Limit: 5})
	answers := []any{storage.UserLookups.Read(ctx, r, ids...), storage.CountLookups.Read(ctx, r, ids...), storage.BlockLookups.Read(ctx, r, ids...), recommender(ctx, r, id), named, err}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		answers = append(answers,
			storage.PageLookups[side].Read(ctx, r, storage.PageQuery{Owner: id, Limit: 100}),
			storage.NeighbourLookups[side].Read(ctx, r, ids...))
		var pairs []storage.Pair
		for other := storage.UserID(1); other <= 8; other++ {
			pairs = append(pairs, side.Pair(id, other))
		}
		edges := storage.EdgeLookups[side].Read(ctx, r, pairs...)
		for i := range edges { // a tombstone equals no row
			if edges[i].Value.Type == storage.None {
				edges[i] = storage.Result[storage.Edge]{Err: edges[i].Err}
			}
		}
		answers = append(answers, edges)
	}
	return answers
}

// recommender is a user as suggestions need it, from a store that keeps it in this form or from its rows.
func recommender(ctx context.Context, r storage.Bundler, id storage.UserID) any {
	type plain struct {
		visibility storage.Visibility
		following  int64
		followings []storage.UserID
		err        error
	}
	var b storage.Bundle
	asked := idset.RecommenderLookups.Ask(&b, id)
	if r.AtHand(&b); asked.Open() {
		r.Bundle(ctx, &b)
	}
	if kept := asked.Results[0]; kept.Found {
		dir := kept.Value.Directory
		set := kept.Value.Followings.Set(dir)
		return plain{kept.Value.Visibility, kept.Value.Following, slices.Clone(set.IDs()), nil}
	}
	profile, list := storage.ProfileLookups.Read(ctx, r, id)[0], storage.NeighbourLookups[storage.Forward].Read(ctx, r, id)[0]
	return plain{profile.Value.User.FollowingsVisibility, profile.Value.Counts.Following, append([]storage.UserID{}, list.Value...), cmp.Or(profile.Err, list.Err)}
}

// If an event is older than the tombstones that the cache knows, it is compared with the table. It may be about
// a row that still exists, or about one that has ended since. If the table cannot be read, the list is read again.
func TestOldEventsAreComparedWithTheTable(t *testing.T) {
	now := time.Now()
	old := storage.MicrosOf(now.Add(-time.Hour))
	for name, c := range map[string]struct {
		row    storage.Edge // in the table by now
		broken bool
	}{
		"it is there":            {row: storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: old}},
		"it has ended since":     {row: storage.Edge{From: 1, To: 2, Type: storage.None, UpdateTime: old + 1}},
		"the table is not there": {row: storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: old}, broken: true},
	} {
		store := oracle.New()
		people(t, store, 3)
		rows := double.Of(store)
		var broken atomic.Bool
		double.Before(rows, func(context.Context, []storage.Pair) error {
			if broken.Load() {
				return storage.ErrUnavailable
			}
			return nil
		}, storage.EdgeLookups...)
		cache := localcache.New(localcache.Config{Source: store, Store: rows, Bytes: 1 << 20, Now: func() time.Time { return now }})
		hub := events.NewHub(nil)
		var following sync.WaitGroup
		following.Go(cache.Follow(t.Context(), hub))
		for id := storage.UserID(1); id <= 3; id++ {
			ask(t.Context(), cache, id)
		}
		broken.Store(c.broken)
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			store.Apply(t.Context(), side, []storage.Edge{c.row}, storage.IfNewer)
		}
		var late storage.Change
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			late.AddRow(side, storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: old})
		}
		hub.Publish(events.Of(late)...)
		// Events are applied one after another.
		changed := "another name"
		_, _, err := store.UpdateProfile(t.Context(), 3, storage.ProfileChange{Name: &changed}, 5)
		must.OK(t, err)
		hub.Publish(events.Event{Kind: events.UserChanged, User: &storage.UserChange{User: 3, What: storage.Whole}})
		settled(t, cache, store, 3)
		if t.Failed() {
			t.Fatal(name)
		}
		cache.Close()
		hub.Close()
		following.Wait()
	}
}

// settled waits until a cache returns what the store has, which takes no longer than until the
// events are applied.
func settled(t *testing.T, cache *localcache.Cache, store storage.Bundler, people int) {
	t.Helper()
	for id := storage.UserID(1); id <= storage.UserID(people); id++ {
		want := ask(t.Context(), store, id)
		var got []any
		for end := time.Now().Add(10 * time.Second); ; {
			if got = ask(t.Context(), cache, id); fmt.Sprint(got) == fmt.Sprint(want) {
				break
			}
			if time.Now().After(end) {
				for i := range got {
					if !reflect.DeepEqual(got[i], want[i]) {
						t.Errorf("user %d, answer %d: got  %v\nwant %v", id, i, got[i], want[i])
					}
				}
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// If a read begins before a change and ends after it, its result is not kept, and does not answer
// look-ups that were made after the change.
func TestAReadThatAChangeOvertakes(t *testing.T) {
	for what, change := range map[string]func(*oracle.Store, *localcache.Cache){
		"profiles": func(s *oracle.Store, c *localcache.Cache) {
			name := "new"
			_, _, _ = s.UpdateProfile(context.Background(), 1, storage.ProfileChange{Name: &name}, 5)
			var change storage.Change
			change.AddProfile(1)
			c.Apply(context.Background(), change, true)
		},
		"lists": func(s *oracle.Store, c *localcache.Cache) {
			e := storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: 5}
			s.Apply(context.Background(), storage.Forward, []storage.Edge{e}, storage.IfNewer)
			c.Apply(t.Context(), localcache.ChangedRows(storage.Row{Side: storage.Forward, Edge: e}), true)
		},
		"blocks": func(s *oracle.Store, c *localcache.Cache) {
			e := storage.Edge{From: 1, To: 2, Type: storage.Blocking, UpdateTime: 5}
			s.Apply(context.Background(), storage.Forward, []storage.Edge{e}, storage.IfNewer)
			c.Apply(t.Context(), localcache.ChangedRows(storage.Row{Side: storage.Forward, Edge: e}), true)
		},
		"blocks, of which a follow replaces one": func(s *oracle.Store, c *localcache.Cache) {
			e := storage.Edge{From: 1, To: 3, Type: storage.Following, UpdateTime: 5}
			s.Apply(context.Background(), storage.Forward, []storage.Edge{e}, storage.IfNewer)
			c.Apply(t.Context(), localcache.ChangedRows(storage.Row{Side: storage.Forward, Edge: e}), true)
		},
		"gap": func(s *oracle.Store, c *localcache.Cache) {
			name := "new"
			_, _, _ = s.UpdateProfile(context.Background(), 1, storage.ProfileChange{Name: &name}, 5)
			c.Forget()
		},
		"words, of which all are forgotten": func(s *oracle.Store, c *localcache.Cache) {
			name := "new"
			_, _, _ = s.UpdateProfile(context.Background(), 1, storage.ProfileChange{Name: &name}, 5)
			c.Forget()
		},
	} {
		t.Run(what, func(t *testing.T) {
			inner := oracle.New()
			inner.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}, {ID: 3, Handle: "c"}})
			block := storage.Edge{From: 1, To: 3, Type: storage.Blocking, UpdateTime: 1}
			inner.Apply(t.Context(), storage.Forward, []storage.Edge{block}, storage.IfNewer)
			reading, goOn := make(chan struct{}), make(chan struct{})
			var held atomic.Bool
			store := slow(inner, func(read string) {
				if strings.HasPrefix(what, read) || what == "gap" && read == "profiles" {
					if !held.Swap(true) {
						close(reading)
						<-goOn
					}
				}
			})
			cache := localcache.New(localcache.Config{Store: store, Bytes: 1 << 20, Now: func() time.Time { return time.UnixMicro(0) }})
			defer cache.Close()
			first := make(chan struct{})
			go func() { defer close(first); ask(t.Context(), cache, 1) }()
			<-reading
			change(inner, cache)
			if what != "lists" { // a list that callers wait for has the change
				// A caller that asks now does not wait for the read that missed the change.
				if got, want := fmt.Sprint(ask(t.Context(), cache, 1)), fmt.Sprint(ask(t.Context(), inner, 1)); got != want {
					t.Errorf("during the read: got  %s\nwant %s", got, want)
				}
			}
			close(goOn)
			<-first
			if got, want := fmt.Sprint(ask(t.Context(), cache, 1)), fmt.Sprint(ask(t.Context(), inner, 1)); got != want {
				t.Errorf("after the read: got  %s\nwant %s", got, want)
			}
		})
	}
}

// A follow that replaces a block ends the block for both users.
func TestAFollowInPlaceOfABlock(t *testing.T) {
	store := oracle.New()
	people(t, store, 2)
	cache := newCache(t, store, 1<<20)
	for at, kind := range []storage.EdgeType{storage.Blocking, storage.Following} {
		e := storage.Edge{From: 1, To: 2, Type: kind, UpdateTime: storage.Micros(at + 1)}
		for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
			store.Apply(t.Context(), side, []storage.Edge{e}, storage.IfNewer)
			cache.Apply(t.Context(), localcache.ChangedRows(storage.Row{Side: side, Edge: e}), true)
		}
		for id := storage.UserID(1); id <= 2; id++ {
			if got, want := fmt.Sprint(ask(t.Context(), cache, id)), fmt.Sprint(ask(t.Context(), store, id)); got != want {
				t.Errorf("type %v, user %d: got  %s\nwant %s", kind, id, got, want)
			}
		}
	}
}

// Of two rows of one pair with the same time the first counts, in the cache as in the store.
func TestOfTwoRowsOfOneTimeTheFirstCounts(t *testing.T) {
	types := []storage.EdgeType{storage.None, storage.Following, storage.Blocking}
	for _, first := range types {
		for _, second := range types {
			store := oracle.New()
			people(t, store, 2)
			cache := newCache(t, store, 1<<20)
			for _, kind := range []storage.EdgeType{first, second} {
				e := storage.Edge{From: 1, To: 2, Type: kind, UpdateTime: 1}
				store.Apply(t.Context(), storage.Forward, []storage.Edge{e}, storage.IfNewer)
				cache.Apply(t.Context(), localcache.ChangedRows(storage.Row{Side: storage.Forward, Edge: e}), true)
				if got, want := fmt.Sprint(ask(t.Context(), cache, 1)), fmt.Sprint(ask(t.Context(), store, 1)); got != want {
					t.Errorf("%v, then %v: got  %s\nwant %s", first, second, got, want)
				}
			}
		}
	}
}

// While Redis holds old data of a user, other gateways may read it. When the data is corrected, they forget
// that user, and no other.
func TestWhatWasCorrectedIsForgotten(t *testing.T) {
	store, _ := counted()
	people(t, store, 3)
	followers(t, store, 2)
	cache := newCache(t, store, 1<<20)
	hub := events.NewHub(nil)
	t.Cleanup(hub.Close)
	ctx, stop := context.WithCancel(t.Context())
	run := cache.Follow(ctx, hub)
	ended := make(chan struct{})
	go func() { defer close(ended); run() }()
	t.Cleanup(func() { stop(); <-ended })
	for id := range storage.UserID(2) {
		ask(t.Context(), cache, id+1)
		if n := atHand(cache, id+1); n != 4 {
			t.Fatalf("of user %d %d kinds of things are at hand: the test shows little", id+1, n)
		}
	}
	name := "new"
	_, _, err := store.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &name}, 5)
	must.OK(t, err)
	hub.Publish(events.Event{Kind: events.UserChanged, User: &storage.UserChange{User: 1, What: storage.Missed}})
	for deadline := time.Now().Add(30 * time.Second); atHand(cache, 1) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d kinds of things are still at hand", atHand(cache, 1))
		}
	}
	if n := atHand(cache, 2); n != 4 {
		t.Errorf("of another user %d kinds of things are at hand", n)
	}
	if named, err := storage.WordLookups.Get(t.Context(), cache, storage.WordQuery{Prefix: "n", Limit: 5}); err != nil || !slices.Equal(named, []storage.UserID{1}) {
		t.Errorf("by the corrected name %v are found, %v", named, err)
	}
}

// A follow that comes an hour late, long after it was ended, does not appear again.
func TestARowOlderThanAllThatIsRemembered(t *testing.T) {
	inner := oracle.New()
	inner.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}})
	now := time.Now()
	past := storage.MicrosOf(now.Add(-time.Hour))
	ended := storage.Edge{From: 1, To: 2, Type: storage.None, UpdateTime: past + 10}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		inner.Apply(t.Context(), side, []storage.Edge{ended}, storage.IfNewer)
	}
	cache := localcache.New(localcache.Config{Store: inner, Bytes: 1 << 20, Now: func() time.Time { return now }})
	defer cache.Close()
	hub := events.NewHub(nil)
	defer hub.Close()
	var following sync.WaitGroup
	following.Go(cache.Follow(t.Context(), hub))
	ask(t.Context(), cache, 1)
	ask(t.Context(), cache, 2)
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		hub.Publish(events.Event{Row: storage.Row{Side: side, Edge: storage.Edge{From: 1, To: 2, Type: storage.None, UpdateTime: past - 10}}}) // an earlier end, late as well
		hub.Publish(events.Event{Row: storage.Row{Side: side, Edge: storage.Edge{From: 1, To: 2, Type: storage.Following, UpdateTime: past}}})
	}
	hub.Close()
	following.Wait()
	for id := storage.UserID(1); id <= 2; id++ {
		if got, want := fmt.Sprint(ask(t.Context(), cache, id)), fmt.Sprint(ask(t.Context(), inner, id)); got != want {
			t.Errorf("user %d: got  %s\nwant %s", id, got, want)
		}
	}
}

// A shard is restored without a row that the cache was told of, and all is forgotten. Then the row is written again, as it was. The
// cache may hear of the row and of the gap at once.
func TestARowThatComesBackAfterARestore(t *testing.T) {
	for _, atOnce := range []bool{false, true} {
		t.Run(fmt.Sprintf("atOnce=%v", atOnce), func(t *testing.T) { rowComesBack(t, atOnce) })
	}
}

func rowComesBack(t *testing.T, atOnce bool) {
	full, dump := oracle.New(), oracle.New()
	people(t, full, 2)
	people(t, dump, 2)
	row := storage.Edge{From: 2, To: 1, Type: storage.Following, UpdateTime: 50}
	for _, side := range []storage.Side{storage.Forward, storage.Inverse} {
		full.Apply(t.Context(), side, []storage.Edge{row}, storage.IfNewer)
	}
	store := double.Of(full)
	cache := newCache(t, store, 1<<20)
	hub := events.NewHub(nil)
	run := cache.Follow(t.Context(), hub)
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(hub.Close)
	written := events.Event{Row: storage.Row{Side: storage.Inverse, Edge: row}}
	hub.Publish(written)
	if !atOnce {
		running.Go(run)
	}
	awaitFollowers(t, cache, 1)
	store.Instead.Bundle = dump.Bundle
	hub.Publish(events.Event{Kind: events.Gap})
	if atOnce {
		running.Go(run)
	}
	awaitFollowers(t, cache, 0)
	store.Instead.Bundle = full.Bundle
	hub.Publish(written)
	awaitFollowers(t, cache, 1)
}

// awaitFollowers waits until the cache shows so many followers of user 1.
func awaitFollowers(t *testing.T, cache *localcache.Cache, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		got := len(storage.PageLookups[storage.Inverse].Read(t.Context(), cache, storage.PageQuery{Owner: 1, Limit: 10})[0].Value)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d followers, want %d", got, want)
		}
	}
}
