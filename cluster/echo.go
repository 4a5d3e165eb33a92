package cluster

import (
	"context"
	"slices"
	"sync"
	"time"

	"kith/storage"
	"kith/storage/events"
)

// binlogNotifier is between the binlog and the other gateways. It reports a change to the cache in Redis and
// then notifies the gateways, because every gateway that hears of a change reads there. Writers
// report to Redis themselves; echo is for writers that could not, or have not yet, and for rows
// that were written without Kith. A change that its writer has reported costs a command that changes
// nothing. Several changes are reported together, which costs a short delay.
type binlogNotifier struct {
	caches *Caches

	mu      sync.Mutex
	queue   []events.Event
	changes []storage.UserChange
	waiting bool

	reporting sync.Mutex // held while changes are reported to Redis
}

const (
	echoDelay = 20 * time.Millisecond
	// echoMost is how many changes are reported one by one. If there are more, all caches forget
	// everything.
	echoMost = 50_000
)

// changed queues what a transaction has changed about users, before its events come.
func (e *binlogNotifier) changed(_ context.Context, list []storage.UserChange) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changes = append(e.changes, list...)
}

// Send queues events. It does not wait.
func (e *binlogNotifier) Send(ctx context.Context, list ...events.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = append(e.queue, list...)
	if !e.waiting {
		e.waiting = true
		time.AfterFunc(echoDelay, func() { e.send(context.WithoutCancel(ctx)) })
	}
}

// send sends everything queued.
func (e *binlogNotifier) send(ctx context.Context) {
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
		if !e.catchUp(ctx, gap, storage.Change{}) {
			e.caches.bus.Send(ctx, list...)
		}
	}
}

// catchUp reports to Redis all changes that the log has shown until now, and more. If they are too
// many, or all is set, it has all caches forget everything instead, and returns true.
//
// More is what this process has changed when it applied rows to the other side. In the same exchange, and
// before other processes hear of these rows, Redis gets what the log has shown of the
// rows' writers, which may not have reported it yet, or may have died before.
func (e *binlogNotifier) catchUp(ctx context.Context, all bool, more storage.Change) (emptied bool) {
	e.reporting.Lock() // so that concurrent calls have finished when this returns
	defer e.reporting.Unlock()
	e.mu.Lock()
	changed := e.changes
	e.changes = nil
	e.mu.Unlock()
	if (all || len(changed) > echoMost) && e.caches.redis.Empty(ctx) == nil {
		corrected(e.caches.bus, nil)
		return true
	}
	e.caches.redis.Changed(ctx, append(changed, more.Users...))
	return false
}
