package quota

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// patience is how long a request waits for its turn, or for room, until it is refused.
const patience = time.Second

// turns let a few requests be worked on at a time that take milliseconds, in an order that is fair to those who send them, by
// what they cost: start-time fair queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", 1996). Each request has a tag: the
// virtual time at which its work would begin if its party had its share of the processors all the time. The least tag is next. So who sends one
// request waits for hardly any of those whom another has sent before, and a party that is alone has all turns.
type turns struct {
	mu      sync.Mutex
	free    int
	all     int
	now     uint64           // virtual time: the tag of the request that got its turn last
	ends    map[Party]uint64 // the tags that the parties' next requests would have, unless now is later
	waiting []*waiter        // in the order in which they came, at most most
	most    int
}

// waiter is a request that waits for its turn.
type waiter struct {
	who  Party
	cost uint64
	tag  uint64
	turn bool          // it has got its turn; otherwise another has taken its place
	done chan struct{} // closed when that is known
}

func newTurns(n, most int) *turns {
	return &turns{free: n, all: n, most: max(1, most), ends: make(map[Party]uint64)}
}

// begin waits for the turn of a request of a party, for as long as requests wait. It returns false if it does not come, or if too many with lesser tags wait.
// Otherwise the turn has to end.
func (t *turns) begin(ctx context.Context, who Party, cost uint64) bool {
	w, ok := t.enqueue(who, cost)
	if w == nil {
		return ok
	}
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

// charge adds to the cost of a request that has its turn.
func (t *turns) charge(who Party, cost uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends[who] = max(t.now, t.ends[who]) + cost
}

// enqueue gives a request its turn at once, or a place among those that wait; neither if it is refused.
func (t *turns) enqueue(who Party, cost uint64) (w *waiter, turn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tag := max(t.now, t.ends[who])
	if t.free == 0 && len(t.waiting) >= t.most {
		last := slices.MaxFunc(t.waiting, byTag)
		if last.tag <= tag {
			return nil, false
		}
		t.refuse(last)
	}
	t.ends[who] = tag + cost
	if t.free > 0 {
		t.free--
		t.now = tag
		return nil, true
	}
	w = &waiter{who: who, cost: cost, tag: tag, done: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	return w, false
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

// end gives a turn to the next request.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) > 0 {
		next := slices.MinFunc(t.waiting, byTag) // the first of equal ones
		t.now, next.turn = next.tag, true
		t.leave(next)
	} else if t.free++; t.free == t.all {
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
