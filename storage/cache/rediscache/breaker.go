package rediscache

import (
	"sync"
	"time"
)

// breaker keeps look-ups from waiting for a Redis that does not answer: after some failures in a
// row Redis is not asked for a while, and then one look-up tries.
type breaker struct {
	now     func() time.Time
	metrics *Metrics

	mu       sync.Mutex
	failures int       // in a row
	until    time.Time // nobody asks before this
}

const (
	maxFailures = 3
	leftAlone   = 500 * time.Millisecond
)

// allow reports whether Redis may be asked. Once the time is over one caller may, and the others only
// after that one succeeded.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < maxFailures {
		return true
	}
	now := b.now()
	if now.Before(b.until) {
		return false
	}
	b.until = now.Add(leftAlone) // for the others; also if this caller never reports
	return true
}

// done reports how an exchange went.
func (b *breaker) done(well bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if well {
		b.failures = 0
		b.metrics.open.Set(0)
		return
	}
	b.failures++
	if b.failures >= maxFailures {
		b.until = b.now().Add(leftAlone)
		b.metrics.open.Set(1)
	}
}
