package quota

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// patience is how long a request waits for its turn, or for room, until it is refused.
	patience = time.Second

	// longestTurn is several times the work of a costly request, and longestCheap that of a cheap one. A request that has its turn for longer is
	// waiting itself, for a server that does not answer or for another request, or has hardly got a processor.
	longestTurn  = patience / 4
	longestCheap = patience / 20
)

// turns let a few requests at a time be worked on, and share the processors fairly among the parties that send them: start-time fair
// queueing (Goyal, Vin and Cheng, "Start-time Fair Queuing", 1996). Each request has a tag: the virtual time at which its work would begin
// if its party had its share of the processors all the time. The request with the least tag is next. So a party that sends one request
// hardly waits for the many that another has sent before, and a party that is alone has all turns.
//
// A cheap request of a party that has hardly asked for anything needs no turn: half of the processors are kept free for such requests.
// Requests without a party, as those of a backend that acts for many users, are never charged.
type turns struct {
	mu      sync.Mutex
	half    int // of the processors
	most    int // costly requests may wait
	taken   int
	heavy   int                          // of these, by costly requests
	free    time.Time                    // when a request came that needed no turn
	begun   int                          // requests that have not ended
	now     uint64                       // virtual time, in microseconds: the latest tag of a request that has got its turn, moved on by goOn
	clock   uint64                       // pays back what parties have asked for, in microseconds, see goOn
	at      time.Time                    // until when goOn has moved both
	spent   *simplelru.LRU[Party, spent] // by those who have sent requests
	waiting []*waiter                    // in the order in which they came
	costly  int                          // of these
	looking bool                         // turns are looked for again soon
}

// spent is what a party has had.
type spent struct {
	end  uint64 // the tag of its next request, unless now is later
	free uint64 // when the clock gets there, all that it has asked for is paid back
}

const (
	// freeAtOnce is how many microseconds a party may have asked for until its cheap requests take turns, too. mostOwed is how many are
	// paid back at most, by a party that asks for nothing more.
	freeAtOnce = 5_000
	mostOwed   = 100_000
)

// kind says which turns a request takes.
type kind int

const (
	free   kind = iota // none
	cheap              // half of the processors, with costly ones; all if there have been no free ones for a while
	costly             // takes milliseconds: the same, but half at most
)

// othersFor is how long a free request keeps half of the processors for more.
const othersFor = 20 * time.Millisecond

// waiter is a request that waits for its turn.
type waiter struct {
	kind
	who   Party
	cost  uint64
	tag   uint64
	begun bool          // it has had a turn
	turn  bool          // it has got its turn; if not, it is refused
	done  chan struct{} // closed when that is known
}

func newTurns(half, most int) *turns {
	parties, err := simplelru.NewLRU[Party, spent](remembered, nil)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &turns{half: half, most: max(1, most), spent: parties}
}

// turn is what a request has, from its first turn to its end. It is no turn while the request waits for a server.
type turn struct {
	kind
	of   *turns
	who  Party
	tag  uint64
	cost uint64 // that has been charged

	mu    sync.Mutex
	held  bool
	over  bool
	waits int           // for servers, at the moment
	since time.Time     // when it was got last, or the request began that needs none
	used  time.Duration // before that
	late  *time.Timer   // ends it
}

// begin waits until it is the turn of a request of a party, but no longer than its [patience]. It returns nil if the turn has not come by then, or if too many
// requests with lesser tags wait already. Otherwise the caller has to end the turn.
func (t *turns) begin(ctx context.Context, who Party, k kind, cost uint64) *turn {
	w := t.enqueue(who, k, cost)
	if w == nil || w.done != nil && !t.wait(ctx, w) {
		return nil
	}
	own := &turn{kind: w.kind, of: t, who: who, tag: w.tag, cost: cost, since: time.Now()}
	if w.kind == free {
		return own
	}
	own.held = true
	own.mu.Lock()
	defer own.mu.Unlock()
	own.late = time.AfterFunc(own.longest(), own.end)
	return own
}

func (o *turn) longest() time.Duration {
	if o.kind == costly {
		return longestTurn
	}
	return longestCheap
}

// Wait is for [storage.WithWait]: another has the turn until the request has what it waits for, from all servers. Then a cheap request
// goes on at once, and a costly one comes before those that were sent later.
func (o *turn) Wait(ctx context.Context) (goOn func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits++
	o.release()
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.waits--; o.waits > 0 || o.held || o.over {
			return
		}
		if o.held = o.of.again(ctx, o); o.held {
			o.since = time.Now()
			o.late.Reset(max(0, o.longest()-o.used))
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
	o.of.release(o.kind)
}

// charge adds to the cost.
func (o *turn) charge(cost uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cost += cost
	o.of.charge(o.who, int64(cost))
}

// dearer bounds what a request without a turn is charged, in multiples of its cost: it has waited for the rest of its time, for a processor or a server.
const dearer = 4

// end ends the turn, if it has not ended. From then on its party has spent the time that was taken, not the cost that was announced.
func (o *turn) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.over = true
	o.release()
	used := uint64(o.used.Microseconds())
	if o.kind == free {
		used = min(uint64(time.Since(o.since).Microseconds()), dearer*o.cost)
	}
	o.of.end(o.who, used, o.cost)
}

