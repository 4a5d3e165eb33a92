package notify

import (
	"context"
	"slices"
	"sync"

	"kith/storage"
	"kith/storage/intents"
)

// whole is what several writes are part of: others hear of the first ones only when the
// last have been done.
type whole struct {
	mu     sync.Mutex
	told   []*intents.Intent
	sent   func(then func())
	ended  bool
	failed bool
}

type wholeKey struct{}

// Whole has what is written with the context that it returns noted until end is called: for
// rows of which other gateways are told when they have been carried to their other side. What
// is not complete is told to all caches as far as it has come.
func Whole(ctx context.Context) (in context.Context, end func(complete bool)) {
	if ctx.Value(wholeKey{}) != nil {
		return ctx, func(bool) {} // it is a part itself
	}
	w := &whole{}
	return context.WithValue(ctx, wholeKey{}, w), w.end
}

// covers tells whether it is noted already that users are about to be changed.
func (w *whole) covers(users []storage.UserID) bool {
	if w == nil || len(users) > 4 { // more are looked up in vain mostly
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ended && slices.ContainsFunc(w.told, func(in *intents.Intent) bool { return in.Covers(users) })
}

// add is false when the whole has ended already, or there is none.
func (w *whole) add(intent *intents.Intent, sent func(func())) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return false
	}
	w.told, w.sent = append(w.told, intent), sent
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
	if len(w.told) == 0 {
		return
	}
	if !complete || w.failed {
		for _, intent := range w.told {
			intent.Leave()
		}
		return
	}
	told := w.told
	w.sent(func() {
		for _, intent := range told {
			intent.Done()
		}
	})
}
