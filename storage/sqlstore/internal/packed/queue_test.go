package packed

import (
	"kith/storage"
	"slices"
	"testing"
	"time"
)

// The queue is bounded, holds each list once, and loses none of the lists that it has accepted.
func TestPackQueue(t *testing.T) {
	l := &Lists{}
	l.queue.running = true // another list is being packed
	for range 2 {
		for owner := range storage.UserID(100) {
			l.packSoon(Name{storage.Forward, owner})
		}
	}
	var taken []storage.UserID
	for list, ok := l.queue.next(); ok; list, ok = l.queue.next() {
		taken = append(taken, list.Owner)
		l.packSoon(list) // while it is being packed
		l.queue.rest(list, time.Hour)
		l.packSoon(list)
	}
	slices.Sort(taken)
	if len(taken) != packsWaiting || taken[0] != 0 || taken[packsWaiting-1] != packsWaiting-1 {
		t.Errorf("taken were %v", taken)
	}
	for list := range l.queue.rests {
		l.queue.rests[list] = time.Now() // the hour is over
	}
	l.queue.running, l.queue.swept = true, time.Time{}
	l.packSoon(Name{storage.Forward, 3})
	l.queue.rest(Name{storage.Forward, 99}, time.Hour)
	if n := len(l.queue.rests); n != 2 {
		t.Errorf("%d lists are remembered, want 2", n)
	}
	if list, ok := l.queue.next(); !ok || list.Owner != 3 {
		t.Errorf("taken was %v, %v", list, ok)
	}
	l.queue.close()
	l.packSoon(Name{storage.Forward, 50})
	if len(l.queue.waiting) != 0 {
		t.Error("a closed queue takes more")
	}
}
