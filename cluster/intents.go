package cluster

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage"
	"kith/storage/cache/rediscache"
	"kith/storage/events"
	"kith/storage/intents"
	"kith/storage/notify"
	"kith/storage/sqlstore"
)

// openIntents makes the log that notes in Redis what is about to be changed in a store, and that
// sweeps what other processes have left behind. It returns nil if the log is not needed: without a
// Redis there are no other processes, and in the mode binlog the database's log reports changes.
// cache is nil if Redis holds no cache.
func (d Config) openIntents(store *sqlstore.Store, redis *Redis, cache *rediscache.Cache, bus *events.Bus, registerer prometheus.Registerer) *intents.Log {
	if redis.client == nil || d.Redundancy == Binlog {
		return nil
	}
	key := "kith:" + store.UUID() + ":intents"
	if cache != nil {
		key += ":redis" // processes that do not use the cache must not sweep for it
	}
	log := intents.Open(intents.Config{
		Redis: redis.client, Key: key, Metrics: intents.NewMetrics(registerer),
		Sweep: func(ctx context.Context, users []storage.UserID, done func()) {
			switch {
			case cache == nil:
			case len(users) == 0:
				if cache.Empty(ctx) != nil {
					return // the intent will be swept again
				}
			default:
				cache.Changed(ctx, changes(notify.Write{Users: users}))
			}
			corrected(bus, users)
			allReported(cache, bus)(done)
		},
	})
	bus.SendAlong(log.AddTo)
	return log
}

// allReported calls a function once all changes until now have been reported to Redis and then to the
// other gateways.
func allReported(cache *rediscache.Cache, bus *events.Bus) func(then func()) {
	if cache == nil {
		return bus.Then
	}
	return func(then func()) { cache.Then(func() { bus.Then(then) }) }
}

// corrected notifies all gateways that a shared cache had old data of users until now; of all users,
// if none are given.
func corrected(bus *events.Bus, users []storage.UserID) {
	list := make([]events.Event, len(users))
	for i, id := range users {
		list[i] = events.Event{Kind: events.Corrected, User: id}
	}
	if len(users) == 0 {
		list = []events.Event{{Kind: events.Gap}}
	}
	bus.Send(context.Background(), list...)
}

// ChangingAll notes that everything is about to be changed, for commands that notify the gateways at
// their end. If a command does not reach its end, gateways forget everything.
func (d Config) ChangingAll(ctx context.Context, store *sqlstore.Store) (end func()) {
	b, err := d.connectPeers(ctx, store)
	if b == nil || err != nil { // notifying them fails as well, and reports it
		return func() {}
	}
	intent := b.intents.Begin(nil)
	intent.Wait()
	return func() {
		intent.Done()
		b.close()
	}
}
