// Package ids makes the ids of new users: Sonyflake, 63 bits, of which 39 are the
// time in units of 10 ms since 2025, 8 a sequence, and 16 the machine's id.
//
// No id is ever made twice, whatever clocks do. A machine id is leased through the
// store until a time, and a lease covers the times written in the ids, not
// the times at which they are made. Its owner makes only ids whose time is before the lease's end;
// the next owner makes only ids from the beginning of its own lease, which the store puts after
// that end. Each compares its clock with the lease only through the id, so clocks may differ, stop
// or be set back.
package ids

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kith/graph/defaults"
	"kith/storage"
	"kith/storage/sleep"
)

// leasedIDs is how many machine ids there are, 0 … 1023: the most gateways that a store may have.
const leasedIDs = 1 << 10

// leaseKind is the kind of the leases of machine ids.
const leaseKind = "machine"

// ErrEnded: there is no lease at the moment, or the generator is closed.
var ErrEnded = errors.New("no machine id is leased")

// ErrClock: the clock was set back.
var ErrClock = errors.New("the clock was set back")

// Config says how machine ids are obtained; the zero value can be used.
type Config struct {
	// Lease is how long a machine id is leased for; the lease is renewed after a third of that.
	// Defaults to 60 s.
	Lease time.Duration

	// LeaseTimeout bounds one renewal. Defaults to 5 s.
	LeaseTimeout time.Duration

	// Wait bounds New: how long it waits for the store. Defaults to 3 s.
	Wait time.Duration

	// Logger gets failed renewals. Defaults to [slog.Default].
	Logger *slog.Logger

	// Now is the clock that leases are judged by; the library that makes the ids has
	// its own. Defaults to [time.Now].
	Now func() time.Time
}

// Generator makes ids. It is safe for concurrent use.
type Generator struct {
	cfg    Config
	leaser storage.Leaser
	owner  string

	mu     sync.Mutex
	flake  *flake
	closed bool

	ended   sleep.Waker // when an id was asked for and the lease had ended
	stop    context.CancelFunc
	running sync.WaitGroup
}

// New leases a machine id and renews the lease in the background until Close. The error wraps [storage.ErrNoLease] if all are taken.
func New(ctx context.Context, leaser storage.Leaser, cfg Config) (*Generator, error) {
	cfg = defaults.For(cfg, Config{Lease: time.Minute, LeaseTimeout: 5 * time.Second, Wait: 3 * time.Second, Logger: slog.Default(), Now: time.Now})
	// Each generator is an owner of its own: if it took over its predecessor's lease, it would not
	// know which ids that has made.
	g := &Generator{cfg: cfg, leaser: leaser, owner: rand.Text(), ended: make(sleep.Waker, 1)}
	waiting, cancel := context.WithTimeout(ctx, cfg.Wait)
	defer cancel()
	if err := g.lease(waiting); err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	g.stop = stop
	g.running.Go(func() { g.keep(background) })
	return g, nil
}

// keep renews the lease: after a third of it, a second after a failed renewal, and at once if the
// clock has jumped ahead, as after a pause of a virtual machine.
func (g *Generator) keep(ctx context.Context) {
	failed := false
	for g.pause(ctx, failed) {
		err := g.lease(ctx)
		failed = err != nil
		if failed && ctx.Err() == nil {
			g.cfg.Logger.Warn("cannot renew the lease of the machine id: users can be created until it expires", "error", err)
		}
	}
}

// pause waits until it is time to renew; false at the end.
func (g *Generator) pause(ctx context.Context, failed bool) bool {
	renew := g.cfg.Lease / 3
	if failed {
		return sleep.For(ctx, min(renew, time.Second)) == nil
	}
	g.ended.WakesWithin(ctx, renew)
	return ctx.Err() == nil
}

// lease takes a lease, or extends the present one. If the present lease has expired and another
// gateway took its slot, the new lease is of another slot.
func (g *Generator) lease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.LeaseTimeout)
	defer cancel()
	now := storage.MicrosOf(g.cfg.Now())
	until := g.extended(now)
	slot, err := g.leaser.Lease(ctx, leaseKind, g.owner, leasedIDs, now, until)
	if err != nil {
		return fmt.Errorf("lease a machine id: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flake != nil && g.flake.machine == slot {
		g.flake.renew(now, until)
		return nil
	}
	f, err := newFlake(slot, now, until)
	if err != nil {
		return err
	}
	g.flake = f
	return nil
}

// extended is until when to lease: never for less than before, even if the clock was set back,
// because ids of that time may have been made.
func (g *Generator) extended(now storage.Micros) storage.Micros {
	until := now + storage.Micros(g.cfg.Lease.Microseconds())
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flake != nil {
		until = max(until, g.flake.until)
	}
	return until
}

// Next makes an id, positive and greater than those that this generator made
// before on the same machine id. If the clock was set back, it waits up to
// a second. Errors wrap [storage.ErrUnavailable], and [ErrEnded] or [ErrClock].
func (g *Generator) Next(ctx context.Context) (storage.UserID, error) {
	for {
		g.mu.Lock()
		id, wait, err := g.next()
		g.mu.Unlock()
		if err != nil {
			return 0, fmt.Errorf("make an id: %w: %w", storage.ErrUnavailable, err)
		}
		if wait == 0 {
			return id, nil
		}
		if err := sleep.For(ctx, wait); err != nil {
			return 0, fmt.Errorf("make an id: %w", err)
		}
	}
}

// next makes an id, or returns how long to wait before the next call.
func (g *Generator) next() (storage.UserID, time.Duration, error) {
	if g.closed {
		return 0, 0, ErrEnded
	}
	id, wait, err := g.flake.next(storage.MicrosOf(g.cfg.Now()))
	if errors.Is(err, ErrEnded) {
		g.ended.Wake()
	}
	return id, wait, err
}

// Ready reports whether ids can be made; it is a check of /readyz.
func (g *Generator) Ready(context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := storage.MicrosOf(g.cfg.Now())
	if g.closed || now >= g.flake.until {
		return ErrEnded
	}
	_, err := g.flake.wait(now)
	return err
}

// Close gives the machine id back; no ids are made from then on. Calling it again
// does nothing.
func (g *Generator) Close(ctx context.Context) error {
	g.stop()
	g.running.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	ctx, cancel := context.WithTimeout(ctx, g.cfg.LeaseTimeout)
	defer cancel()
	return g.release(ctx)
}

// release lets the lease end with the last id that was made. If it ended at once,
// a gateway whose clock is behind could make the same ids again.
func (g *Generator) release(ctx context.Context) error {
	var err error
	if last := g.flake.end(); last > 0 {
		_, err = g.leaser.Lease(ctx, leaseKind, g.owner, leasedIDs, storage.MicrosOf(g.cfg.Now()), last)
	} else {
		err = g.leaser.Release(ctx, leaseKind, g.owner, 0)
	}
	if err != nil && !errors.Is(err, storage.ErrNoLease) { // another gateway has it already
		return fmt.Errorf("give machine id %d back: %w", g.flake.machine, err)
	}
	return nil
}
