package localcache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// slow answers once the context of a read has ended, and then takes its time.
type slow struct {
	*oracle.Store
	reading, ended chan struct{}
}

func (s *slow) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	close(s.reading)
	<-ctx.Done()
	synctest.Wait() // until whoever closes the cache waits
	close(s.ended)
	return storage.ProfileLookups.Read(ctx, s.Store, ids...)
}

func (s *slow) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.profiles)
	s.Store.Bundle(ctx, b)
}

// Closing the cache ends a read that goes on after its request, and waits for it; whoever waits for that read gets an answer, and whoever
// comes later gets one at once.
func TestCloseEndsReadsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slow{oracle.New(), make(chan struct{}), make(chan struct{})}
		c := New(Config{Store: store, Bytes: 1 << 20})
		ctx, leave := context.WithCancel(t.Context())
		go storage.UserLookups.Read(ctx, c, 1)
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

// outage is a store that answers when it is told to, and then as engines do: a shard that the context remembers as
// silent is not asked, and a silent shard is remembered.
type outage struct {
	*oracle.Store
	answer chan struct{}
	silent error
}

func (s *outage) profiles(ctx context.Context, ids []storage.UserID) []storage.Result[storage.Profile] {
	<-s.answer
	remembered := storage.OutagesOf(ctx)
	if s.silent != nil {
		remembered.Note(0, s.silent)
	}
	if err := remembered.Of(0); err != nil {
		return []storage.Result[storage.Profile]{{Err: err}}
	}
	return storage.ProfileLookups.Read(ctx, s.Store, ids...)
}

func (s *outage) Bundle(ctx context.Context, b *storage.Bundle) {
	storage.ProfileLookups.Instead(ctx, b, s.profiles)
	s.Store.Bundle(ctx, b)
}

// A request that has found a shard silent does not make others fail that ask for the same once the shard is back. Those
// who wait for a read that finds a shard silent remember that, too.
func TestOutagesAreOfOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outage{Store: oracle.New(), answer: make(chan struct{})}
		store.CreateUsers(t.Context(), []storage.User{{ID: 1, Handle: "a"}})
		c := New(Config{Store: store, Bytes: 1 << 20})
		defer c.Close()
		unlucky, other := storage.RememberOutages(t.Context()), storage.RememberOutages(t.Context())
		storage.OutagesOf(unlucky).Note(0, errors.New("silent"))
		go storage.UserLookups.Read(unlucky, c, 1)
		synctest.Wait()
		answer := make(chan storage.Result[storage.User])
		go func() { answer <- storage.UserLookups.Read(other, c, 1)[0] }()
		synctest.Wait()
		close(store.answer)
		if r := <-answer; r.Err != nil || !r.Found {
			t.Errorf("refused because of another's outage: %v", r.Err)
		}
		synctest.Wait()
		store.silent = errors.New("silent")
		if r := storage.UserLookups.Read(other, c, 2)[0]; r.Err == nil || storage.OutagesOf(other).Of(0) == nil {
			t.Errorf("%v, and the outage is not remembered", r.Err)
		}
	})
}
