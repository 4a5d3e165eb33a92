package rediscache

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// breaker keeps look-ups from waiting for a Redis that does not answer: after some failures in a
// row Redis is not asked for a while, and then one look-up tries.
type breaker struct {
	now  func() time.Time
	open prometheus.Gauge

	failures atomic.Int32 // in a row
	until    atomic.Int64 // nobody asks before this, in Unix nanoseconds
}

const (
	maxFailures = 3
	leftAlone   = 500 * time.Millisecond
)

// allow reports whether Redis may be asked. Once the time is over one caller may, and the others only
// after that one succeeded, or after as much time again.
func (b *breaker) allow() bool {
	if b.failures.Load() < maxFailures {
		return true
	}
	now, until := b.now(), b.until.Load()
	return now.UnixNano() >= until && b.until.CompareAndSwap(until, now.Add(leftAlone).UnixNano())
}

// done reports how an exchange went.
func (b *breaker) done(well bool) {
	switch {
	case well && b.failures.Load() > 0:
		b.failures.Store(0)
		b.open.Set(0)
	case !well && b.failures.Add(1) >= maxFailures:
		b.until.Store(b.now().Add(leftAlone).UnixNano())
		b.open.Set(1)
	}
}
