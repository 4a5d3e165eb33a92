package deployment

import (
	"context"
	"slices"
	"sync"
	"time"

	"kith/storage"
	"kith/storage/events"
	"kith/storage/notify"
)

// echo stands between the binlog and the other gateways: of what it tells, the cache in
// Redis is told first, for whoever hears of a change reads there. Writers tell Redis
// themselves; this is for those who could not, or not yet, and for what was written past Kith. What
// a writer of this process has told costs nothing more, and what another's has costs a command
// that changes nothing. Some are told together, at the price of a short delay.
type echo struct {
	caches *Caches

	mu      sync.Mutex
	queue   []events.Event
	changes []storage.UserChange
	waiting bool

	telling sync.Mutex // held while Redis is told
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
		gap := slices.ContainsFunc(list, func(one events.Event) bool { return one.Kind == events.Gap })
		if e.catchUp(ctx, gap, nil) {
			list = []events.Event{{Kind: events.Gap}}
		}
		e.caches.bus.Send(ctx, list...)
	}
}

// catchUp tells Redis what the log has shown until now, and more; or everybody forgets everything.
func (e *echo) catchUp(ctx context.Context, all bool, more []storage.UserChange) (emptied bool) {
	e.telling.Lock() // what others tell has been told when this returns
	defer e.telling.Unlock()
	e.mu.Lock()
	changes := e.changes
	e.changes = nil
	e.mu.Unlock()
	if (all || len(changes) > echoMost) && e.caches.redis.Empty(ctx) == nil {
		return true
	}
	e.caches.redis.Changed(ctx, append(changes, more...))
	return false
}

// carried is told of rows that this process has brought to the inverse side. Before anybody hears of
// them, Redis is told in the same exchange what the log has shown of their writers, who may not
// have come to it yet, or not have lived to.
func (e *echo) carried(ctx context.Context, w notify.Write) {
	if e.catchUp(ctx, false, changes(w)) {
		e.caches.bus.Send(ctx, events.Event{Kind: events.Gap})
	}
	e.caches.heard(ctx, w)
}
