package sqlstore

import (
	"context"
	"maps"
	"sync"
	"time"
)

// packQueue has lists that readers have found unpacked, or with many changes beside them,
// packed in the background: one at a time, so that this never takes more than one connection,
// and each at most once in packingSizes.again, whatever came of it. So a list that somebody else
// is packing, whose count is wrong, or whose shard refuses to be written, costs little.
// Its zero value is ready.
type packQueue struct {
	mu      sync.Mutex
	waiting []packedName             // in the order in which they came
	rests   map[packedName]time.Time // until when a list is not taken again; zero while it waits or is worked on
	swept   time.Time                // when rests was last rid of what is over
	running bool
	closed  bool
	end     context.CancelFunc // of what is running
	done    sync.WaitGroup
}

const (
	// packsWaiting is how many lists may wait. Of more, somebody will ask again.
	packsWaiting = 64
	// packTime bounds the work on one list.
	packTime = 10 * time.Minute
)

// packSoon has a list packed, unless that is too soon or there are too many.
func (s *Store) packSoon(list packedName) {
	q := &s.packs
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) == packsWaiting || q.isResting(list, time.Now()) {
		return
	}
	if q.rests == nil {
		q.rests = make(map[packedName]time.Time)
	}
	q.rests[list] = time.Time{}
	q.waiting = append(q.waiting, list)
	if !q.running {
		q.running = true
		ctx, cancel := context.WithCancel(context.Background())
		q.end = cancel
		q.done.Go(func() {
			defer cancel()
			s.packWaiting(ctx)
		})
	}
}

func (q *packQueue) isResting(list packedName, now time.Time) bool {
	until, known := q.rests[list]
	return known && (until.IsZero() || now.Before(until))
}

// packWaiting packs until nothing waits any more.
func (s *Store) packWaiting(ctx context.Context) {
	q := &s.packs
	for list, ok := q.next(); ok; list, ok = q.next() {
		limited, cancel := context.WithTimeout(ctx, packTime)
		// Whoever looks at statements has heard of an error. Until it works, rows are read.
		_ = s.Pack(limited, list.side, list.owner)
		cancel()
		q.rest(list, s.packing.again)
	}
}

func (q *packQueue) next() (list packedName, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) == 0 {
		q.running = false
		return list, false
	}
	list, q.waiting = q.waiting[0], q.waiting[1:]
	return list, true
}

// rest leaves a list alone for a while.
func (q *packQueue) rest(list packedName, long time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.rests[list] = now.Add(long)
	if now.Sub(q.swept) >= long {
		q.swept = now
		maps.DeleteFunc(q.rests, func(_ packedName, until time.Time) bool { return !until.IsZero() && !now.Before(until) })
	}
}

// close breaks off what is running, waits for its end, and takes nothing more.
func (q *packQueue) close() {
	q.mu.Lock()
	q.closed = true
	if q.end != nil {
		q.end()
	}
	q.mu.Unlock()
	q.done.Wait()
}
