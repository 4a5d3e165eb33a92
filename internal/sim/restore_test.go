package sim

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/cluster"
	"kith/storage"
	"kith/storage/events"
)

// restore loses a shard and restores its backup, as docs/how-to/back-up.md says, while all else goes on. What was acknowledged since the
// backup is lost.
func (w *world) restore(s step) {
	w.mu.Lock()
	shard := s.only % w.shards.Shards()
	again := w.moving || w.one
	w.moving = w.moving || !again
	backup, acked, sessions := w.shards.Backup(shard), len(w.acked), len(w.sessions)
	w.mu.Unlock()
	if again {
		return
	}
	time.Sleep(s.late)
	for !w.alone(func() { w.restoring[shard] = true }) { // what the server executes is lost with it
		time.Sleep(100 * time.Millisecond)
	}
	w.isStoreAway(shard, time.Now().Add(s.lasts))
	time.Sleep(s.lasts)
	w.mu.Lock()
	backup()
	lost := func(r storage.Row) bool { return w.shards.ShardOf(r.Side.Owner(r.Edge.Pair())) == shard }
	w.acked = append(w.acked[:acked], slices.DeleteFunc(w.acked[acked:], lost)...)
	w.sessions = w.sessions[:sessions]
	w.lost += s.lasts
	w.restored, w.repaired = true, time.Now().Add(time.Hour)
	w.lostAt[shard] = time.Now()
	w.history.restored()
	w.renew(shard)
	w.note1("%s", s)
	w.mu.Unlock()
	time.Sleep(time.Second) // it is read already
	w.shards.Readmit(shard)
	w.mu.Lock()
	w.moving, w.restoring[shard] = false, false
	w.mu.Unlock()
	w.forgetAll()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readmitted, w.repaired = time.Now(), time.Now()
}

// forgetAll is the end of `kith shards readmit`, which is called until it succeeds.
func (w *world) forgetAll() {
	for again := true; again; {
		w.mu.Lock()
		until := later(w.away, w.storeAway)
		w.mu.Unlock()
		time.Sleep(time.Until(until))
		p := &gateway{world: w, name: "readmit"}
		p.store, p.redis = &handle{Store: w.shards, of: p}, w.server.client(p)
		bus := cluster.EventsOf(p.store, p.redis, events.NewHub(nil), nil)
		p.caches = w.OpenCaches(cluster.CacheConfig{Store: p.store, Bus: bus, Redis: p.redis, Silent: true, Registerer: prometheus.NewRegistry()})
		stop := p.caches.Attend(context.Background(), true)
		again = p.caches.ForgetAll(context.Background()) != nil
		stop()
		p.caches.Close()
		_ = p.redis.Close()
	}
}
