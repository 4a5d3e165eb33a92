package packed

import (
	"context"
	"maps"
	"sync"
	"time"

	"kith/storage/sleep"
)

// Queue works in the background on lists that readers have found unpacked, or with many changes beside them. It takes a few at
// a time, so that this never takes more than one connection. Those that its work names rest: they are not taken
// again for a while, because another packer has them, their counts are wrong, or their shard refuses writes.
type Queue struct {
	Work func(ctx context.Context, lists []Name) (rest []Name)
	Most int // lists that may wait. Further ones will be asked for again.
	Size int // lists that are worked on at once
	// Rest is how long lists rest.
	Rest func() time.Duration
	// Idle is how long the queue pauses after some work, as a multiple of the time that the work has taken.
	Idle func() int

	mu      sync.Mutex
	waiting []Name             // in the order in which they came
	rests   map[Name]time.Time // until when a list is not taken again; zero while it waits or is worked on
	swept   time.Time          // when entries that are over were last removed from rests, all of which that looks at
	running bool
	closed  bool
	end     context.CancelFunc // of what is running
	done    sync.WaitGroup
}

// Soon has a list worked on, unless that is too soon or there are too many.
func (q *Queue) Soon(list Name) {
	q.mu.Lock()
	defer q.mu.Unlock()
	until, known := q.rests[list]
	if q.closed || len(q.waiting) == q.Most || known && (until.IsZero() || time.Now().Before(until)) {
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
			q.run(ctx)
		})
	}
}

// run works until nothing waits any more.
func (q *Queue) run(ctx context.Context) {
	for lists := q.next(); len(lists) > 0; lists = q.next() {
		began := time.Now()
		rest := q.Work(ctx, lists)
		q.ended(lists, rest)
		_ = sleep.For(ctx, time.Duration(q.Idle())*time.Since(began))
	}
}

func (q *Queue) next() []Name {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting) == 0 {
		q.running = false
		return nil
	}
	n := min(q.Size, len(q.waiting))
	lists := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return lists
}

// ended leaves some of the lists that were worked on alone for a while.
func (q *Queue) ended(lists, rest []Name) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, list := range lists {
		delete(q.rests, list)
	}
	q.leave(rest, q.Rest())
}

func (q *Queue) leave(lists []Name, long time.Duration) {
	now := time.Now()
	for _, list := range lists {
		q.rests[list] = now.Add(long)
	}
	if now.Sub(q.swept) >= long {
		q.swept = now
		maps.DeleteFunc(q.rests, func(_ Name, until time.Time) bool { return !until.IsZero() && !now.Before(until) })
	}
}

// IsIdle reports that nothing is worked on, nor waits for it.
func (q *Queue) IsIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.running
}

// Close cancels what is running, waits for its end, and takes nothing more.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	if q.end != nil {
		q.end()
	}
	q.mu.Unlock()
	q.done.Wait()
}

// packTime bounds the work on one long list.
const packTime = 10 * time.Minute

// packWaiting packs lists that wait. Each rests afterwards, whatever the outcome.
func (l *Lists) packWaiting(ctx context.Context, lists []Name) (rest []Name) {
	for _, list := range lists {
		limited, cancel := context.WithTimeout(ctx, packTime)
		// Config.OnStatement has been called with the error. Until packing works, rows are read.
		_ = l.Pack(limited, list.Side, list.Owner)
		cancel()
	}
	return lists
}

// Idle reports, for tests, that nothing is packed in the background, nor waits for it.
func (l *Lists) Idle() bool { return l.queue.IsIdle() }

// Rest lets tests say how long a list is not packed in the background.
func (l *Lists) Rest(list Name, long time.Duration) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.queue.leave([]Name{list}, long)
}
