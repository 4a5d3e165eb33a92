package notify

import (
	"context"
	"slices"
	"sync"

	"kith/storage"
	"kith/storage/intents"
)

// whole joins several writes: other gateways learn of the first writes only when the last one is
// done.
type whole struct {
	mu       sync.Mutex
	reported []*intents.Intent
	sent     func(then func())
	ended    bool
	failed   bool
}

type wholeKey struct{}

// Whole returns a context whose writes stay noted until end is called. It is for rows
// that are reported to other gateways once they have been propagated to their other side. If the whole is not
// complete, the part that was written is reported to all caches.
func Whole(ctx context.Context) (in context.Context, end func(complete bool)) {
	if ctx.Value(wholeKey{}) != nil {
		return ctx, func(bool) {} // it is part of another whole
	}
	w := &whole{}
	return context.WithValue(ctx, wholeKey{}, w), w.end
}

// covers reports whether a note for these users exists already.
func (w *whole) covers(users []storage.UserID) bool {
	if w == nil || len(users) > 4 { // looking up more rarely finds all
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ended && slices.ContainsFunc(w.reported, func(in *intents.Intent) bool { return in.Covers(users) })
}

// add returns false if there is no whole or it has already ended.
func (w *whole) add(intent *intents.Intent, sent func(func())) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.reported, w.sent = append(w.reported, intent), sent
	return true
}

// fail makes the whole incomplete.
func (w *whole) fail() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = true
}

func (w *whole) end(complete bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	if len(w.reported) == 0 {
		return
	}
	if !complete || w.failed {
		for _, intent := range w.reported {
			intent.Leave()
		}
		return
	}
	reported := w.reported
	w.sent(func() {
		for _, intent := range reported {
			intent.Done()
		}
	})
}
