package consistency_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kith/graph/consistency"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// table is a store that counts how often it is asked for edges, and that may fail.
type table struct {
	*oracle.Store
	asked, keys atomic.Int64
	dead        atomic.Int64 // whose edges cannot be read
}

func (s *table) edges(ctx context.Context, side storage.Side, pairs []storage.Pair) []storage.Result[storage.Edge] {
	s.asked.Add(1)
	s.keys.Add(int64(len(pairs)))
	results := storage.EdgeLookups[side].Read(ctx, s.Store, pairs...)
	for i, p := range pairs {
		if p.To == storage.UserID(s.dead.Load()) {
			results[i] = storage.Result[storage.Edge]{Err: storage.ErrUnavailable}
		}
	}
	return results
}

func (s *table) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.EdgeLookups.Instead(ctx, b, s.edges)
	s.Store.Bundle(ctx, b)
}

func (s *table) apply(side storage.Side, to storage.UserID, kind storage.EdgeType, at storage.Micros) {
	s.Apply(context.Background(), side, []storage.Edge{{From: 1, To: to, Type: kind, UpdateTime: at}}, storage.IfNewer)
}

func waiting(store storage.Store, atMost time.Duration) *consistency.Tokens {
	return consistency.New(consistency.Tokens{Key: []byte("a key"), Store: store, MaxWait: atMost})
}

func TestWaitEndsWhenTheRowsAreThere(t *testing.T) {
	store := &table{Store: oracle.New()}
	token := consistency.Token{mark(1, 2, 10), mark(1, 3, 10)}
	short, long := waiting(store, 20*time.Millisecond), waiting(store, time.Minute)
	check.That(t, !short.Wait(t.Context(), token), "nothing is there")
	store.apply(storage.Inverse, 2, storage.Following, 11) // a newer row is enough
	store.apply(storage.Inverse, 3, storage.Following, 9)  // an older row is not
	check.That(t, !short.Wait(t.Context(), token), "one row is too old")
	go store.apply(storage.Inverse, 3, storage.Following, 10)
	check.That(t, long.Wait(t.Context(), token), "both are there")
}

// The mark of a request waits for the inbox, whatever is in follower.
func TestWaitReadsTheTableOfTheMark(t *testing.T) {
	store := &table{Store: oracle.New()}
	token := consistency.Token{mark(1, 2, 10), {Side: storage.Requests, Pair: storage.Pair{From: 1, To: 2}, Version: 10}}
	store.apply(storage.Inverse, 2, storage.Pending, 10)
	check.That(t, !waiting(store, 20*time.Millisecond).Wait(t.Context(), token), "the request is not in the inbox")
	go store.apply(storage.Inbox, 2, storage.Pending, 10)
	check.That(t, waiting(store, time.Minute).Wait(t.Context(), token), "both are there")
}

// A span waits for every follow, and every request to follow, that was written in its time, and for no other.
func TestWaitForSpans(t *testing.T) {
	store := &table{Store: oracle.New()}
	for to := range storage.UserID(60) {
		store.apply(storage.Forward, to+2, storage.Following, 100+storage.Micros(to))
	}
	token := consistency.Token{span(1, 110, 140)}
	for to := range storage.UserID(60) {
		if at := 100 + storage.Micros(to); at >= 110 && at < 140 {
			store.apply(storage.Inverse, to+2, storage.Following, at)
		}
	}
	check.That(t, !waiting(store, 20*time.Millisecond).Wait(t.Context(), token), "the newest follow of the span is not there")
	go store.apply(storage.Inverse, 42, storage.Following, 140)
	check.That(t, waiting(store, time.Minute).Wait(t.Context(), token), "all of the span are there")
	store.apply(storage.Forward, 70, storage.Requested, 120)
	check.That(t, !waiting(store, 20*time.Millisecond).Wait(t.Context(), token), "a request to follow of the span is not there")
	go store.apply(storage.Inverse, 70, storage.Requested, 120)
	check.That(t, waiting(store, time.Minute).Wait(t.Context(), token), "the request is there, too")
}

