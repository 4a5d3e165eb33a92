package cluster

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"kith/storage"
	"kith/storage/events"
	"kith/storage/sleep"
)

// connectPeers opens the caches for a command that writes beside gateways, and has to notify them. It returns nil without a
// Redis. If the command is killed before it calls close, the gateways forget everything. The hub is told what they tell.
func (d Config) connectPeers(ctx context.Context, store Store, hub *events.Hub) (c *Caches, close func(), err error) {
	if d.Redis == "" {
		return nil, func() {}, nil
	}
	redis, err := d.OpenRedis(ctx)
	if err != nil {
		return nil, func() {}, err
	}
	c = d.OpenCaches(CacheConfig{Store: store, Bus: EventsOf(store, redis, hub, nil), Redis: redis, Silent: true, Registerer: prometheus.NewRegistry()})
	stop := c.Attend(ctx, true)
	return c, func() {
		stop()
		c.Close()
		redis.Close()
	}, nil
}

// InBackground runs a function until stop is called; stop waits for its end.
func InBackground(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); run(ctx) }()
	return func() { cancel(); <-done }
}

// ChangingAll is for commands that change more than they can report, and notify the gateways at their end. If a command does not
// reach its end, gateways forget everything.
func (d Config) ChangingAll(ctx context.Context, store Store) (end func()) {
	_, end, _ = d.connectPeers(ctx, store, events.NewHub(nil)) // notifying them fails as well, and reports it
	return end
}

// Repairs reports repaired rows to the gateways. On SQLite the relation_log does so instead of this
// process, but it does not report to Redis.
type Repairs struct {
	hub   *events.Hub // of what gateways tell each other
	peers *Caches     // nil: there are no gateways to notify
	Close func()      // ends the connection
}

// OpenRepairs connects to the gateways and the cache, to report repairs to them.
func (d Config) OpenRepairs(ctx context.Context, store Store) (*Repairs, error) {
	hub := events.NewHub(nil)
	c, close, err := d.connectPeers(ctx, store, hub)
	if w := d.way(d.Redis != "", store.HasLog(), false); w.by == byBinlogs && !w.always {
		close = attend(ctx, store) // a gateway that is alone follows no binlog
	}
	return &Repairs{hub, c, close}, err
}

// Listen waits until what gateways tell each other arrives here, at the hub that it returns, with [events.Bus.Earlier]; nil without a Redis.
func (r *Repairs) Listen(ctx context.Context) (hub *events.Hub, earlier func() int64) {
	if r.peers == nil {
		return nil, nil
	}
	hears := make(sleep.Waker, 1)
	r.peers.bus.OnHearing(func(is bool) {
		if is {
			hears.Wake()
		}
	})
	select {
	case <-hears:
	case <-ctx.Done():
	}
	return r.hub, r.peers.bus.Earlier
}

// Repaired reports what was repaired.
func (r *Repairs) Repaired(ctx context.Context, rows []storage.Row) {
	if r.peers == nil {
		return
	}
	var w storage.Change
	for _, one := range rows {
		w.AddRow(one.Side, one.Edge)
		w.AddRow(one.Side.Replica(), one.Edge)
	}
	r.peers.wrote(ctx, w)
	if !r.peers.way.rows {
		r.peers.bus.Publish(ctx, rows)
	}
}

// ForgetAll makes the gateways, and the cache that they share, forget what they know, because more
// has changed than can be reported. Without a Redis, a gateway forgets everything when it is not alone any more: then this takes
// two seconds, if there is a gateway.
func (d Config) ForgetAll(ctx context.Context, store Store) error {
	c, close, err := d.connectPeers(ctx, store, events.NewHub(nil))
	defer close()
	if c != nil {
		return c.ForgetAll(ctx)
	}
	if err == nil {
		attend(ctx, store)()
	}
	return err
}
