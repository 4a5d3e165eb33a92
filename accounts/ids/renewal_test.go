package ids

import (
	"errors"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// TestTheLeaseIsRenewed lasts for several leases.
func TestTheLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	l := newLeases()
	g := start(t, l, Config{Lease: 300 * time.Millisecond})
	machine, first := g.MachineID(), l.until(leaseKind, 0)
	must.Soon(t, "three leases later", func() bool { return l.until(leaseKind, 0) > first+900_000 })
	next(t, g)
	check.That(t, g.MachineID() == machine, "machine %d became %d", machine, g.MachineID())
}

// TestLeaseEnds: no ids are made when the lease cannot be renewed, and ids are made again when it can.
func TestLeaseEnds(t *testing.T) {
	t.Parallel()
	l := newLeases()
	g := start(t, l, Config{Lease: 600 * time.Millisecond})
	next(t, g)
	must.OK(t, g.Ready(t.Context()))
	l.fail(errors.New("the store is down"))
	ended := l.until(leaseKind, 0)
	var err error
	must.Soon(t, "the lease ends", func() bool {
		var id storage.UserID
		id, err = g.Next(t.Context())
		must.That(t, err != nil || madeAt(g, id)+unit <= ended, "an id of %d µs after the lease", madeAt(g, id)-ended)
		return err != nil
	})
	must.That(t, errors.Is(err, ErrEnded) && errors.Is(err, storage.ErrUnavailable), "%v", err)
	must.Soon(t, "not ready", func() bool { return errors.Is(g.Ready(t.Context()), ErrEnded) }) // up to a unit later
	l.fail(nil)
	must.Soon(t, "ids again", func() bool { _, err := g.Next(t.Context()); return err == nil })
}

// TestSlotLost: another owner has the slot when the store answers again.
func TestSlotLost(t *testing.T) {
	t.Parallel()
	l := newLeases()
	g := start(t, l, Config{Lease: 300 * time.Millisecond})
	machine := g.MachineID()
	l.steal(leaseKind, storage.MicrosOf(time.Now().Add(time.Hour)))
	must.Soon(t, "another machine id", func() bool { return g.MachineID() != machine })
	var id storage.UserID
	must.Soon(t, "ids again", func() bool { var err error; id, err = g.Next(t.Context()); return err == nil })
	check.That(t, int(id&0xffff) == g.MachineID(), "an id of machine %d by machine %d", id&0xffff, g.MachineID())
}

// TestClose: the lease ends with the last id that was made, and no sooner.
func TestClose(t *testing.T) {
	t.Parallel()
	l := newLeases()
	g := start(t, l, Config{})
	id := next(t, g)
	must.OK(t, g.Close(t.Context()))
	until, want := l.until(leaseKind, 0), madeAt(g, id)+unit
	check.That(t, until == want, "the lease ends at %d, the last id's time at %d", until, want)
	_, err := g.Next(t.Context())
	check.Is(t, "an id after the end", err, ErrEnded)
	check.Is(t, "ready after the end", g.Ready(t.Context()), ErrEnded)
	calls := l.calls
	err = g.Close(t.Context())
	check.That(t, err == nil && l.calls == calls, "closed again: %v, %d calls more", err, l.calls-calls)

	unused := start(t, l, Config{})
	before := l.count(leaseKind)
	if err := unused.Close(t.Context()); err != nil || l.count(leaseKind) != before-1 {
		t.Errorf("without an id made the slot is free at once: %d of %d, %v", l.count(leaseKind), before, err)
	}
}

// TestRenew: a lease that had ended starts over, because another owner may have had it.
func TestRenew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ now, from storage.Micros }{{150, 100}, {199, 100}, {200, 200}, {250, 250}} {
		f := &flake{from: 100, until: 200}
		if f.renew(c.now, 300); f.from != c.from || f.until != 300 {
			t.Errorf("at %d it becomes %d to %d", c.now, f.from, f.until)
		}
	}
}
