package reconcile

import (
	"context"
	"time"

	"kith/internal/sleep"
)

// A throttle leaves the databases idle for a part of the time.
type throttle struct {
	load float64 // the share of time in which statements may run, above 0; 1 or more is all of it
}

// do runs a statement, and then pauses as long as its share requires.
func (t throttle) do(ctx context.Context, statement func() error) error {
	began := time.Now()
	if err := statement(); err != nil {
		return err
	}
	return sleep.For(ctx, t.pause(time.Since(began)))
}

func (t throttle) pause(took time.Duration) time.Duration {
	if t.load <= 0 || t.load >= 1 {
		return 0
	}
	return time.Duration(float64(took) * (1 - t.load) / t.load)
}
