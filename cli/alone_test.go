package cli

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alecthomas/kong"

	"kith/internal/must"
	"kith/storage"
	"kith/storage/sqlstore"
)

// slowLeases hold up each renewal until the lease is released, or nobody waits for it any more.
type slowLeases struct {
	storage.Leaser
	taken, renewals atomic.Int32
	released        chan struct{}
	late            bool // a renewal was under way when the lease was released, and takes it again
}

func (l *slowLeases) Lease(ctx context.Context, _, _ string, _ int, _, _ storage.Micros) (int, error) {
	if l.taken.Add(1) == 1 {
		return 0, nil
	}
	l.renewals.Add(1)
	defer l.renewals.Add(-1)
	select {
	case <-l.released:
	case <-ctx.Done():
	}
	return 0, ctx.Err()
}

func (l *slowLeases) Release(context.Context, string, string, storage.Micros) error {
	close(l.released)
	l.late = l.renewals.Load() > 0
	return nil
}

// TestALeaseIsNotRenewedOnceItIsReleased: otherwise the next `kith shards` is told for six seconds that another is at work.
func TestALeaseIsNotRenewedOnceItIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := &slowLeases{released: make(chan struct{})}
		err := alone(t.Context(), leases, &kong.Context{Kong: &kong.Kong{Stderr: io.Discard}}, "shards", 0, 1, func(context.Context, sqlstore.MoveConfig) error {
			for leases.renewals.Load() == 0 {
				time.Sleep(movingLease / 5)
			}
			return nil
		})
		must.OK(t, err)
		must.That(t, !leases.late, "the lease is released while it is being renewed")
	})
}
