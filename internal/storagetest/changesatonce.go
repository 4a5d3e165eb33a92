package storagetest

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"kith/internal/check"
	"kith/storage"
)

// crowd is how many goroutines change edges at once.
const crowd = 16

func crowded(work func(worker int)) { atOnce(crowd, work) }

// changesAtOnce: what stays true when many callers change the same edges at once. Lost races are
// never reported to a caller.
type changesAtOnce struct{ *harness }

// A chronicle is what the store answered to writers.
type chronicle struct {
	mu   sync.Mutex
	rows map[rowKey][]storage.Edge
}

func newChronicle() *chronicle { return &chronicle{rows: map[rowKey][]storage.Edge{}} }

func (c *chronicle) add(side storage.Side, row storage.Edge) {
	c.mu.Lock()
	defer c.mu.Unlock()
	where := rowKey{side, row.Pair()}
	c.rows[where] = append(c.rows[where], row)
}

// addWritten notes forward rows, and also their other sides if these were written.
func (c *chronicle) addWritten(rows []storage.Written) {
	for _, row := range rows {
		c.add(row.Side, row.Edge)
		if row.Inverse {
			c.add(row.Side.Replica(), row.Edge)
		}
	}
}

// change changes edges of a user and notes the outcomes.
func (s changesAtOnce) change(t *testing.T, c *chronicle, from storage.UserID, batch []storage.EdgeChange) {
	results := s.store.ChangeEdges(t.Context(), storage.Forward, from, batch, withInverse)
	if !noErrorsBut(t, storage.ErrForbidden, results, len(batch)) { // some block others
		return
	}
	for _, result := range results {
		c.addWritten(result.Value.Written())
	}
}

// All workers follow and unfollow the same few users. Each row has another type than the row before
// it, and a later time.
func (s changesAtOnce) OnePairHasOneStateAfterAnother(t *testing.T) {
	users := idsOf(s.newUsers(t, 4))
	c := newChronicle()
	crowded(func(worker int) {
		for n := range 15 {
			from, to := users[worker%2], users[2+n%2]
			kind := []storage.EdgeType{storage.Following, storage.None}[(worker/2+n)%2]
			s.change(t, c, from, []storage.EdgeChange{change(to, kind, n)})
		}
	})
	for where, rows := range c.rows {
		if where.side == storage.Forward {
			wantAlternating(t, rows)
		}
	}
	s.wantNewest(t, c, users)
}

// All workers follow many users and unfollow many, each worker in an order of its own.
func (s changesAtOnce) ManyMayFollowMany(t *testing.T) {
	users := idsOf(s.newUsers(t, 24))
	c := newChronicle()
	crowded(func(worker int) {
		random := rand.New(rand.NewPCG(16, uint64(worker)))
		for n := range 6 {
			from := users[(worker/2+n)%len(users)]
			var batch []storage.EdgeChange
			for _, k := range random.Perm(len(users))[:16] {
				if users[k] != from {
					batch = append(batch, anyChange(random, users[k], random.IntN(20)))
				}
			}
			s.change(t, c, from, batch)
		}
	})
	for where, rows := range c.rows {
		if where.side == storage.Forward {
			wantAlternating(t, rows)
		}
	}
	s.wantNewest(t, c, users)
}

// Edges of the same users arrive as events, newer and older ones, on both sides. Half of the
// users have no counts at first.
func (s changesAtOnce) EventsMayArriveMeanwhile(t *testing.T) {
	users := idsOf(s.newUsers(t, 5))
	all := slices.Concat(users, s.ids(5))
	c := newChronicle()
	crowded(func(worker int) {
		random := rand.New(rand.NewPCG(17, uint64(worker)))
		for n := range 12 {
			from := users[random.IntN(len(users))]
			var batch []storage.EdgeChange
			var rows []storage.Edge
			for _, k := range random.Perm(len(all))[:4] {
				if all[k] != from {
					batch = append(batch, anyChange(random, all[k], 10*n))
					rows = append(rows, storage.Edge{From: from, To: all[k], Type: allTypes[random.IntN(len(allTypes))], UpdateTime: at(random.IntN(150))})
				}
			}
			if worker%2 == 0 {
				s.change(t, c, from, batch)
				continue
			}
			side := storage.Side(worker / 2 % 2)
			results := s.store.Apply(t.Context(), side, rows, storage.IfNewer)
			if !noErrors(t, results, len(rows)) {
				return
			}
			for _, result := range results {
				if result.Value.Changed {
					c.add(side, result.Value.Row)
					c.addWritten(result.Value.Also)
				}
			}
		}
	})
	s.wantNewest(t, c, all)
}

// anyChange is a follow, a block, a request for a follow, or the end of one.
func anyChange(random *rand.Rand, to storage.UserID, n int) storage.EdgeChange {
	return storage.EdgeChange{To: to, Type: allTypes[random.IntN(len(allTypes))], Ends: allTypes[random.IntN(len(allTypes))], At: at(n)}
}