// again is the next turn of a request that has had one; false if it does not come.
func (t *turns) again(ctx context.Context, o *turn) bool {
	t.mu.Lock()
	w := &waiter{kind: o.kind, who: o.who, tag: o.tag, begun: true, done: make(chan struct{})}
	if o.kind == cheap {
		t.take(w)
		t.mu.Unlock()
		return true
	}
	t.join(w)
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
	t.spend(who, cost, 0)
}

// spend is charge for a caller that holds the lock. Only requests from a tag on come later, or earlier.
func (t *turns) spend(who Party, cost int64, from uint64) {
	t.account(who, cost)
	for _, w := range t.waiting {
		if w.who == who && !w.begun && w.tag >= from {
			w.tag = later(w.tag, cost)
		}
	}
}

// account is spend without those that wait.
func (t *turns) account(who Party, cost int64) {
	if had := t.had(who); who != (Party{}) {
		t.spent.Add(who, spent{later(had.end, cost), min(later(had.free, cost), t.clock+mostOwed)})
	}
}

func later(tag uint64, cost int64) uint64 { return uint64(max(0, int64(tag)+cost)) }

// had is what a party has had until now.
func (t *turns) had(who Party) spent {
	had, _ := t.spent.Get(who)
	return spent{max(t.now, had.end), max(t.clock, had.free)}
}

// enqueue gives a request its turn, and otherwise a place among those that wait; nil if it is refused.
func (t *turns) enqueue(who Party, k kind, cost uint64) *waiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.goOn()
	had := t.had(who)
	w := &waiter{kind: k, who: who, cost: cost, tag: had.end}
	if k == cheap && had.free <= t.clock+freeAtOnce {
		w.kind, t.free = free, time.Now()
	}
	if k == costly && t.costly >= t.most {
		last := slices.MaxFunc(t.waiting, func(a, b *waiter) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.tag, b.tag)) })
		if last.tag <= w.tag {
			return nil
		}
		t.refuse(last)
	}
	t.account(who, int64(cost))
	t.begun++
	if w.kind == free || len(t.waiting) == 0 && t.has(k) {
		t.take(w)
		return w
	}
	w.done = make(chan struct{})
	t.join(w)
	t.serve()
	return w
}

// has reports whether there is a turn for a kind of requests.
func (t *turns) has(k kind) bool {
	most := t.half
	if time.Since(t.free) >= othersFor {
		most *= 2
	}
	return t.taken < most && (k == cheap || t.heavy < t.half)
}

// take gives a request its turn. The caller holds the lock.
func (t *turns) take(w *waiter) {
	if w.kind != free {
		t.taken++
	}
	if w.kind == costly {
		t.heavy++
	}
	w.turn, t.now = true, max(t.now, w.tag)
}

// serve gives turns that are free to requests that wait. The caller holds the lock.
func (t *turns) serve() {
	for {
		var next *waiter // the first of equal ones
		for _, w := range t.waiting {
			if (next == nil || w.tag < next.tag) && t.has(w.kind) {
				next = w
			}
		}
		if next == nil {
			return
		}
		t.take(next)
		t.leave(next)
	}
}

// join lets a request wait. The caller holds the lock.
func (t *turns) join(w *waiter) {
	t.waiting = append(t.waiting, w)
	if w.kind == costly {
		t.costly++
	}
	t.lookAgain()
}

// lookAgain gives turns that have been kept for free requests which have not come. The caller holds the lock.
func (t *turns) lookAgain() {
	if t.looking || len(t.waiting) == 0 {
		return
	}
	t.looking = true
	time.AfterFunc(othersFor, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.looking = false
		t.serve()
		t.lookAgain()
	})
}

// leave ends the waiting of a request. The caller holds the lock.
func (t *turns) leave(w *waiter) {
	at := slices.Index(t.waiting, w)
	t.waiting = slices.Delete(t.waiting, at, at+1)
	if w.kind == costly {
		t.costly--
	}
	close(w.done)
}

// refuse ends the waiting of a request whose turn does not come: it costs its party nothing, and brings none that comes before it closer.
// The caller holds the lock.
func (t *turns) refuse(w *waiter) {
	if !w.begun {
		t.spend(w.who, -int64(w.cost), w.tag)
		t.begun--
	}
	t.leave(w)
}

// release gives a turn to the next request, if there is one.
func (t *turns) release(k kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	if k == costly {
		t.heavy--
	}
	t.serve()
}

// goOn moves the clock on as if the requests that have begun shared an eighth of the turns that costly ones may have, and virtual time twice as
// fast. So the cheap requests of a party that asks for more than that share take turns: in a crowd of many parties, those of all. And new parties,
// whose first tag is the present virtual time, cannot keep the others from their turns, however many come. The caller holds the lock.
func (t *turns) goOn() {
	now := time.Now()
	step := uint64(0)
	if t.begun > 0 {
		step = uint64(now.Sub(t.at).Microseconds()) * uint64(t.half) / uint64(8*t.begun)
	}
	if step > 0 || t.begun == 0 { // less than a microsecond is counted later
		t.at, t.now, t.clock = now, t.now+2*step, t.clock+step
	}
}

// end ends a request that has used so many microseconds of what it was to cost.
func (t *turns) end(who Party, used, cost uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.goOn()
	if used != cost {
		t.spend(who, int64(used)-int64(cost), 0)
	}
	if t.begun--; t.begun == 0 {
		t.now, t.clock = 0, 0
		t.spent.Purge()
	}
}
