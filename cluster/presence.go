package cluster

import (
	"context"
	"crypto/rand"
	"maps"
	"time"

	"kith/storage"
)

// presence reports to a gateway whether it is the only one on its store. Each gateway holds a lease. A
// new gateway waits until the others have counted it, because they may have kept in memory what it is
// about to change.
type presence struct {
	leaser storage.Leaser
	owner  string
	now    func() time.Time

	renewed time.Time            // when the lease was last renewed
	seen    map[string]seenLease // of the others
	others  int                  // how many there are, as counted last; -1: the store did not answer
}

// A seenLease is a lease of another gateway, and since when it has been as it is. Clocks of machines differ, so that a lease has
// expired once it has not been renewed for as long as it lasts by the own clock.
type seenLease struct {
	until storage.Micros
	since time.Time
}

const (
	presenceKind  = "gateway"
	presenceSlots = 1024
	presenceLease = 10 * time.Second
	presenceRenew = 3 * time.Second
	presenceEvery = time.Second // how often the other gateways are counted
)

func newPresence(leaser storage.Leaser) *presence {
	return &presence{leaser: leaser, owner: rand.Text(), now: time.Now, seen: map[string]seenLease{}}
}

// enter takes the lease. If there are other gateways, it returns once they know of this one.
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

// Attend announces a process that propagates rows beside the gateways before it begins: without a
// Redis, a gateway does not see these rows, and must not assume that it is alone. Attend returns a
// function that keeps the announcement alive until the context is done.
func Attend(ctx context.Context, leaser storage.Leaser, heard bool) (run func()) {
	own := newPresence(leaser)
	if heard {
		own.alone(ctx) // no need to wait
	} else {
		own.enter(ctx)
	}
	return func() { own.watch(ctx, func(bool) {}) }
}

// appear lets the gateways know of this process for a moment. It returns once they do.
func appear(ctx context.Context, leaser storage.Leaser) {
	own := newPresence(leaser)
	own.enter(ctx)
	own.leave(ctx)
}

// watch reports repeatedly whether there are other gateways, until the context is done. If the
// store does not answer, it reports that there may be.
func (r *presence) watch(ctx context.Context, report func(alone bool)) {
	ticks := time.NewTicker(presenceEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			report(r.alone(ctx))
		case <-ctx.Done():
			r.leave(ctx)
			return
		}
	}
}

func (r *presence) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), presenceEvery)
	defer cancel()
	_ = r.leaser.Release(ctx, presenceKind, r.owner, 0) // otherwise it expires
}

func (r *presence) alone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, presenceEvery)
	defer cancel()
	r.others = -1
	now := r.now()
	if now.Sub(r.renewed) >= presenceRenew {
		if _, err := r.leaser.Lease(ctx, presenceKind, r.owner, presenceSlots, storage.MicrosOf(now), storage.MicrosOf(now.Add(presenceLease))); err != nil {
			return false
		}
		r.renewed = now
	}
	leases, err := r.leaser.Holders(ctx, presenceKind)
	if err != nil {
		return false
	}
	delete(leases, r.owner)
	maps.DeleteFunc(r.seen, func(owner string, _ seenLease) bool { _, still := leases[owner]; return !still })
	for owner, until := range leases {
		if r.seen[owner].until != until {
			r.seen[owner] = seenLease{until, now}
		} else if now.Sub(r.seen[owner].since) >= presenceLease {
			delete(leases, owner)
			_ = r.leaser.Release(ctx, presenceKind, owner, until) // so that the next gateway does not wait for it
		}
	}
	r.others = len(leases)
	return r.others == 0
}
