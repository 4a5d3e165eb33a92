package rediscache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// late remembers the changes that could not be delivered to Redis, and delivers them as soon as
// Redis can be reached. Until then this gateway does not read from Redis.
type late struct {
	cache  *Cache
	closed context.Context // done when the cache is closed

	some atomic.Bool // there are such changes

	mu         sync.Mutex
	changes    map[storage.UserID]storage.UserChange
	posts      map[storage.PostID]int64 // versions; 0: not known
	tooMany    bool                     // they were dropped: a new epoch has to begin
	delivering bool                     // a goroutine is trying to deliver them
}

// behind reports whether Redis lacks changes of this gateway.
func (l *late) behind() bool { return l.some.Load() }

// add remembers changes and makes sure that a goroutine tries to deliver them.
func (l *late) add(what []storage.UserChange, posts []storage.PostVersion) {
	l.cache.cfg.Metrics.changes.WithLabelValues("late").Add(float64(len(what) + len(posts)))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.some.Store(true)
	l.keep(what, posts)
	if !l.delivering && l.closed.Err() == nil {
		l.delivering = true
		l.cache.running.Go(l.deliver)
	}
}

// keep stores changes, for MaxLate users and posts at most.
func (l *late) keep(what []storage.UserChange, posts []storage.PostVersion) {
	if l.changes == nil {
		l.clear()
	}
	for _, w := range what {
		old, found := l.changes[w.User]
		if found {
			w = w.And(old)
		}
		if l.room(found) {
			l.changes[w.User] = w
		}
	}
	for _, p := range posts {
		version, found := l.posts[p.PostID]
		if found && min(version, p.Version) > 0 {
			p.Version = max(version, p.Version)
		} else if found {
			p.Version = 0
		}
		if l.room(found) {
			l.posts[p.PostID] = p.Version
		}
	}
	l.cache.cfg.Metrics.late.Set(float64(len(l.changes) + len(l.posts)))
}

// room reports whether one more may be kept. If not, everything is dropped.
func (l *late) room(found bool) bool {
	if !found && len(l.changes)+len(l.posts) >= l.cache.cfg.MaxLate {
		l.clear()
		l.tooMany = true
	}
	return !l.tooMany
}

func (l *late) clear() {
	l.changes, l.posts = make(map[storage.UserID]storage.UserChange), make(map[storage.PostID]int64)
}

// Pauses between attempts.
const (
	firstPause = 20 * time.Millisecond
	longPause  = time.Second
)

// deliver tries until nothing is left.
func (l *late) deliver() {
	pause := firstPause
	for sleep.For(l.closed, pause) == nil {
		if !l.try() {
			pause = min(2*pause, longPause)
			continue
		}
		pause = firstPause
		l.mu.Lock()
		if len(l.changes)+len(l.posts) == 0 && !l.tooMany {
			l.some.Store(false)
			l.delivering = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	l.delivering = false
	l.mu.Unlock()
}

// try reports everything remembered to Redis; what could not be delivered stays.
func (l *late) try() bool {
	l.mu.Lock()
	changes, kept, tooMany := l.changes, l.posts, l.tooMany
	l.clear()
	l.tooMany = false
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.closed, changeTimeout)
	defer cancel()
	what := make([]storage.UserChange, 0, len(changes))
	for _, w := range changes {
		what = append(what, w)
	}
	posts := make([]storage.PostVersion, 0, len(kept))
	for id, version := range kept {
		posts = append(posts, storage.PostVersion{PostID: id, Version: version})
	}
	var err error
	if tooMany {
		if _, err = l.cache.learnEpoch(ctx, true); err != nil {
			l.cache.failed("learn")
		}
	} else if len(what)+len(posts) > 0 {
		err = l.cache.deliver(ctx, what, posts)
	}
	if err == nil && (tooMany || len(what)+len(posts) > 0) {
		l.cache.cfg.Corrected(owners(what, posts))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.tooMany = l.tooMany || tooMany
		l.keep(what, posts)
	}
	l.cache.cfg.Metrics.late.Set(float64(len(l.changes) + len(l.posts)))
	return err == nil
}
