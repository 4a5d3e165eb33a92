package cli

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"kith/events"
	"kith/storage"
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
	b.close = func() {
		stop()
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

// repairsTold returns what tells the gateways of repaired rows, until it is closed. On
// SQLite the relation_log tells them.
func (s *Settings) repairsTold(ctx context.Context, store *sqlstore.Store) (told func(context.Context, []storage.Row), closing func(), err error) {
	b, err := s.besideGateways(ctx, store)
	if b == nil {
		return func(context.Context, []storage.Row) {}, func() {}, err
	}
	return func(ctx context.Context, rows []storage.Row) {
		if b.cache != nil {
			var w notify.Write
			for _, r := range rows {
				w.Rows = append(w.Rows, r, storage.Row{Side: r.Side.Replica(), Edge: r.Edge})
			}
			b.cache.Changed(ctx, changes(w))
		}
		if !store.HasLog() {
			b.bus.Publish(ctx, rows)
		}
	}, b.close, nil
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
