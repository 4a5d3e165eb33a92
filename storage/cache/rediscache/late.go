package rediscache

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// late remembers the users whose changes could not be delivered to Redis, and removes them there as soon as
// Redis can be reached. Until then this gateway does not read from Redis.
type late struct {
	cache  *Cache
	closed context.Context // done when the cache is closed

	some atomic.Bool // there are such users, and a goroutine tries to deliver them

	mu      sync.Mutex
	users   map[storage.UserID]bool
	tooMany bool // they were dropped: a new epoch has to begin
}

// behind reports whether Redis lacks changes of this gateway.
func (l *late) behind() bool { return l.some.Load() }

// add remembers changed users and makes sure that a goroutine tries to deliver them.
func (l *late) add(what []storage.UserChange) {
	l.cache.cfg.Metrics.changes.WithLabelValues("late").Add(float64(len(what)))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range what {
		l.keep(w.User)
	}
	l.count()
	if !l.some.Swap(true) && l.closed.Err() == nil {
		l.cache.running.Go(l.deliver)
	}
}

// keep remembers a user. If there are more than MaxLate, it drops all of them.
func (l *late) keep(id storage.UserID) {
	if l.tooMany {
		return
	}
	if l.users == nil {
		l.users = map[storage.UserID]bool{}
	}
	if l.users[id] = true; len(l.users) > l.cache.cfg.MaxLate {
		l.users, l.tooMany = nil, true
	}
}

func (l *late) count() { l.cache.cfg.Metrics.late.Set(float64(len(l.users))) }

// Pauses between attempts.
const (
	firstPause = 20 * time.Millisecond
	longPause  = time.Second
)

// deliver tries until nothing is left.
func (l *late) deliver() {
	pause := firstPause
	for sleep.For(l.closed, pause) == nil {
		if pause = min(2*pause, longPause); !l.try() {
			continue
		}
		pause = firstPause
		l.mu.Lock()
		left := len(l.users) > 0 || l.tooMany
		if !left {
			l.some.Store(false)
		}
		l.mu.Unlock()
		if !left {
			return
		}
	}
}

// try reports everything remembered to Redis; what could not be delivered stays. What exactly has changed does not matter any more:
// all gateways forget these users afterwards.
func (l *late) try() bool {
	l.mu.Lock()
	users, tooMany := slices.Sorted(maps.Keys(l.users)), l.tooMany
	l.users, l.tooMany = nil, false
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.closed, changeTimeout)
	defer cancel()
	var err error
	if tooMany {
		if err = l.cache.Empty(ctx); err != nil {
			l.cache.failed("learn")
		}
	} else {
		what := storage.Each(users, func(id storage.UserID) storage.UserChange {
			return storage.UserChange{User: id, Forward: true, Inverse: true}
		})
		err = l.cache.deliver(ctx, what)
	}
	if err == nil {
		l.cache.cfg.Corrected(users)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.tooMany = l.tooMany || tooMany
		for _, id := range users {
			l.keep(id)
		}
	}
	l.count()
	return err == nil
}
