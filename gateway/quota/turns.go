package quota

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// patience is how long a request waits for its turn, or for room, until it is refused.
	patience = time.Second

	// longestTurn is several times what a costly request works. Who has its turn for longer is waiting itself, for a server
	// that does not answer, or has got hardly any of the processors.
	longestTurn = patience / 4
)

// turns let a few requests be worked on at a time that take milliseconds, in an order that is fair to those who send them, by
// what they cost: start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", 1996). Each request has a tag: the
// virtual time at which its work would begin if its party had its share of the processors all the time. The least tag is next. So who sends one
// request waits for hardly any of those whom another has sent before, and a party that is alone has all turns.
type turns struct {
	mu      sync.Mutex
	taken   int
	all     func() int       // how many there are at the time
	now     uint64           // virtual time: the tag of the request that got its turn last
	ends    map[Party]uint64 // the tags that the parties' next requests would have, unless now is later
	waiting []*waiter        // in the order in which they came, at most most
	most    int
	kind    string // of the requests, as metrics name it
}

// waiter is a request that waits for its turn.
type waiter struct {
	who  Party
	cost uint64 // 0: it has had a turn
	tag  uint64
	turn bool          // it has got its turn; otherwise another has taken its place
	done chan struct{} // closed when that is known
}

func newTurns(kind string, all func() int, most int) *turns {
	return &turns{kind: kind, all: all, most: max(1, most), ends: make(map[Party]uint64)}
}

// turn is what a request has, from its first turn to its end. It is no turn while the request waits for a server.
type turn struct {
	of   *turns
	who  Party
	tag  uint64
	cost uint64 // that has been charged

	mu    sync.Mutex
	held  bool
	over  bool
	since time.Time     // when it was got last
	used  time.Duration // before that
	late  *time.Timer   // ends it
}

// begin waits for the turn of a request of a party, for as long as requests wait. It returns nil if it does not come, or if too many with lesser tags wait.
// Otherwise the turn has to end.
func (t *turns) begin(ctx context.Context, who Party, cost uint64) *turn {
	w := t.enqueue(who, cost)
	if w == nil || !t.wait(ctx, w) {
		return nil
	}
	own := &turn{of: t, who: who, tag: w.tag, cost: cost, held: true, since: time.Now()}
	own.mu.Lock()
	defer own.mu.Unlock()
	own.late = time.AfterFunc(longestTurn, own.end)
	return own
}

// Wait implements [storage.Waiter]: another has the turn until the request goes on. Then it is the first of those that
// have come later.
func (o *turn) Wait(ctx context.Context) (goOn func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.release()
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.held || o.over {
			return
		}
		if o.held = o.of.again(ctx, o.who, o.tag); o.held {
			o.since = time.Now()
			o.late.Reset(max(0, longestTurn-o.used))
		}
	}
}

// release gives the turn away, if the request has it. The caller holds the lock.
func (o *turn) release() {
	if !o.held {
		return
	}
	o.held = false
	o.late.Stop()
	o.used += time.Since(o.since)
	o.of.end()
}

// charge adds to the cost.
func (o *turn) charge(cost uint64) {
	o.cost += cost
	o.of.charge(o.who, int64(cost))
}

// end ends it, if it has not ended: its party has spent the time that it has had, in microseconds, and not what it was to cost.
func (o *turn) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.over = true
	used := o.used
	if o.held {
		used += time.Since(o.since)
	}
	o.of.charge(o.who, used.Microseconds()-int64(o.cost))
	o.release()
}

// again waits for the next turn of a request that has had one; false if it does not come.
func (t *turns) again(ctx context.Context, who Party, tag uint64) bool {
	w := &waiter{who: who, tag: tag, done: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	t.serve()
	t.mu.Unlock()
	return t.wait(ctx, w)
}

// wait waits for a turn.
func (t *turns) wait(ctx context.Context, w *waiter) bool {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-w.done:
		return w.turn
	case <-ctx.Done():
	case <-late.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(t.waiting, w) {
		t.refuse(w)
	}
	return w.turn
}

// charge adds to what a party has spent. Its requests that wait come later by that, or earlier.
func (t *turns) charge(who Party, cost int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	later := func(tag uint64) uint64 { return uint64(max(0, int64(tag)+cost)) }
	t.ends[who] = later(max(t.now, t.ends[who]))
	for _, w := range t.waiting {
		if w.who == who && w.cost > 0 { // otherwise it has begun
			w.tag = later(w.tag)
		}
	}
}

// enqueue gives a request a place among those that wait, who may get their turn at once; nil if it is refused.
func (t *turns) enqueue(who Party, cost uint64) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &waiter{who: who, cost: cost, tag: max(t.now, t.ends[who]), done: make(chan struct{})}
	if len(t.waiting) >= t.most {
		last := slices.MaxFunc(t.waiting, byTag)
		if last.tag <= w.tag {
			return nil
		}
		t.refuse(last)
	}
	t.ends[who] = w.tag + cost
	t.waiting = append(t.waiting, w)
	t.serve()
	return w
}

// serve gives turns that are free to requests that wait. The caller holds the lock.
func (t *turns) serve() {
	for len(t.waiting) > 0 && t.taken < t.all() {
		next := slices.MinFunc(t.waiting, byTag) // the first of equal ones
		t.taken++
		t.now, next.turn = max(t.now, next.tag), true
		t.leave(next)
	}
}

func byTag(a, b *waiter) int { return cmp.Compare(a.tag, b.tag) }

// leave ends the waiting of a request. The caller holds the lock.
func (t *turns) leave(w *waiter) {
	at := slices.Index(t.waiting, w)
	t.waiting = slices.Delete(t.waiting, at, at+1)
	close(w.done)
}

// refuse ends the waiting of a request whose turn does not come: it costs its party nothing. The caller holds the lock.
func (t *turns) refuse(w *waiter) {
	t.ends[w.who] -= min(w.cost, t.ends[w.who])
	t.leave(w)
}

// end gives a turn to the next request, if there is one.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	if t.serve(); t.taken == 0 {
		t.now = 0
		clear(t.ends)
	}
	const many = 1 << 10
	if len(t.ends) > many {
		for who, end := range t.ends {
			if end <= t.now {
				delete(t.ends, who)
			}
		}
	}
}
