package accounts

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/storage"
)

// days records which users were marked on which day.
type days struct {
	mu     sync.Mutex
	marked map[storage.Day][]storage.UserID
	err    error
}

func (d *days) MarkActive(_ context.Context, users []storage.UserID, day storage.Day) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.marked[day] = append(d.marked[day], users...)
	}
	return d.err
}

func activity(t *testing.T) (a *Activity, store *days, now *time.Time) {
	t.Helper()
	store = &days{marked: map[storage.Day][]storage.UserID{}}
	at := time.Unix(1_790_000_000, 0)
	return NewActivity(store.MarkActive, slog.New(slog.DiscardHandler), func() time.Time { return at }), store, &at
}

func (d *days) want(t *testing.T, what string, day time.Time, want ...storage.UserID) {
	t.Helper()
	check.Equal(t, what+": marked", d.marked[storage.MicrosOf(day).Day()], want)
}

// There is one note for each user and day.
func TestActivityIsNotedOnceADay(t *testing.T) {
	t.Parallel()
	a, store, now := activity(t)
	for range 3 {
		a.Note(7)
		a.Note(3)
		a.write(t.Context(), time.Second)
	}
	store.want(t, "on a day", *now, 3, 7)
	*now = now.Add(24 * time.Hour)
	a.Note(7)
	a.write(t.Context(), time.Second)
	store.want(t, "on the next", *now, 7)
}

// If a note cannot be written, the next request notes it again.
func TestActivityIsNotedAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	a, store, now := activity(t)
	store.err = errors.New("shard unavailable")
	a.Note(7)
	a.write(t.Context(), time.Second)
	store.err = nil
	a.write(t.Context(), time.Second)
	store.want(t, "without a request", *now)
	a.Note(7)
	a.write(t.Context(), time.Second)
	store.want(t, "by the next", *now, 7)
}

// Notes that are waiting are written when the gateway stops.
func TestActivityIsWrittenAtTheEnd(t *testing.T) {
	t.Parallel()
	a, store, now := activity(t)
	a.Note(7)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.Run(ctx)
	store.want(t, "at the end", *now, 7)
}

// However many notes there are, only a bounded number are remembered and wait.
func TestActivityIsBounded(t *testing.T) {
	t.Parallel()
	a, store, now := activity(t)
	for id := storage.UserID(1); id <= notedMost+waitingMost; id++ {
		a.Note(id)
		must.That(t, len(a.waiting) <= waitingMost && len(a.noted) <= notedMost, "%d wait, %d are remembered", len(a.waiting), len(a.noted))
		if id%waitingMost == 0 {
			a.write(t.Context(), time.Second)
		}
	}
	check.Equal(t, "users that were marked", len(store.marked[storage.MicrosOf(*now).Day()]), notedMost+waitingMost)
	for id := storage.UserID(1); id <= 2*waitingMost; id++ {
		a.Note(-id)
	}
	check.That(t, len(a.waiting) == waitingMost, "%d wait", len(a.waiting))
}
