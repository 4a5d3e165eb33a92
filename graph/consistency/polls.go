package consistency

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"kith/storage"
)

// polls asks for the rows of all reads that wait at the moment, together.
type polls struct {
	missing func(context.Context, Token) map[Mark]markState // which of some marks have not arrived, and for which that is not known

	mu      sync.Mutex
	waiting map[*waiter]bool
	running bool
}

// waiter is one read that waits.
type waiter struct {
	late  Token
	due   time.Time     // when to ask next
	polls int           // how often it was asked for
	ended chan struct{} // closed when it need no longer wait
	fresh bool          // the reason: its rows have arrived
}

// mostWaiting is how many reads may wait at a time. Further reads are answered at once, as if their
// time were over.
const mostWaiting = 256

// pauses are the times from one poll to the next; the last one applies from then on.
var pauses = [...]time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond}

const (
	// together is how much earlier than due the rows of a read are asked for, if others are due.
	together = 2 * time.Millisecond
	// pollTimeout bounds one poll: its reads wait for less in any case.
	pollTimeout = 2 * time.Second
)

// wait returns when the marks have arrived, or the context is done; fresh reports which of the two.
func (p *polls) wait(ctx context.Context, late Token) (fresh bool) {
	w := &waiter{late: late, due: time.Now().Add(pauses[0]), ended: make(chan struct{})}
	if !p.join(w) {
		return false
	}
	defer storage.Wait(ctx)()
	select {
	case <-w.ended:
		return w.fresh
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, w)
		return false
	}
}

// join adds a read, unless there are too many; it starts polling if that is not running.
func (p *polls) join(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) >= mostWaiting {
		return false
	}
	p.waiting[w] = true
	if !p.running {
		p.running = true
		go func() {
			for more := true; more; more = p.poll() {
				time.Sleep(pauses[0])
			}
		}()
	}
	return true
}

// poll asks for the rows of all that are due, each row once. It returns false, and polling ends, if no read waits.
func (p *polls) poll() (more bool) {
	p.mu.Lock()
	var due []*waiter
	asked := map[Mark]bool{}
	for w := range p.waiting {
		if time.Until(w.due) <= together {
			due = append(due, w)
			for _, m := range w.late {
				asked[m] = true
			}
		}
	}
	more = len(p.waiting) > 0
	p.running = more
	p.mu.Unlock()
	if len(due) == 0 {
		return more
	}
	ctx, cancel := context.WithTimeout(context.Background(), pollTimeout)
	defer cancel()
	state := p.missing(ctx, slices.Collect(maps.Keys(asked)))
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range due {
		if w.take(state) {
			delete(p.waiting, w)
			close(w.ended)
		}
	}
	return true
}

type markState int

const (
	hasArrived markState = iota
	isLate
	isUnknown
)

// take takes the result of a poll, and returns whether the read need no longer wait.
func (w *waiter) take(state map[Mark]markState) (ended bool) {
	var late Token
	for _, m := range w.late {
		switch state[m] {
		case isUnknown:
			return true
		case isLate:
			late = append(late, m)
		}
	}
	w.late, w.fresh = late, len(late) == 0
	w.polls++
	w.due = time.Now().Add(pauses[min(w.polls, len(pauses)-1)])
	return w.fresh
}
