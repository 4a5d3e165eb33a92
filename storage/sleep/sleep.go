// Package sleep waits.
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
