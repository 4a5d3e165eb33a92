package deployment

import (
	"context"
	"sync"
	"time"

	"kith/events"
	"kith/storage/notify"
)

// echo stands between the binlog and the other gateways: of what it tells, the cache in
// Redis is told first, for whoever hears of a change reads there. Writers tell Redis
// themselves; this is for those who could not, and for what was written past Kith. Some are
// told together, at the price of a short delay.
type echo struct {
	caches *Caches

	mu      sync.Mutex
	queue   []events.Event
	waiting bool
}

const (
	echoDelay = 20 * time.Millisecond
	// echoMost is how many users are told of one by one. If there are more, everybody
	// forgets everything.
	echoMost = 50_000
)

// echoed is where the events of the binlog go.
func (c *Caches) echoed() interface {
	Send(context.Context, ...events.Event)
} {
	if c.redis == nil {
		return c.bus
	}
	return &echo{caches: c}
}

// Send does not wait.
func (e *echo) Send(ctx context.Context, list ...events.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = append(e.queue, list...)
	if !e.waiting {
		e.waiting = true
		time.AfterFunc(echoDelay, func() { e.tell(context.WithoutCancel(ctx)) })
	}
}

// tell empties the queue.
func (e *echo) tell(ctx context.Context) {
	for {
		e.mu.Lock()
		list := e.queue
		if e.queue = nil; len(list) == 0 {
			e.waiting = false
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		w, all := changedUsers(list)
		if all = all || len(w.Users) > echoMost; all && e.caches.redis.Empty(ctx) == nil {
			list = []events.Event{{Kind: events.Gap}}
		} else {
			e.caches.redis.Changed(ctx, changes(w))
		}
		e.caches.bus.Send(ctx, list...)
	}
}

// changedUsers are those whom events are about, each once; or all, where events may be
// missing.
func changedUsers(list []events.Event) (w notify.Write, all bool) {
	seen := make(map[events.Event]bool, len(list))
	for _, one := range list {
		all = all || one.Kind == events.Gap
		one.Kind = events.UserChanged
		if one.User != 0 && !seen[one] {
			seen[one] = true
			w.Users = append(w.Users, one.User)
		}
	}
	return w, all
}
