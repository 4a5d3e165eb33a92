package accounts_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/accounts"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/events"
)

// However many users change, gateways read a tenth of the time: each time, everything of the last minute. A store that is slow is read again
// after a second all the same.
func TestManyChangesAreReadAtLeisure(t *testing.T) {
	for takes, want := range map[time.Duration]int{20 * time.Millisecond: 50, 500 * time.Millisecond: 7} {
		t.Run(takes.String(), func(t *testing.T) { readAtLeisure(t, takes, want) })
	}
}

// ofDeleted is what a gateway knows that starts where the users from 1 on have been deleted, in no order.
func ofDeleted(t *testing.T, users storage.Micros) *accounts.HiddenUsers {
	store := oracle.New()
	storage.StateChangeLookups.AnsweredBy(&store.Answering, func(_ context.Context, queries []storage.ShardQuery[storage.StateChange]) []storage.Result[[]storage.StateChange] {
		return storage.Each(queries, func(q storage.ShardQuery[storage.StateChange]) (r storage.Result[[]storage.StateChange]) {
			for at := q.After.At + 1; at <= users && len(r.Value) < q.Limit; at++ {
				id := storage.UserID(at * 7_919 % (users + 1)) // each once
				r.Value = append(r.Value, storage.StateChange{At: at, User: id, State: storage.Deleted})
			}
			return r
		})
	})
	hidden := accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
	must.OK(t, hidden.Refresh(t.Context()))
	return hidden
}

// A gateway that starts takes each page of those who were deleted up in time that hardly depends on how many it knows.
func TestManyDeletedUsersAreKnownSoon(t *testing.T) {
	took := func(users storage.Micros) time.Duration {
		began := testenv.ProcessorTime()
		hidden := ofDeleted(t, users)
		took := testenv.ProcessorTime() - began
		for id := storage.UserID(1); id <= storage.UserID(users); id++ {
			must.That(t, hidden.Has(id), "user %d is not known", id)
		}
		must.That(t, !hidden.Has(storage.UserID(users+1)), "another is")
		return took
	}
	least := func(users storage.Micros) time.Duration { return min(took(users), took(users), took(users)) }
	few, many := least(50_000), least(400_000)
	check.Most(t, "how many times as long eight times as many take", many.Seconds()/few.Seconds(), 24) // 64 if each page takes as long as all before
}

// A gateway that starts does not copy all whom it knows as hidden for each page of them.
func TestManyHiddenUsersAreKnownSoon(t *testing.T) {
	const users, pages = 500_000, 50
	store := oracle.New()
	var hidden *accounts.HiddenUsers
	lists := map[int]bool{} // by their lengths
	storage.StateChangeLookups.AnsweredBy(&store.Answering, func(_ context.Context, queries []storage.ShardQuery[storage.StateChange]) []storage.Result[[]storage.StateChange] {
		lists[len(hidden.IDs())] = true
		return storage.Each(queries, func(q storage.ShardQuery[storage.StateChange]) (r storage.Result[[]storage.StateChange]) {
			for at := q.After.At + 1; at <= users && len(r.Value) < q.Limit; at++ {
				id := storage.UserID(at * 7_919 % (users + 1)) // each once
				r.Value = append(r.Value, storage.StateChange{At: at, User: id, State: storage.Deactivated})
			}
			return r
		})
	})
	hidden = accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
	must.OK(t, hidden.Refresh(t.Context()))
	check.Most(t, "lists that are made of them", len(lists), pages/2)
	check.Equal(t, "hidden users", len(hidden.IDs()), users)
}

// A deletion does not copy all users who were ever deleted.
func TestADeletionDoesNotCopyTheDeletedUsers(t *testing.T) {
	const users, more = 500_000, 200
	hidden := ofDeleted(t, users)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for id := range storage.UserID(more) {
		hidden.Note(users+1+id, storage.Deleted, 0)
	}
	runtime.ReadMemStats(&after)
	check.Most(t, "bytes that a deletion takes", (after.TotalAlloc-before.TotalAlloc)/more, 8*users/10)
	for id := range storage.UserID(more) {
		for _, id := range []storage.UserID{1 + id, users + 1 + id} {
			must.That(t, hidden.Has(id), "user %d is not deleted", id)
			hidden.Note(id, storage.Active, 0)
			must.That(t, !hidden.Has(id), "user %d is not there again", id)
		}
	}
}

// readAtLeisure counts how often changes are read in 10 s in which users change every millisecond.
func readAtLeisure(t *testing.T, takes time.Duration, want int) {
	synctest.Test(t, func(t *testing.T) {
		store, reads, hub := double.Of(oracle.New()), 0, events.NewHub(nil)
		double.Before(store, func(context.Context, []storage.ShardQuery[storage.StateChange]) error {
			reads++
			time.Sleep(takes)
			return nil
		}, storage.StateChangeLookups)
		makeUsers(t, store, 1)
		hidden := accounts.NewHiddenUsers(store, accounts.NewMetrics(prometheus.NewRegistry()), time.Now)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { hidden.Run(ctx, hub) })
		for range 10_000 {
			time.Sleep(time.Millisecond)
			hub.Publish(events.Event{Kind: events.UserChanged, User: &storage.UserChange{User: 1, What: storage.Standing}})
		}
		check.That(t, reads >= want*4/5 && reads <= want*6/5, "in 10 s, changes were read %d times, want about %d", reads, want)
		cancel()
		hub.Close()
		running.Wait()
	})
}
