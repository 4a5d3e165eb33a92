package deployment

import (
	"context"
	"crypto/rand"
	"time"

	"kith/storage"
)

// presence tells a gateway whether it is the only one on its store. Each holds a lease; one
// that comes waits until the others have counted it, since they may have kept in memory
// what it is about to change.
type presence struct {
	leaser storage.Leaser
	owner  string
	now    func() time.Time

	renewed time.Time // when the lease was last renewed
}

const (
	presenceKind  = "gateway"
	presenceSlots = 1024
	presenceLease = 10 * time.Second
	presenceRenew = 3 * time.Second
	presenceEvery = time.Second // how often the others are counted
)

func newPresence(leaser storage.Leaser) *presence {
	return &presence{leaser: leaser, owner: rand.Text(), now: time.Now}
}

// enter takes the lease. Where there are others, it returns when they know.
func (r *presence) enter(ctx context.Context) (alone bool) {
	if alone = r.alone(ctx); alone {
		return true
	}
	select {
	case <-time.After(2 * presenceEvery):
	case <-ctx.Done():
	}
	return false
}

// Attend has gateways know of a process that carries rows over beside them, before it does:
// without a Redis a gateway does not see those come, and must not think that it is alone. It
// returns what keeps that up until the context is done.
func Attend(ctx context.Context, leaser storage.Leaser, heard bool) (run func()) {
	own := newPresence(leaser)
	if heard {
		own.alone(ctx) // nobody has to wait
	} else {
		own.enter(ctx)
	}
	return func() { own.watch(ctx, func(bool) {}) }
}

// watch tells over and over whether there are others, until the context is done. It does
// not know when the store does not answer: then there may be.
func (r *presence) watch(ctx context.Context, tell func(alone bool)) {
	ticks := time.NewTicker(presenceEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			tell(r.alone(ctx))
		case <-ctx.Done():
			left, cancel := context.WithTimeout(context.WithoutCancel(ctx), presenceEvery)
			defer cancel()
			_ = r.leaser.Release(left, presenceKind, r.owner) // or it ends by itself
			return
		}
	}
}

func (r *presence) alone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, presenceEvery)
	defer cancel()
	now := r.now()
	if now.Sub(r.renewed) >= presenceRenew {
		if _, err := r.leaser.Lease(ctx, presenceKind, r.owner, presenceSlots, storage.MicrosOf(now), storage.MicrosOf(now.Add(presenceLease))); err != nil {
			return false
		}
		r.renewed = now
	}
	n, err := r.leaser.Holders(ctx, presenceKind, storage.MicrosOf(now))
	return err == nil && n == 1
}
