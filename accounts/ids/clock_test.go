package ids

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// TestClockSetBack: a small step back is waited for, a larger one is an error at once.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	var back atomic.Int64
	clock := func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
	l := newLeases()
	g := start(t, l, Config{Now: clock, Lease: time.Hour})
	before := next(t, g)

	back.Store(int64(200 * time.Millisecond))
	began := time.Now()
	after := next(t, g)
	check.Least(t, "the wait for 200 ms back", time.Since(began), 100*time.Millisecond)
	check.That(t, after > before, "%d after %d", after, before)

	back.Store(int64(time.Hour))
	began = time.Now()
	_, err := g.Next(t.Context())
	check.That(t, errors.Is(err, ErrClock) && errors.Is(err, storage.ErrUnavailable), "an hour back: %v", err)
	check.Most(t, "an hour back took", time.Since(began), 5*time.Second)
	check.Is(t, "ready an hour back", g.Ready(t.Context()), ErrClock)

	// A renewal with the clock that was set back must not end the lease earlier.
	had := l.until(leaseKind, 0)
	if err := g.lease(t.Context()); err != nil || l.until(leaseKind, 0) < had {
		t.Errorf("the lease until %d ends at %d now, %v", had, l.until(leaseKind, 0), err)
	}
}

// TestClockRunsAhead, as after a pause of the machine: the lease is renewed at once, and not only when its
// third is over.
func TestClockRunsAhead(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	g := start(t, newLeases(), Config{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, Lease: time.Hour})
	next(t, g)
	ahead.Store(int64(2 * time.Hour))
	_, err := g.Next(t.Context())
	must.That(t, errors.Is(err, ErrEnded), "%v", err)
	must.Soon(t, "the lease is renewed", func() bool { return g.Ready(t.Context()) == nil })
}

func TestNextIsCancelled(t *testing.T) {
	t.Parallel()
	var back atomic.Int64
	g := start(t, newLeases(), Config{Now: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }})
	next(t, g)
	back.Store(int64(900 * time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := g.Next(ctx)
	must.That(t, errors.Is(err, context.Canceled), "%v", err)
}

// TestJudge: the time in an id decides whether it belongs to a lease, exact to the unit.
func TestJudge(t *testing.T) {
	t.Parallel()
	now := storage.MicrosOf(time.Now()) / unit * unit
	for name, c := range map[string]struct {
		from, until, made storage.Micros
		ok, wait          bool
	}{
		"within":                  {now - unit, now + 10*unit, now, true, false},
		"first unit":              {now, now + 10*unit, now, true, false},
		"in which the lease came": {now + 1, now + 10*unit, now, false, true},
		"before":                  {now + 5*unit, now + 10*unit, now, false, true},
		"last whole unit":         {now, now + unit, now, true, false},
		"in which the lease ends": {now, now + unit - 1, now, false, false},
		"behind":                  {now - 9*unit, now - unit, now, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := newFlake(3, c.from, c.until)
			must.OK(t, err)
			number, err := f.maker.Compose(c.made.Time(), 9, 3)
			must.OK(t, err)
			id, wait, err := f.admit(storage.UserID(number))
			check.That(t, (id != 0) == c.ok && (wait > 0) == c.wait && (err != nil) != (c.ok || c.wait), "id %d, wait %s, %v", id, wait, err)
		})
	}
}
