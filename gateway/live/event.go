package live

import (
	"context"
	"sync"
	"time"

	"kith/gateway/exchange"
	"kith/gateway/quota"
)

// event is the context of one answer of an operation, with an exchange of its own. It takes its turn, and its time
// begins to run, only when the answer is being worked on: a subscription waits for its next
// event under the same context.
type event struct {
	context.Context
	cancel  context.CancelCauseFunc
	timeout time.Duration
	on      *quota.Slot

	once  sync.Once
	turn  quota.Turn
	own   *exchange.Exchange
	timer *time.Timer
}

type eventKey struct{}

func newEvent(ctx context.Context, on *quota.Slot, timeout time.Duration) *event {
	e := &event{on: on, timeout: timeout, turn: quota.NoTurn, own: &exchange.Exchange{ID: exchange.RequestID(ctx)}}
	e.Context, e.cancel = context.WithCancelCause(context.WithValue(exchange.With(ctx, e.own), eventKey{}, e))
	return e
}

// begin takes the turn and starts the time, if the event has not begun.
func (e *event) begin() {
	e.once.Do(func() {
		e.turn = e.on.Turn(e.Context)
		e.start()
	})
}

// start starts the time, unless it is running.
func (e *event) start() {
	if e.timer != nil {
		return
	}
	e.own.Began = time.Now()
	e.timer = time.AfterFunc(e.timeout, func() { e.cancel(context.DeadlineExceeded) })
}

// end releases what the event holds, except for the turn of its user, and returns how long
// it was worked on.
func (e *event) end() time.Duration {
	e.once.Do(func() {})
	e.cancel(nil)
	e.turn.Made()
	if e.timer == nil {
		return 0
	}
	e.timer.Stop()
	return time.Since(e.own.Began)
}

// Err distinguishes an event whose time is over from one that is no longer wanted.
func (e *event) Err() error {
	if context.Cause(e.Context) == context.DeadlineExceeded { //nolint:errorlint // the cause is that very value
		return context.DeadlineExceeded
	}
	return e.Context.Err()
}
