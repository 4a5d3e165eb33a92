package sim

import (
	"context"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// What docs/how-to/grow.md says of moves.
const (
	mostClosed  = 700 * time.Millisecond // how long writes wait for the last rows
	untilKnown  = 150 * time.Millisecond // and how much longer, until all gateways know where to read
	untilRescue = 3 * time.Second        // after what time a write takes buckets back of a mover that has died
	mostWait    = 10 * time.Second       // how long a write waits
)

// bucketsOf are those from one user's to another's.
func bucketsOf(a, b storage.UserID) storage.BucketRange {
	first, last := a.Bucket(), b.Bucket()
	return storage.BucketRange{First: min(first, last), Last: max(first, last)}
}

// await waits until nothing of some users moves, or is in a log first; of all, if there are none.
func (w *world) await(ctx context.Context, users []storage.UserID) (err error) {
	waits := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, id := range users {
			if w.closed != nil && w.closed.Contains(id.Bucket()) || w.history.isLogging(w.shards.ShardOf(id)) {
				return true
			}
		}
		return len(users) == 0 && (w.closed != nil || w.history.isLogging(anyShard))
	}
	ctx, cancel := context.WithTimeout(ctx, mostWait)
	defer cancel()
	for err == nil && waits() {
		err = sleep.For(ctx, 2*time.Millisecond)
	}
	return err
}

// target is the shard to which buckets move; it is added, unless it was.
func (w *world) target(s step) int {
	n := w.shards.Shards()
	if s.only < n {
		return s.only
	}
	w.shards.Move(storage.BucketRange{First: 0, Last: -1}, n)
	close(w.grown[n])
	return n
}

func (h *handle) Grown(than int) <-chan struct{} {
	if than >= maxShards {
		return nil
	}
	return h.of.grown[than]
}

// move moves the buckets from one user's to another's: nothing is written to them for a while, and then all rows are elsewhere at one
// moment. If that takes too long, or a database is away, they are taken back.
func (w *world) move(s step) {
	w.mu.Lock()
	again := w.moving
	w.moving = true
	w.mu.Unlock()
	if again {
		return
	}
	ended := func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.moving = false
	}
	to := w.target(s)
	buckets := bucketsOf(s.user, s.other)
	for !w.alone(func() { w.closed = &buckets }) { // it needs the lock that each transaction has
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(min(s.lasts, mostClosed))
	w.mu.Lock()
	goesOn := s.lasts < mostClosed && !time.Now().Before(w.storeAway)
	w.mu.Unlock()
	if !goesOn {
		time.Sleep(untilRescue)
		w.open()
		ended()
		return
	}
	removed := w.shards.Move(bucketsOf(s.user, s.other), to)
	w.note("%s: user %d is on shard %d", s, s.user, w.shards.ShardOf(s.user))
	time.Sleep(untilKnown)
	w.open()
	time.AfterFunc(20*s.lasts, func() { removed(); ended() })
}

// alone changes what may be written; false if something is being executed.
func (w *world) alone(change func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.executing > 0 {
		return false
	}
	change()
	return true
}

func (w *world) open() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.opened = nil, time.Now()
}
