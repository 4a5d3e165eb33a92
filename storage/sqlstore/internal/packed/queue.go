package packed

import (
	"context"
	"maps"
	"sync"
	"time"
)

// queue packs lists in the background that readers have found unpacked, or with many changes beside
// them. It packs one at a time, so that this never takes more than one connection, and each list at
// most once in Sizes.Again, whatever the outcome. So a list that another packer has, whose count is
// wrong, or whose shard refuses writes, costs little. Its zero value is ready.
type queue struct {
	mu      sync.Mutex
	waiting []Name             // in the order in which they came
	rests   map[Name]time.Time // until when a list is not taken again; zero while it waits or is worked on
	swept   time.Time          // when entries that are over were last removed from rests
	running bool
	closed  bool
	end     context.CancelFunc // of what is running
	done    sync.WaitGroup
}

const (
	// packsWaiting is how many lists may wait. Further ones will be asked for again.
	packsWaiting = 64
	// packTime bounds the work on one list.
	packTime = 10 * time.Minute
)

// packSoon has a list packed, unless that is too soon or there are too many.
func (l *Lists) packSoon(list Name) {
	q := &l.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) == packsWaiting || q.isResting(list, time.Now()) {
		return
	}
	if q.rests == nil {
		q.rests = make(map[Name]time.Time)
	}
	q.rests[list] = time.Time{}
	q.waiting = append(q.waiting, list)
	if !q.running {
		q.running = true
		ctx, cancel := context.WithCancel(context.Background())
		q.end = cancel
		q.done.Go(func() {
			defer cancel()
			l.packWaiting(ctx)
		})
	}
}

func (q *queue) isResting(list Name, now time.Time) bool {
	until, known := q.rests[list]
	return known && (until.IsZero() || now.Before(until))
}

// packWaiting packs until nothing waits any more.
func (l *Lists) packWaiting(ctx context.Context) {
	q := &l.queue
	for list, ok := q.next(); ok; list, ok = q.next() {
		limited, cancel := context.WithTimeout(ctx, packTime)
		// Config.OnStatement has been called with the error. Until packing works, rows are read.
		_ = l.Pack(limited, list.Side, list.Owner)
		cancel()
		q.rest(list, l.Sizes.Again)
	}
}

func (q *queue) next() (list Name, ok bool) {
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
func (q *queue) rest(list Name, long time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.rests[list] = now.Add(long)
	if now.Sub(q.swept) >= long {
		q.swept = now
		maps.DeleteFunc(q.rests, func(_ Name, until time.Time) bool { return !until.IsZero() && !now.Before(until) })
	}
}

// Idle reports, for tests, that nothing is packed in the background, nor waits for it.
func (l *Lists) Idle() bool {
	q := &l.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.running
}

// Rest lets tests say how long a list is not packed in the background.
func (l *Lists) Rest(list Name, long time.Duration) { l.queue.rest(list, long) }

// close cancels what is running, waits for its end, and takes nothing more.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	if q.end != nil {
		q.end()
	}
	q.mu.Unlock()
	q.done.Wait()
}
