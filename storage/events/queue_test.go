package events

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/storage"
)

// A bus that reaches nobody keeps few profiles: of other users it only says that something has changed.
func TestProfilesThatWaitAreBounded(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	bus := NewBus(NewHub(nil), BusConfig{Redis: client}) // nothing runs it
	change := storage.UserChange{User: 7, What: storage.Whole, Counts: storage.Counts{Version: 3}, Before: 2, Profile: &storage.User{ID: 7}}
	for range maxWhole + 10 {
		bus.Send(t.Context(), storage.Change{Users: []storage.UserChange{change}})
	}
	for i, e := range bus.queue {
		want := change
		if i >= maxWhole {
			want = storage.UserChange{User: 7, What: storage.Whole}
		}
		if *e.User != want {
			t.Fatalf("event %d: %+v, want %+v", i, *e.User, want)
		}
	}
	check.Equal(t, "events wait", len(bus.queue), maxWhole+10)
}

// Whoever asks whether messages arrive hears last what lasts, also if they begin to arrive while the first answer is on its way.
func TestTheLastThatIsHeardLasts(t *testing.T) {
	t.Parallel()
	bus := NewBus(NewHub(nil), BusConfig{})
	begun := make(chan struct{})
	var last bool
	bus.OnHearing(func(is bool) {
		if !is {
			go func() { bus.hear(true); close(begun) }()
			select {
			case <-begun:
			case <-time.After(50 * time.Millisecond): // it waits for this call, and comes after it
			}
		}
		last = is
	})
	<-begun
	check.That(t, last, "messages arrive, and the last call says that they do not")
}
