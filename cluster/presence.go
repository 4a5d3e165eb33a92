package cluster

import (
	"context"
	"crypto/rand"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// presence reports to a gateway whether it is the only one on its store. Each gateway holds a lease. A
// new gateway waits until the others have counted it, because they may have kept in memory what it is
// about to change.
type presence struct {
	leaser storage.Leaser
	owner  string
	now    func() time.Time

	// vanished is called when others have not renewed their leases in time. If it returns false, it is called again later.
	vanished func(context.Context) bool

	// unheard reports whether this gateway has changed something that the others do not hear of.
	unheard func() bool
	// unheardBeside is whether another gateway has said so. It is set before watch reports.
	unheardBeside atomic.Bool

	looked  time.Time            // when it last looked at the leases
	renewed time.Time            // when the lease was last renewed
	saidSo  bool                 // that it is unheard
	seen    map[string]seenLease // of the others
	others  int                  // how many there are, as counted last; -1: that is not known
}

// unheardMark follows the owner's name in the second lease of a gateway that is unheard.
const unheardMark = "/unheard"

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
	return &presence{leaser: leaser, owner: rand.Text(), now: time.Now, seen: map[string]seenLease{}, vanished: func(context.Context) bool { return true }, unheard: func() bool { return false }}
}

// enter takes the lease. If there are other gateways, it returns once they know of this one.
func (r *presence) enter(ctx context.Context) (alone bool) {
	if alone = r.alone(ctx); alone {
		return true
	}
	_ = sleep.For(ctx, 2*presenceEvery)
	return false
}

// attend lets the gateways know of this process until end is called. It returns once they do.
func attend(ctx context.Context, leaser storage.Leaser) (end func()) {
	own := newPresence(leaser)
	own.enter(ctx)
	stop := own.stay()
	return func() {
		stop()
		own.leave()
	}
}

// stay keeps the lease until end is called.
func (r *presence) stay() (end func()) {
	return InBackground(func(ctx context.Context) { r.watch(ctx, func(bool) {}) })
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
			return
		}
	}
}

func (r *presence) leave() {
	if r.renewed.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), presenceEvery)
	defer cancel()
	for _, owner := range []string{r.owner + unheardMark, r.owner} {
		_ = r.leaser.Release(ctx, presenceKind, owner, 0) // otherwise it expires
	}
}

func (r *presence) alone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, presenceEvery)
	defer cancel()
	counted := r.others >= 0
	r.others = -1
	now := r.now()
	stoodStill := !r.looked.IsZero() && max(now.Sub(r.looked), now.Round(0).Sub(r.looked.Round(0))) >= presenceLease // the monotonic clock stops while a machine does
	r.looked = now
	if now.Sub(r.renewed) >= presenceRenew {
		if _, err := r.leaser.Lease(ctx, presenceKind, r.owner, presenceSlots, storage.MicrosOf(now), storage.MicrosOf(now.Add(presenceLease))); err != nil {
			return false
		}
		r.renewed = now
	}
	r.sayUnheard(ctx, now)
	leases, err := r.leaser.Holders(ctx, presenceKind)
	if err != nil {
		return false
	}
	delete(leases, r.owner)
	unheard := map[string]storage.Micros{}
	for owner, until := range leases {
		if of, is := strings.CutSuffix(owner, unheardMark); is {
			unheard[of] = until
			delete(leases, owner)
		}
	}
	maps.DeleteFunc(r.seen, func(owner string, _ seenLease) bool { _, still := leases[owner]; return !still })
	dead := map[string]storage.Micros{}
	for owner, until := range leases {
		if r.seen[owner].until != until || !counted { // while the store did not answer, nobody could renew
			r.seen[owner] = seenLease{until, now}
		} else if now.Sub(r.seen[owner].since) >= presenceLease {
			dead[owner] = until
		}
	}
	r.others = len(leases) - len(dead)
	beside := false
	for owner, until := range unheard {
		if _, is := leases[owner]; is {
			beside = beside || dead[owner] == 0
		} else if owner != r.owner {
			_ = r.leaser.Release(ctx, presenceKind, owner+unheardMark, until) // of one that is gone
		}
	}
	r.unheardBeside.Store(beside)
	if len(dead) > 0 && r.vanished(ctx) {
		for owner, until := range dead {
			_ = r.leaser.Release(ctx, presenceKind, owner, until) // so that the next gateway does not wait for it
		}
	}
	if stoodStill && r.others == 0 { // others, who took this one for dead, may have come and gone
		r.others = -1
	}
	return r.others == 0
}

// sayUnheard lets the others know that they do not hear of what this gateway changes, and when they do again.
func (r *presence) sayUnheard(ctx context.Context, now time.Time) {
	owner := r.owner + unheardMark
	switch {
	case r.unheard():
		_, err := r.leaser.Lease(ctx, presenceKind, owner, presenceSlots, storage.MicrosOf(now), storage.MicrosOf(now.Add(presenceLease)))
		r.saidSo = r.saidSo || err == nil
	case r.saidSo:
		r.saidSo = r.leaser.Release(ctx, presenceKind, owner, 0) != nil
	}
}
