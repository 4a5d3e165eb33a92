package deployment

import (
	"context"
	"crypto/rand"
	"time"

	"kith/storage"
)

// rollCall tells a gateway whether it is the only one on its store. Each holds a lease; one
// that comes waits until the others have counted it, since they may have kept in memory
// what it is about to change.
type rollCall struct {
	leaser storage.Leaser
	owner  string
	now    func() time.Time

	renewed time.Time // when the lease was last renewed
}

const (
	rollKind  = "gateway"
	rollSlots = 1024
	rollLease = 10 * time.Second
	rollRenew = 3 * time.Second
	rollEvery = time.Second // how often the others are counted
)

func newRollCall(leaser storage.Leaser) *rollCall {
	return &rollCall{leaser: leaser, owner: rand.Text(), now: time.Now}
}

// enter takes the lease. Where there are others, it returns when they know.
func (r *rollCall) enter(ctx context.Context) (alone bool) {
	if alone = r.alone(ctx); alone {
		return true
	}
	select {
	case <-time.After(2 * rollEvery):
	case <-ctx.Done():
	}
	return false
}

// Attend has gateways know of a process that carries rows over beside them, before it does:
// without a Redis a gateway does not see those come, and must not think that it is alone. It
// returns what keeps that up until the context is done.
func Attend(ctx context.Context, leaser storage.Leaser, heard bool) (run func()) {
	roll := newRollCall(leaser)
	if heard {
		roll.alone(ctx) // nobody has to wait
	} else {
		roll.enter(ctx)
	}
	return func() { roll.watch(ctx, func(bool) {}) }
}

// watch tells over and over whether there are others, until the context is done. It does
// not know when the store does not answer: then there may be.
func (r *rollCall) watch(ctx context.Context, tell func(alone bool)) {
	ticks := time.NewTicker(rollEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			tell(r.alone(ctx))
		case <-ctx.Done():
			left, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollEvery)
			defer cancel()
			_ = r.leaser.Release(left, rollKind, r.owner) // or it ends by itself
			return
		}
	}
}

func (r *rollCall) alone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, rollEvery)
	defer cancel()
	now := r.now()
	if now.Sub(r.renewed) >= rollRenew {
		if _, err := r.leaser.Lease(ctx, rollKind, r.owner, rollSlots, storage.MicrosOf(now), storage.MicrosOf(now.Add(rollLease))); err != nil {
			return false
		}
		r.renewed = now
	}
	n, err := r.leaser.Holders(ctx, rollKind, storage.MicrosOf(now))
	return err == nil && n == 1
}
