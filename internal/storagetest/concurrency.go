package storagetest

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// workers is how many goroutines write at once.
const workers = 8

// concurrency: what stays true when many write at once.
type concurrency struct{ *harness }

// Every event of 20 users is applied twice, by two workers. Each worker has an order and batches
// of its own. Half of the users exist.
func (s concurrency) ApplyKeepsRowsAndCountsExact(t *testing.T, side storage.Side) {
	users := slices.Concat(idsOf(s.newUsers(t, 10)), s.ids(10))
	random := rand.New(rand.NewPCG(20, uint64(side)))
	events := someHistory(random, side, users, 600)
	newest := newestOf(events)

	var mu sync.Mutex
	written := map[storage.Edge]int{}
	together(func(worker int) {
		mine := sharesOf(events, worker)
		for len(mine) > 0 {
			batch := mine[:min(len(mine), 1+len(mine)*7%16)]
			mine = mine[len(batch):]
			results := s.store.Apply(t.Context(), side, batch, storage.IfNewer)
			if !noErrors(t, results, len(batch)) {
				return
			}
			mu.Lock()
			for i, result := range results {
				if result.Value.Changed {
					written[batch[i]]++
				}
			}
			mu.Unlock()
		}
	})

	for event, times := range written {
		check.That(t, times <= 1, "%+v was written %d times", event, times)
	}
	s.wantRows(t, side, users, newest)
}

func (s concurrency) IfAbsentIsWrittenOnce(t *testing.T, side storage.Side) {
	users := s.ids(6)
	var pairs []storage.Pair
	for _, owner := range users {
		for _, peer := range users {
			pairs = append(pairs, side.Pair(owner, peer))
		}
	}
	var mu sync.Mutex
	winners := make([][]storage.Edge, len(pairs))
	rows := make([][]storage.Edge, len(pairs))
	together(func(worker int) {
		batch := make([]storage.Edge, len(pairs))
		for i, p := range pairs {
			batch[i] = storage.Edge{From: p.From, To: p.To, Type: storage.Following, UpdateTime: at(worker)}
		}
		results := s.store.Apply(t.Context(), side, batch, storage.IfAbsent)
		if !noErrors(t, results, len(batch)) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for i, result := range results {
			rows[i] = append(rows[i], result.Value.Row)
			if result.Value.Changed {
				winners[i] = append(winners[i], batch[i])
			}
		}
	})
	if t.Failed() {
		return
	}
	newest := map[storage.Pair]storage.Edge{}
	for i, p := range pairs {
		must.That(t, len(winners[i]) == 1, "%v was written by %v, want one of them", p, winners[i])
		newest[p] = winners[i][0]
		for _, row := range rows[i] {
			wantEqual(t, "row reported", row, winners[i][0])
		}
	}
	s.wantRows(t, side, users, newest)
}

func (s concurrency) OneHandleGoesToOneUser(t *testing.T) {
	for range 5 {
		users := make([]storage.User, workers)
		for i, id := range s.ids(workers) {
			users[i] = person(id)
			users[i].Handle = users[0].Handle
		}
		results := make([]storage.Result[bool], workers)
		together(func(worker int) {
			copy(results[worker:worker+1], s.store.CreateUsers(t.Context(), users[worker:worker+1]))
		})
		s.wantOneWinner(t, users, results)
	}
}

func (s concurrency) OneUserIsMadeOnce(t *testing.T) {
	users := make([]storage.User, 20)
	for i, id := range s.ids(len(users)) {
		users[i] = person(id)
	}
	var mu sync.Mutex
	made := make([]int, len(users))
	together(func(worker int) {
		order := rand.New(rand.NewPCG(3, uint64(worker))).Perm(len(users))
		batch := make([]storage.User, len(users))
		for i, k := range order {
			batch[i] = users[k]
		}
		results := s.store.CreateUsers(t.Context(), batch)
		if !noErrors(t, results, len(batch)) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for i, result := range results {
			if result.Value {
				made[order[i]]++
			}
		}
	})
	for i, times := range made {
		check.That(t, times == 1, "user %d was made %d times", users[i].ID, times)
	}
	wantList(t, "users", found(t, storage.UserLookups.Read(t.Context(), s.store, idsOf(users)...), len(users)), users)
	wantList(t, "handles", found(t, storage.HandleLookups.Read(t.Context(), s.store, handlesOf(users)...), len(users)), idsOf(users))
}

// Readers see lists that are in order, whatever is written at the same time.
func (s concurrency) ReadersSeeListsInOrder(t *testing.T, side storage.Side) {
	users := s.ids(5)
	events := someHistory(rand.New(rand.NewPCG(7, uint64(side))), side, users, 400)
	together(func(worker int) {
		if worker%2 == 0 {
			for batch := range slices.Chunk(sharesOf(events, worker), 5) {
				noErrors(t, s.store.Apply(t.Context(), side, batch, storage.IfNewer), len(batch))
			}
			return
		}
		for range 20 {
			s.readInOrder(t, side, users)
		}
	})
}

