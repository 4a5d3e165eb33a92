package localcache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"kith/internal/check"
	"kith/internal/storagetest/double"
	"kith/internal/storagetest/oracle"
	"kith/storage"
)

// Closing the cache ends a read that goes on after its request, and waits for it; whoever waits for that read gets an answer, and whoever
// comes later gets one at once.
func TestCloseEndsReadsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, reading, ended := double.Of(oracle.New()), make(chan struct{}), make(chan struct{})
		double.Before(store, func(ctx context.Context, _ []storage.UserID) error {
			close(reading)
			<-ctx.Done()
			synctest.Wait() // until whoever closes the cache waits
			close(ended)
			return nil
		}, storage.ProfileLookups)
		c := New(Config{Store: store, Bytes: 1 << 20})
		ctx, leave := context.WithCancel(t.Context())
		go storage.UserLookups.Read(ctx, c, 1)
		<-reading
		leave() // the read is on its own now
		c.Close()
		select {
		case <-ended:
		default:
			t.Error("the read has not ended")
		}
		ctx, cancel := c.background.onBehalfOf(t.Context(), fillTime)
		defer cancel()
		check.That(t, ctx.Err() != nil, "what is read after the end has no end")
		ran := false
		c.background.start(func() { ran = true })
		check.That(t, ran, "a read that begins after the end runs in the background")
	})
}

// A request that has found a shard silent does not make others fail that ask for the same once the shard is back. Those
// who wait for a read that finds a shard silent remember that, too.
func TestOutagesAreOfOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, answers := double.Of(oracle.New()), make(chan struct{})
		var silent error
		double.Before(store, func(ctx context.Context, _ []storage.UserID) error { // as engines do
			<-answers
			remembered := storage.OutagesOf(ctx)
			if silent != nil {
				remembered.Note(0, silent)
			}
			return remembered.Of(0)
		}, storage.ProfileLookups)
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
		close(answers)
		r := <-answer
		check.That(t, r.Err == nil && r.Found, "refused because of another's outage: %v", r.Err)
		synctest.Wait()
		silent = errors.New("silent")
		r = storage.UserLookups.Read(other, c, 2)[0]
		check.That(t, r.Err != nil && storage.OutagesOf(other).Of(0) != nil, "%v, and the outage is not remembered", r.Err)
	})
}
