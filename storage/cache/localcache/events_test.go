package localcache_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/internal/storagetest/watch"
	"kith/storage"
	"kith/storage/cache/idset"
	"kith/storage/cache/localcache"
	"kith/storage/events"
	"kith/storage/finding"
)

// slow is a store of which answers can be held back after they were read.
func slow(inner *oracle.Store, hold func(what string)) *double.Store {
	s := double.Of(inner)
	double.After(s, func(storage.Side, []storage.UserID, []storage.Result[storage.Profile]) { hold("profiles") }, storage.ProfileLookups)
	double.After(s, func(storage.Side, []storage.ListQuery, []storage.Result[storage.List]) { hold("lists") }, storage.SnapshotLookups...)
	double.After(s, func(storage.Side, []storage.UserID, []storage.Result[[]storage.UserID]) { hold("blocks") }, storage.BlockLookups)
	double.After(s, func(storage.Side, []storage.UserID, []storage.Result[[]storage.UserID]) { hold("neighbours") }, storage.NeighbourLookups...)
	double.After(s, func(storage.Side, []finding.WordQuery, []storage.Result[[]storage.UserID]) { hold("words") }, finding.WordLookups)
	return s
}

// hubOf is a hub whose events a cache applies until the test ends.
func hubOf(t *testing.T, cache *localcache.Cache) *events.Hub {
	t.Helper()
	hub := events.NewHub(nil)
	var following sync.WaitGroup
	following.Go(cache.Follow(t.Context(), hub))
	t.Cleanup(func() { hub.Close(); following.Wait() })
	return hub
}

// allTheTime has three readers read again and again until the end.
func allTheTime(read func()) (end func()) {
	var readers sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					read()
				}
			}
		})
	}
	return func() { close(done); readers.Wait() }
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

			const users = 6
			inner := oracle.New()
			store := slow(inner, func(string) { time.Sleep(time.Duration(draw(300)) * time.Microsecond) })
			people(t, inner, users)
			now := time.Now()
			cache := localcache.New(localcache.Config{Store: store, Bytes: 1 << 20, Now: func() time.Time { return now }})
			defer cache.Close()
			hub := hubOf(t, cache)
			stop := allTheTime(func() { ask(t.Context(), cache, storage.UserID(1+draw(users))) })
			at := storage.MicrosOf(now)
			var pending []storage.Change
			others := watch.Watch(inner, func(_ context.Context, w storage.Change) { pending = append(pending, w) })
			for range 300 {
				from, to := storage.UserID(1+draw(users)), storage.UserID(1+draw(users))
				switch at++; draw(9) {
				case 0:
					name, whoSees := fmt.Sprint("name ", at), storage.Visibility(draw(3))
					_, _, err := others.UpdateProfile(t.Context(), from, storage.ProfileChange{Name: &name, FollowingsVisibility: &whoSees}, at)
					check.Is(t, "a change of a profile", err, nil)
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
					ask(t.Context(), cache, storage.UserID(1+draw(users)))
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
			stop()
			settled(t, cache, inner, users)
			cache.Switch(false)
		})
	}
}

// ask reads everything that a cache keeps of a user.
func ask(ctx context.Context, r storage.Bundler, id storage.UserID) []any {
	ids := []storage.UserID{id}
	named, err := finding.WordLookups.Get(ctx, r, finding.WordQuery{Prefix: "n", Limit: 5})
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

// agree checks that a cache returns what the store has of users.
func agree(t *testing.T, what any, cache *localcache.Cache, store storage.Bundler, ids ...storage.UserID) {
	t.Helper()
	for _, id := range ids {
		check.Equal(t, fmt.Sprintf("%v, user %d", what, id), fmt.Sprint(ask(t.Context(), cache, id)), fmt.Sprint(ask(t.Context(), store, id)))
	}
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
		write(t, store, c.row)
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
		must.That(t, !t.Failed(), "%v", name)
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
		want := fmt.Sprint(ask(t.Context(), store, id))
		must.Soon(t, fmt.Sprintf("user %d is %s", id, want), func() bool { return fmt.Sprint(ask(t.Context(), cache, id)) == want })
	}
}