// A peer that has no counts yet gets them from the first writer. There is no row to lock before
// that.
func (s changesAtOnce) NewPeersAreCountedOnce(t *testing.T) {
	for n := range 40 {
		from, to := s.newUsers(t, 1)[0].ID, s.id()
		for !s.local(t, from, to) {
			to = s.id()
		}
		c := newChronicle()
		atOnce(4, func(worker int) {
			if worker == 0 {
				s.change(t, c, from, []storage.EdgeChange{change(to, storage.Following, n)})
				return
			}
			event := storage.Edge{From: from, To: to, Type: storage.Following, UpdateTime: at(n + worker - 2)}
			results := s.store.Apply(t.Context(), storage.Inverse, []storage.Edge{event}, storage.IfNewer)
			if noErrors(t, results, 1) && results[0].Value.Changed {
				c.add(storage.Inverse, event)
			}
		})
		s.wantNewest(t, c, []storage.UserID{from, to})
	}
}

func (s changesAtOnce) TheLimitHolds(t *testing.T) {
	const limit = 10
	from, to := s.newUsers(t, 1)[0].ID, s.ids(40)
	crowded(func(worker int) {
		random := rand.New(rand.NewPCG(18, uint64(worker)))
		for range 6 {
			var batch []storage.EdgeChange
			for _, k := range random.Perm(len(to))[:8] {
				kind := storage.Following
				if random.IntN(4) == 0 {
					kind = storage.None
				}
				batch = append(batch, change(to[k], kind, 1))
			}
			for _, result := range s.store.ChangeEdges(t.Context(), storage.Forward, from, batch, storage.ChangeOptions{MaxFollowing: limit}) {
				check.That(t, result.Err == nil || errors.Is(result.Err, storage.ErrLimitReached), "worker %d: %v", worker, result.Err)
			}
			got := storage.CountLookups.Read(t.Context(), s.store, from)[0]
			check.That(t, got.Err == nil && got.Value.Following <= limit, "worker %d: %+v, the limit is %d", worker, got, limit)
		}
	})
	list := found(t, storage.NeighbourLookups[storage.Forward].Read(t.Context(), s.store, from), 1)[0]
	check.That(t, len(list) <= limit, "follows %d, the limit is %d", len(list), limit)
	wantEqual(t, "count", s.countsOf(t, from).Following, int64(len(list)))
	// There are more users to follow than allowed. If nobody unfollows, the limit is reached.
	for _, result := range s.store.ChangeEdges(t.Context(), storage.Forward, from, changeAll(to, storage.Following, 9), storage.ChangeOptions{MaxFollowing: limit}) {
		check.That(t, result.Err == nil || errors.Is(result.Err, storage.ErrLimitReached), "%v", result.Err)
	}
	wantEqual(t, "count at the end", s.countsOf(t, from).Following, limit)
}

// Each block is a call of its own, which an engine may write together with others.
func (s changesAtOnce) TheLimitOfBlocksHolds(t *testing.T) {
	const limit = 10
	from, to := s.newUsers(t, 1)[0].ID, s.ids(64)
	var blocked atomic.Int64
	crowded(func(worker int) {
		for i := worker; i < len(to); i += crowd {
			switch r := s.store.ChangeEdges(t.Context(), storage.Forward, from, []storage.EdgeChange{block(to[i], 1)}, storage.ChangeOptions{MaxBlocks: limit})[0]; {
			case r.Err == nil:
				blocked.Add(1)
			case !errors.Is(r.Err, storage.ErrLimitReached):
				t.Errorf("worker %d: %v", worker, r.Err)
			}
		}
	})
	wantEqual(t, "blocks", blocked.Load(), int64(limit))
}

// wantAlternating checks that each row of a pair, in the order of their times, has another time
// and another type than the row before it.
func wantAlternating(t *testing.T, rows []storage.Edge) {
	t.Helper()
	slices.SortFunc(rows, func(a, b storage.Edge) int { return cmp.Compare(a.UpdateTime, b.UpdateTime) })
	for i := 1; i < len(rows); i++ {
		a, b := rows[i-1], rows[i]
		check.That(t, a.UpdateTime != b.UpdateTime && a.Type != b.Type, "%+v was written after %+v", b, a)
	}
}

// wantNewest checks that the newest rows returned are those in the tables, and that the counts
// are the numbers of live rows.
func (s changesAtOnce) wantNewest(t *testing.T, c *chronicle, users []storage.UserID) {
	t.Helper()
	eachFollowSide(t, func(t *testing.T, side storage.Side) {
		newest := map[storage.Pair]storage.Edge{}
		for where, rows := range c.rows {
			for _, row := range rows {
				if where.side == side && row.UpdateTime > newest[where.pair].UpdateTime {
					newest[where.pair] = row
				}
			}
		}
		s.wantRows(t, side, users, newest)
	})
}
