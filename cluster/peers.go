package cluster

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"kith/reconcile"
	"kith/storage"
	"kith/storage/cache/rediscache"
	"kith/storage/events"
	"kith/storage/intents"
	"kith/storage/notify"
	"kith/storage/sqlstore"
)

// peers are the gateways, and the cache that they share, as seen by a command that writes beside
// them and has to notify them.
type peers struct {
	redis *Redis
	cache *rediscache.Cache // nil: no cache
	bus   *events.Bus
	close func()

	intents *intents.Log // nil: see openIntents
}

// connectPeers connects to the Redis; it returns nil without one. The caller closes it.
func (d Config) connectPeers(ctx context.Context, store *sqlstore.Store) (*peers, error) {
	if d.Redis == "" {
		return nil, nil
	}
	redis, err := d.OpenRedis(ctx)
	if err != nil {
		return nil, err
	}
	b := &peers{redis: redis, bus: EventsOf(store, redis, events.NewHub(nil), nil)}
	if b.cache, err = d.cacheOf(redis, store, nil, prometheus.NewRegistry()); err != nil {
		redis.Close()
		return nil, err
	}
	stop := InBackground(b.bus.Run)
	b.intents = d.openIntents(store, redis, b.cache, b.bus, prometheus.NewRegistry())
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

// InBackground runs a function until stop is called; stop waits for its end.
func InBackground(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	return func() { cancel(); <-done }
}

// Repairs reports repaired rows to the gateways. On SQLite the relation_log does so instead of this
// process, but it does not report to Redis.
type Repairs struct {
	*peers // nil: there are no gateways to notify
	store  *sqlstore.Store
	open   *intents.Intent
}

// Before notes the users whose edges are about to be repaired.
func (r *Repairs) Before(keys []reconcile.Key) {
	if r.peers == nil {
		return
	}
	users := make([]storage.UserID, 0, 2*len(keys))
	for _, k := range keys {
		users = append(users, k.Pair.From, k.Pair.To)
	}
	r.open = r.intents.Begin(users)
	r.open.Wait()
}

// Repaired reports what was repaired.
func (r *Repairs) Repaired(ctx context.Context, rows []storage.Row) {
	if r.peers == nil {
		return
	}
	var w notify.Write
	for _, one := range rows {
		w.Rows = append(w.Rows, one, storage.Row{Side: one.Side.Replica(), Edge: one.Edge})
	}
	if r.cache != nil {
		r.cache.Changed(ctx, changes(w), changedPosts(w)...)
	}
	if !r.store.HasLog() {
		r.bus.Publish(ctx, rows)
	}
	allReported(r.cache, r.bus)(r.open.Done)
}

// Close ends the connection.
func (r *Repairs) Close() {
	if r.peers != nil {
		r.close()
	}
}

// OpenRepairs connects to the gateways and the cache, to report repairs to them.
func (d Config) OpenRepairs(ctx context.Context, store *sqlstore.Store) (*Repairs, error) {
	b, err := d.connectPeers(ctx, store)
	return &Repairs{peers: b, store: store}, err
}

// ForgetAll makes the gateways, and the cache that they share, forget what they know, because more
// has changed than can be reported. Without a Redis, a gateway forgets everything when it is not alone any more: then this takes
// two seconds, if there is a gateway.
func (d Config) ForgetAll(ctx context.Context, store *sqlstore.Store) error {
	b, err := d.connectPeers(ctx, store)
	if b == nil {
		if err == nil {
			appear(ctx, store)
		}
		return err
	}
	defer b.close()
	if b.cache != nil {
		err = b.cache.Empty(ctx)
	}
	b.bus.Send(ctx, events.Event{Kind: events.Gap})
	return err
}
