package packed

import (
	"kith/internal/check"
	"kith/storage"
	"slices"
	"testing"
	"time"
)

// The queue is bounded, holds each list once, and loses none of the lists that it has accepted.
func TestPackQueue(t *testing.T) {
	l := New(nil)
	l.queue.running = true // another list is being packed
	for range 2 {
		for owner := range storage.UserID(100) {
			l.queue.Soon(Name{storage.Forward, owner})
		}
	}
	var taken []storage.UserID
	for lists := l.queue.next(); len(lists) > 0; lists = l.queue.next() {
		list := lists[0]
		taken = append(taken, list.Owner)
		l.queue.Soon(list) // while it is being packed
		l.Rest(list, time.Hour)
		l.queue.Soon(list)
	}
	slices.Sort(taken)
	check.That(t, len(taken) == packsWaiting && taken[0] == 0 && taken[packsWaiting-1] == packsWaiting-1, "taken were %v", taken)
	for list := range l.queue.rests {
		l.queue.rests[list] = time.Now() // the hour is over
	}
	l.queue.running, l.queue.swept = true, time.Time{}
	l.queue.Soon(Name{storage.Forward, 3})
	l.Rest(Name{storage.Forward, 99}, time.Hour)
	check.Equal(t, "lists are remembered", len(l.queue.rests), 2)
	lists := l.queue.next()
	check.That(t, len(lists) == 1 && lists[0].Owner == 3, "taken was %v", lists)
	l.queue.Close()
	l.queue.Soon(Name{storage.Forward, 50})
	check.That(t, len(l.queue.waiting) == 0, "a closed queue takes more")
}
