package localcache

import (
	"context"
	"testing"
	"testing/synctest"

	"kith/storage"
	"kith/storage/memory"
)

// slow answers once the context of a read has ended, and then takes its time.
type slow struct {
	*memory.Store
	reading, ended chan struct{}
}

func (s *slow) Profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	close(s.reading)
	<-ctx.Done()
	synctest.Wait() // until whoever closes the cache waits
	close(s.ended)
	return s.Store.Profiles(ctx, ids)
}

// Closing the cache ends a read that goes on after its request, and waits for it; whoever waits for that read gets an answer, and whoever
// comes later gets one at once.
func TestCloseEndsReadsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{memory.New(), make(chan struct{}), make(chan struct{})}
		c := New(Config{Source: store, Rows: store, Bytes: 1 << 20})
		ctx, leave := context.WithCancel(t.Context())
		go c.Users(ctx, []storage.UserID{1})
		<-store.reading
		leave() // the read is on its own now
		c.Close()
		select {
		case <-store.ended:
		default:
			t.Error("the read has not ended")
		}
		ctx, cancel := c.background.onBehalfOf(t.Context(), fillTime)
		defer cancel()
		if ctx.Err() == nil {
			t.Error("what is read after the end has no end")
		}
		ran := false
		c.background.start(func() { ran = true })
		if !ran {
			t.Error("a read that begins after the end runs in the background")
		}
	})
}