// If a read begins before a change and ends after it, its result is not kept, and does not answer
// look-ups that were made after the change.
func TestAReadThatAChangeOvertakes(t *testing.T) {
	type change = func(*oracle.Store, *localcache.Cache)
	edge := func(to storage.UserID, kind storage.EdgeType) change {
		return func(s *oracle.Store, c *localcache.Cache) {
			e := storage.Edge{From: 1, To: to, Type: kind, UpdateTime: 5}
			s.Apply(context.Background(), storage.Forward, []storage.Edge{e}, storage.IfNewer)
			c.Apply(t.Context(), localcache.ChangedRows(storage.Row{Side: storage.Forward, Edge: e}), true)
		}
	}
	rename := func(then func(*localcache.Cache)) change {
		return func(s *oracle.Store, c *localcache.Cache) {
			name := "new"
			_, _, _ = s.UpdateProfile(context.Background(), 1, storage.ProfileChange{Name: &name}, 5)
			then(c)
		}
	}
	var profile storage.Change
	profile.AddProfile(1)
	for what, change := range map[string]change{
		"profiles":                               rename(func(c *localcache.Cache) { c.Apply(context.Background(), profile, true) }),
		"lists":                                  edge(2, storage.Following),
		"blocks":                                 edge(2, storage.Blocking),
		"blocks, of which a follow replaces one": edge(3, storage.Following),
		"gap":                                    rename((*localcache.Cache).Forget),
		"words, of which all are forgotten":      rename((*localcache.Cache).Forget),
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
				agree(t, "during the read", cache, inner, 1)
			}
			close(goOn)
			<-first
			agree(t, "after the read", cache, inner, 1)
		})
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
				agree(t, []storage.EdgeType{first, second}, cache, store, 1)
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
	hub := hubOf(t, cache)
	for id := range storage.UserID(2) {
		ask(t.Context(), cache, id+1)
		must.Equal(t, fmt.Sprintf("kinds of things at hand of user %d", id+1), atHand(cache, id+1), 4)
	}
	name := "new"
	_, _, err := store.UpdateProfile(t.Context(), 1, storage.ProfileChange{Name: &name}, 5)
	must.OK(t, err)
	hub.Publish(events.Event{Kind: events.UserChanged, User: &storage.UserChange{User: 1, What: storage.Missed}})
	must.Soon(t, "nothing of the user is at hand", func() bool { return atHand(cache, 1) == 0 })
	check.Equal(t, "kinds of things at hand of another user", atHand(cache, 2), 4)
	named, err := finding.WordLookups.Get(t.Context(), cache, finding.WordQuery{Prefix: "n", Limit: 5})
	must.OK(t, err)
	check.Equal(t, "who is found by the corrected name", named, []storage.UserID{1})
}

// A follow that comes an hour late, long after it was ended, does not appear again.
func TestARowOlderThanAllThatIsRemembered(t *testing.T) {
	inner := oracle.New()
	inner.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}, {ID: 2, Handle: "b"}})
	now := time.Now()
	past := storage.MicrosOf(now.Add(-time.Hour))
	ended := storage.Edge{From: 1, To: 2, Type: storage.None, UpdateTime: past + 10}
	write(t, inner, ended)
	cache := localcache.New(localcache.Config{Store: inner, Bytes: 1 << 20, Now: func() time.Time { return now }})
	defer cache.Close()
	hub := events.NewHub(nil)
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
	agree(t, "late events", cache, inner, 1, 2)
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
	write(t, full, row)
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
	must.Soon(t, fmt.Sprintf("there are %d followers", want), func() bool {
		return len(storage.PageLookups[storage.Inverse].Read(t.Context(), cache, storage.PageQuery{Owner: 1, Limit: 10})[0].Value) == want
	})
}
