package deployment

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage"
	"kith/storage/events"
	"kith/storage/intents"
	"kith/storage/notify"
	"kith/storage/rediscache"
	"kith/storage/sqlstore"
)

// openIntents notes in Redis what is about to be changed in a store, and looks after what others
// have noted and left. It is nil where that is of no use: without a Redis there is nobody else,
// and in the mode binlog the log tells. cache is nil where none is in Redis.
func (d Config) openIntents(store *sqlstore.Store, redis *Redis, cache *rediscache.Cache, bus *events.Bus, registerer prometheus.Registerer) *intents.Log {
	if redis.client == nil || d.Redundancy == Binlog {
		return nil
	}
	key := "kith:" + store.UUID() + ":intents"
	if cache != nil {
		key += ":redis" // who does not know that cache must not look after them
	}
	log := intents.Open(intents.Config{
		Redis: redis.client, Key: key, Metrics: intents.NewMetrics(registerer),
		Sweep: func(ctx context.Context, users []storage.UserID, done func()) {
			switch {
			case cache == nil:
			case len(users) == 0:
				if cache.Empty(ctx) != nil {
					return // it comes again
				}
			default:
				cache.Changed(ctx, changes(notify.Write{Users: users}))
			}
			corrected(bus, users)
			allTold(cache, bus)(done)
		},
	})
	bus.Aboard(log.Board)
	return log
}

// allTold calls a function once Redis and then the other gateways have been told of all changes
// until now.
func allTold(cache *rediscache.Cache, bus *events.Bus) func(then func()) {
	if cache == nil {
		return bus.Then
	}
	return func(then func()) { cache.Then(func() { bus.Then(then) }) }
}

// corrected tells all gateways that what a shared cache had of users was old until now; of
// all users, if there are none.
func corrected(bus *events.Bus, users []storage.UserID) {
	told := make([]events.Event, len(users))
	for i, id := range users {
		told[i] = events.Event{Kind: events.Corrected, User: id}
	}
	if len(users) == 0 {
		told = []events.Event{{Kind: events.Gap}}
	}
	bus.Send(context.Background(), told...)
}

// ChangingAll notes that everything is about to be changed, for commands that tell of that when
// they have come to their end. If they do not, gateways forget everything.
func (d Config) ChangingAll(ctx context.Context, store *sqlstore.Store) (end func()) {
	b, err := d.connectPeers(ctx, store)
	if b == nil || err != nil { // telling fails as well, and says so
		return func() {}
	}
	intent := b.intents.Begin(nil)
	intent.Wait()
	return func() {
		intent.Done()
		b.close()
	}
}