// readInOrder reads each list in every way and checks its order.
func (s concurrency) readInOrder(t *testing.T, side storage.Side, owners []storage.UserID) {
	queries := storage.Each(owners, func(owner storage.UserID) storage.PageQuery { return storage.PageQuery{Owner: owner, Limit: 3} })
	pages := storage.PageLookups[side].Read(t.Context(), s.store, queries...)
	peers := storage.NeighbourLookups[side].Read(t.Context(), s.store, owners...)
	if !noErrors(t, pages, len(owners)) || !noErrors(t, peers, len(owners)) {
		return
	}
	for i := range owners {
		newest := slices.IsSortedFunc(pages[i].Value, func(a, b storage.Edge) int {
			p, q := side.Position(a), side.Position(b)
			return cmp.Or(cmp.Compare(q.UpdateTime, p.UpdateTime), cmp.Compare(q.Peer, p.Peer))
		})
		check.That(t, newest && slices.IsSorted(peers[i].Value), "out of order: %v or %v", pages[i].Value, peers[i].Value)
	}
}

// wantRows checks that exactly these edges exist between users, and that the counts are the
// numbers of live edges.
func (h *harness) wantRows(t *testing.T, side storage.Side, users []storage.UserID, rows map[storage.Pair]storage.Edge) {
	t.Helper()
	var pairs []storage.Pair
	live := map[storage.UserID]int64{}
	for _, owner := range users {
		for _, peer := range users {
			pair := side.Pair(owner, peer)
			pairs = append(pairs, pair)
			if rows[pair].Type == storage.Following {
				live[owner]++
			}
		}
	}
	results := storage.EdgeLookups[side].Read(t.Context(), h.store, pairs...)
	answers(t, results, len(pairs))
	for i, pair := range pairs {
		want, there := rows[pair]
		check.That(t, results[i].Found == there && results[i].Value == want, "%v: got %+v, want %+v", pair, results[i], want)
	}
	for i, got := range answers(t, storage.CountLookups.Read(t.Context(), h.store, users...), len(users)) {
		if side.Truth() == storage.Forward {
			wantEqual(t, "count", got.Of(side), live[users[i]])
		}
	}
}

// someHistory makes events of each of the users towards four of them, the oldest first. There are
// few pairs, so that many events concern the same one. No two events have the same time.
func someHistory(random *rand.Rand, side storage.Side, users []storage.UserID, n int) []storage.Edge {
	events := make([]storage.Edge, n)
	for i := range events {
		owner, peer := users[i%len(users)], users[random.IntN(4)]
		events[i] = edge(side, owner, peer, allTypes[random.IntN(len(allTypes))], at(i))
	}
	return events
}

func newestOf(events []storage.Edge) map[storage.Pair]storage.Edge {
	newest := map[storage.Pair]storage.Edge{}
	for _, e := range events {
		if old, ok := newest[e.Pair()]; !ok || e.UpdateTime > old.UpdateTime {
			newest[e.Pair()] = e
		}
	}
	return newest
}

// sharesOf is a worker's part of the events in an order of its own: the higher the worker's number,
// the less the order follows time. Each event is in two shares.
func sharesOf(events []storage.Edge, worker int) []storage.Edge {
	var mine []storage.Edge
	for i, e := range events {
		first := i % workers
		second := (first + 1 + i/workers%(workers-1)) % workers
		if worker == first || worker == second {
			mine = append(mine, e)
		}
	}
	random := rand.New(rand.NewPCG(11, uint64(worker)))
	for part := range slices.Chunk(mine, 8<<worker) {
		random.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	return mine
}

// together runs all workers, which start at once, and waits for them.
func together(work func(worker int)) { atOnce(workers, work) }

func atOnce(workers int, work func(worker int)) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for worker := range workers {
		group.Go(func() {
			<-start
			work(worker)
		})
	}
	close(start)
	group.Wait()
}

// noErrors is answers for goroutines, which must not end the test.
func noErrors[V any](t *testing.T, results []storage.Result[V], n int) bool {
	return noErrorsBut(t, nil, results, n)
}

// noErrorsBut is noErrors, but one kind of error is allowed.
func noErrorsBut[V any](t *testing.T, may error, results []storage.Result[V], n int) bool {
	if len(results) != n {
		t.Errorf("%d results for %d keys", len(results), n)
		return false
	}
	for i, result := range results {
		if result.Err != nil && (may == nil || !errors.Is(result.Err, may)) {
			t.Errorf("key %d of %d: %v", i, n, result.Err)
			return false
		}
	}
	return true
}
