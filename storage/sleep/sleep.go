// Package sleep waits, and lets databases rest.
package sleep

import (
	"context"
	"time"
)

// For waits for a time, or returns the context's error if the context ends first. It does not wait
// for 0 or less.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A Waker wakes what receives from it: once, however often that is asked for meanwhile. It has room for one value.
type Waker chan struct{}

// Wake does not wait for the receiver.
func (w Waker) Wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// WakesWithin waits like [For], and reports whether it was woken before the time was over or the context ended.
func (w Waker) WakesWithin(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-w:
		return true
	}
	return false
}

// A Throttle leaves the databases idle for a part of the time.
type Throttle struct {
	Load float64 // the share of time in which statements may run, above 0; 1 or more is all of it
}

// Do runs a statement, and then pauses as long as its share requires.
func (t Throttle) Do(ctx context.Context, statement func() error) error {
	began := time.Now()
	if err := statement(); err != nil {
		return err
	}
	return For(ctx, t.pause(time.Since(began)))
}

func (t Throttle) pause(took time.Duration) time.Duration {
	if t.Load <= 0 || t.Load >= 1 {
		return 0
	}
	return time.Duration(float64(took) * (1 - t.Load) / t.Load)
}
