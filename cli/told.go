package cli

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"kith/events"
	"kith/reconcile"
	"kith/storage"
	"kith/storage/intents"
	"kith/storage/notify"
	"kith/storage/rediscache"
	"kith/storage/sqlstore"
)

// beside is how a command that writes beside the gateways tells them, and the cache that
// they share.
type beside struct {
	redis *Redis
	cache *rediscache.Cache // nil: there is none
	bus   *events.Bus
	close func()

	intents *intents.Log // nil: see openIntents
}

// besideGateways connects to the Redis of the settings; nil without one. The caller closes it.
func (s *Settings) besideGateways(ctx context.Context, store *sqlstore.Store) (*beside, error) {
	if s.Redis == "" {
		return nil, nil
	}
	redis, err := s.OpenRedis(ctx)
	if err != nil {
		return nil, err
	}
	b := &beside{redis: redis, bus: EventsOf(store, redis, events.NewHub(nil), nil)}
	if s.RedisCache {
		if b.cache, err = redis.cacheOf(store, prometheus.NewRegistry()); err != nil {
			redis.Close()
			return nil, err
		}
	}
	stop := InBackground(b.bus.Run)
	b.intents = s.openIntents(store, redis, b.cache, b.bus, prometheus.NewRegistry())
	b.close = func() {
		stop()
		b.intents.Close()
		if b.cache != nil {
			b.cache.Close()
		}
		redis.Close()
	}
	return b, nil
}

// InBackground runs something until the function that it returns is called, which waits
// for its end.
func InBackground(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	return func() { cancel(); <-done }
}

// repairs tell the gateways of repaired rows. On SQLite the relation_log tells those in this
// process's place, but not Redis.
type repairs struct {
	*beside // nil: there is nobody to tell
	store   *sqlstore.Store
	open    *intents.Intent
}

// before notes whose edges are about to be repaired.
func (r *repairs) before(keys []reconcile.Key) {
	if r.beside == nil {
		return
	}
	users := make([]storage.UserID, 0, 2*len(keys))
	for _, k := range keys {
		users = append(users, k.Pair.From, k.Pair.To)
	}
	r.open = r.intents.Begin(users)
	r.open.Wait()
}

// told tells of what was repaired.
func (r *repairs) told(ctx context.Context, rows []storage.Row) {
	if r.beside == nil {
		return
	}
	var w notify.Write
	for _, one := range rows {
		w.Rows = append(w.Rows, one, storage.Row{Side: one.Side.Replica(), Edge: one.Edge})
	}
	if r.cache != nil {
		r.cache.Changed(ctx, changes(w))
	}
	if !r.store.HasLog() {
		r.bus.Publish(ctx, rows)
	}
	allTold(r.cache, r.bus)(r.open.Done)
}

func (r *repairs) end() {
	if r.beside != nil {
		r.close()
	}
}

// repairsTold connects to those who are told of repairs.
func (s *Settings) repairsTold(ctx context.Context, store *sqlstore.Store) (*repairs, error) {
	b, err := s.besideGateways(ctx, store)
	return &repairs{beside: b, store: store}, err
}

// forgetAll has the gateways, and the cache that they share, forget what they know: more
// has changed than could be told.
func (s *Settings) forgetAll(ctx context.Context, store *sqlstore.Store) error {
	b, err := s.besideGateways(ctx, store)
	if b == nil {
		return err
	}
	defer b.close()
	if b.cache != nil {
		err = b.cache.Empty(ctx)
	}
	b.bus.Send(ctx, events.Event{Kind: events.Gap})
	return err
}
