package accounts

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"kith/storage"
	"kith/storage/sleep"
)

// Activity notes the days on which users sign in or read, so that they count among the
// recently active. (The store itself notes changes by users and new followers.)
// A gateway writes one note for each user and day, in the background and many at a time.
type Activity struct {
	mark   func(ctx context.Context, users []storage.UserID, day storage.Day) error
	logger *slog.Logger
	now    func() time.Time

	mu      sync.RWMutex
	day     storage.Day
	noted   map[storage.UserID]struct{} // of that day
	waiting []storage.UserID            // to be written
}

const (
	// activityEvery is how often notes are written. activityTime bounds one writing, and
	// activityEnd the last one.
	activityEvery = 10 * time.Second
	activityTime  = 5 * time.Second
	activityEnd   = time.Second
	// notedMost is how many noted users are remembered, some 10 MB. If there are more, all are
	// forgotten and noted again: the store looks before it writes.
	notedMost = 200_000
	// waitingMost is how many users wait to be written. Further users are noted by a later request.
	waitingMost = 50_000
)

// NewActivity makes an Activity that writes once it runs: mark is that of a store. now is the clock.
func NewActivity(mark func(context.Context, []storage.UserID, storage.Day) error, logger *slog.Logger, now func() time.Time) *Activity {
	return &Activity{mark: mark, logger: logger, now: now, noted: map[storage.UserID]struct{}{}}
}

// Note notes that a user is active now. It does not wait.
func (a *Activity) Note(id storage.UserID) {
	day := storage.MicrosOf(a.now()).Day()
	a.mu.RLock()
	_, noted := a.noted[id]
	noted = noted && day == a.day
	a.mu.RUnlock()
	if noted {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if day != a.day || len(a.noted) >= notedMost {
		clear(a.noted)
		a.day = day // waiting users count for the new day: it has just begun
	}
	if _, noted := a.noted[id]; noted || len(a.waiting) >= waitingMost {
		return
	}
	a.noted[id] = struct{}{}
	a.waiting = append(a.waiting, id)
}

// Run writes notes until the context is done, and then those that are left.
func (a *Activity) Run(ctx context.Context) {
	for sleep.For(ctx, activityEvery) == nil {
		a.write(ctx, activityTime)
	}
	a.write(context.WithoutCancel(ctx), activityEnd)
}

// write writes all waiting notes. A later request repeats notes that fail.
func (a *Activity) write(ctx context.Context, most time.Duration) {
	a.mu.Lock()
	users, day := a.waiting, a.day
	a.waiting = nil
	a.mu.Unlock()
	if len(users) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	slices.Sort(users)
	err := a.mark(ctx, users, day)
	if err == nil {
		return
	}
	a.mu.Lock()
	for _, id := range users {
		delete(a.noted, id)
	}
	a.mu.Unlock()
	a.logger.WarnContext(ctx, "cannot save which users were active: they are noted at their next request", "users", len(users), "error", err)
}
