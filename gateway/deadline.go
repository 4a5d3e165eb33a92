package gateway

import (
	"context"
	"sync"
	"time"
)

// deadline is a context that ends at a time, like that of context.WithDeadline, but starts its
// timer only when a goroutine waits for the end. Requests that are answered from memory never wait:
// for them, a timer and an entry in the list of contexts that the connection's context cancels
// would be needless work.
type deadline struct {
	context.Context // of the request
	at              time.Time

	mu     sync.Mutex
	timed  context.Context // with a timer; nil: nothing has waited yet
	cancel context.CancelFunc
	ended  bool // by end
}

// withDeadline returns a context that ends at a time; its method end ends it earlier.
func withDeadline(parent context.Context, at time.Time) *deadline {
	return &deadline{Context: parent, at: at}
}

// Deadline implements [context.Context].
func (d *deadline) Deadline() (time.Time, bool) {
	if at, ok := d.Context.Deadline(); ok && at.Before(d.at) {
		return at, true
	}
	return d.at, true
}

// Done implements [context.Context].
func (d *deadline) Done() <-chan struct{} { return d.start().Done() }

// Err implements [context.Context].
func (d *deadline) Err() error {
	d.mu.Lock()
	idle := d.timed == nil && !d.ended
	d.mu.Unlock()
	if idle && d.Context.Err() == nil && time.Now().Before(d.at) {
		return nil
	}
	return d.start().Err()
}

// Value implements [context.Context]. The context with the timer is asked first: contexts derived
// from this one look for it, so that they end with it without a goroutine of their own.
func (d *deadline) Value(key any) any {
	d.mu.Lock()
	timed := d.timed
	d.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return d.Context.Value(key)
}

// start starts the timer.
func (d *deadline) start() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.Context, d.at)
		if d.ended {
			d.cancel()
		}
	}
	return d.timed
}

// end cancels the context, and stops its timer.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.cancel != nil {
		d.cancel()
	}
}