// Of spans with more rows than are looked at, it is not known whether all rows have arrived.
func TestWaitForSpansWithManyRows(t *testing.T) {
	store := &table{Store: oracle.New()}
	rows := make([]storage.Edge, 2500)
	for i := range rows {
		rows[i] = storage.Edge{From: 1, To: storage.UserID(i + 2), Type: storage.Following, UpdateTime: storage.Micros(100 + i)}
	}
	must.All(t, store.Apply(t.Context(), storage.Forward, rows, storage.IfNewer))
	must.All(t, store.Apply(t.Context(), storage.Inverse, rows[1:], storage.IfNewer)) // the oldest one is late
	k := waiting(store, time.Second)
	if k.Wait(t.Context(), consistency.Token{span(1, 100, 2599)}) || k.Wait(t.Context(), consistency.Token{span(1, 600, 1599), span(1, 1600, 2599), span(1, 599, 599)}) {
		t.Error("rows are left out")
	}
	check.That(t, k.Wait(t.Context(), consistency.Token{mark(1, 3, 10), span(1, 600, 1599), span(1, 1600, 2599)}), "all rows are there")
}

// Reads that wait share their polls, which come after 5, 50, 200 and 200 ms. Each poll asks for
// each row once.
func TestReadsThatWaitPollTogether(t *testing.T) {
	store := &table{Store: oracle.New()}
	k := waiting(store, time.Minute)
	began := time.Now()
	var readers sync.WaitGroup
	for range 200 {
		readers.Go(func() {
			check.That(t, k.Wait(t.Context(), consistency.Token{mark(1, 2, 10), mark(1, 3, 10)}), "a read did not wait")
		})
	}
	for store.asked.Load() < 200+3 { // each read asks once by itself, and then all ask together
		time.Sleep(time.Millisecond)
	}
	store.apply(storage.Inverse, 2, storage.Following, 10)
	store.apply(storage.Inverse, 3, storage.Following, 10)
	readers.Wait()
	// Reads that began within a few ms are asked for together. In the end a poll comes every 200
	// ms, and at most one every 5 ms.
	polls, most := store.asked.Load()-200, 10+int64(time.Since(began)/(5*time.Millisecond))
	check.That(t, polls <= most && store.keys.Load()-400 <= 2*polls, "%d polls for %d rows in %s", polls, store.keys.Load()-400, time.Since(began))
}

// The number of reads that may wait is bounded. All others hear at once that they may be stale.
func TestPlacesToWaitAreBounded(t *testing.T) {
	store := &table{Store: oracle.New()}
	k := waiting(store, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	var ended atomic.Int64
	for i := range 300 {
		readers.Go(func() {
			k.Wait(ctx, consistency.Token{mark(1, storage.UserID(i+2), 10)})
			ended.Add(1)
		})
	}
	for ended.Load() < 300-256 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	readers.Wait()
	check.That(t, k.Wait(t.Context(), nil), "nothing is waited for")
	store.apply(storage.Inverse, 2, storage.Following, 10)
	check.That(t, k.Wait(t.Context(), consistency.Token{mark(1, 2, 10)}), "there is room again, and the row is there")
}

// A shard that does not answer ends only the waits for its own rows.
func TestDeadShardEndsItsOwnWaits(t *testing.T) {
	store := &table{Store: oracle.New()}
	k := waiting(store, time.Minute)
	fresh := make(chan string, 2)
	for _, to := range []storage.UserID{2, 3} {
		go func() { fresh <- fmt.Sprint(to, k.Wait(t.Context(), consistency.Token{mark(1, to, 10)})) }()
	}
	for store.asked.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
	store.dead.Store(3)
	check.Equal(t, "first", <-fresh, "3 false")
	store.apply(storage.Inverse, 2, storage.Following, 10)
	check.Equal(t, "then", <-fresh, "2 true")
	check.That(t, !k.Wait(t.Context(), consistency.Token{mark(1, 3, 1)}), "of a dead shard nothing is known")
}

// Before the wait ends, caches are notified of the rows that have arrived, and of no others.
func TestArrivedRowsAreReported(t *testing.T) {
	store := &table{Store: oracle.New()}
	var mu sync.Mutex
	var reported []storage.Row
	k := consistency.New(consistency.Tokens{Key: []byte("a key"), Store: store, MaxWait: time.Minute, Arrived: func(_ context.Context, what storage.Change) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, what.Rows...)
	}})
	store.apply(storage.Inverse, 2, storage.Following, 10)
	done := make(chan bool)
	go func() { done <- k.Wait(t.Context(), consistency.Token{mark(1, 2, 10), mark(1, 3, 10)}) }()
	for store.asked.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	store.apply(storage.Inverse, 3, storage.Following, 11)
	<-done
	var want []storage.Row
	for _, e := range []storage.Edge{{From: 1, To: 2, Type: storage.Following, UpdateTime: 10}, {From: 1, To: 3, Type: storage.Following, UpdateTime: 11}} {
		want = append(want, storage.Row{Side: storage.Forward, Edge: e}, storage.Row{Side: storage.Inverse, Edge: e})
	}
	check.Equal(t, "reported", reported, want)
}
