package deployment

import (
	"context"
	"slices"
	"sync"
	"time"

	"kith/events"
	"kith/storage"
)

// echo stands between the binlog and the other gateways: of what it tells, the cache in
// Redis is told first, for whoever hears of a change reads there. Writers tell Redis
// themselves; this is for those who could not, and for what was written past Kith. What a writer
// of this process has told costs nothing more, and what another's has costs a command that
// changes nothing. Some are told together, at the price of a short delay.
type echo struct {
	caches *Caches

	mu      sync.Mutex
	queue   []events.Event
	changes []storage.UserChange
	waiting bool
}

const (
	echoDelay = 20 * time.Millisecond
	// echoMost is how many changes are told one by one. If there are more, everybody
	// forgets everything.
	echoMost = 50_000
)

// changed takes what a transaction has made of users, before its events come.
func (e *echo) changed(_ context.Context, list []storage.UserChange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changes = append(e.changes, list...)
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

// tell empties the queue. Gateways forget those of whom they may have read something old in
// Redis until now, though they had heard of the row.
func (e *echo) tell(ctx context.Context) {
	for {
		e.mu.Lock()
		list, changes := e.queue, e.changes
		if e.queue, e.changes = nil, nil; len(list) == 0 {
			e.waiting = false
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		all := len(changes) > echoMost || slices.ContainsFunc(list, func(one events.Event) bool { return one.Kind == events.Gap })
		if all && e.caches.redis.Empty(ctx) == nil {
			list = []events.Event{{Kind: events.Gap}}
		} else {
			for _, id := range e.caches.redis.Changed(ctx, changes) {
				list = append(list, events.Event{Kind: events.Corrected, User: id})
			}
		}
		e.caches.bus.Send(ctx, list...)
	}
}
