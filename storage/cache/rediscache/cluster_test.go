package rediscache

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/epoch"
)

// A cluster works like one server: keys of all masters are filled, changed and reported.
func TestCluster(t *testing.T) {
	t.Parallel()
	var ids []storage.UserID
	for id := range storage.UserID(60) {
		ids = append(ids, id+1)
	}
	s := newSource(t, ids...)
	servers := testenv.RedisCluster(t, 3)
	a, b := connect(t, s, servers), connect(t, s, servers)
	for i, id := range ids[1:] {
		s.write(t, 1, id, storage.Following)
		[]*Cache{a, b}[i%2].Changed(t.Context(), s.both(1, id))
	}
	ids = append(ids, 404)
	for range 2 {
		a.agrees(t, s, ids...)
		a.idle(t)
	}
	calls := s.calls()
	b.agrees(t, s, ids...)
	b.idle(t)
	check.Equal(t, "calls for what is there", s.calls()-calls, 0)
	for i, server := range servers {
		check.Least(t, fmt.Sprint("keys of master ", i), admin(t, server).DBSize(t.Context()).Val(), 30)
	}

	// If one master comes back with old data, no key of any master is trusted any more, because all masters
	// share the epoch.
	rollBack := saved(t, servers[1])
	for _, id := range ids[1:60] {
		s.write(t, 1, id, storage.None)
		a.Changed(t.Context(), s.both(1, id))
	}
	before := a.epoch(t).Keys
	rollBack()
	up := func() bool {
		a.agrees(t, s, ids...)
		b.agrees(t, s, ids...)
		return a.epoch(t).Keys == b.epoch(t).Keys && a.epoch(t).Keys != before
	}
	must.Soon(t, "both are in a new epoch", up)

	// One master fails, and its users are read from the store.
	servers[2].Kill(t)
	began := time.Now()
	for range 5 {
		s.write(t, 2, 3, storage.Following)
		a.Changed(t.Context(), s.both(2, 3))
		a.agrees(t, s, ids...)
		s.write(t, 2, 3, storage.None)
		a.Changed(t.Context(), s.both(2, 3))
		a.agrees(t, s, ids...)
	}
	t.Logf("10 rounds without a master: %s", time.Since(began))
	servers[2].Restart(t)
	must.Soon(t, "all changes are reported", func() bool { return !a.Behind() })
	must.Soon(t, "Redis is used again", func() bool {
		hits := b.looked("user", "hit")
		b.agrees(t, s, ids...)
		b.idle(t)
		return b.looked("user", "hit") >= hits+50
	})
}

// A replica that takes over may lack changes, so a new epoch begins. Before that no gateway is connected
// to the replica.
func TestFailover(t *testing.T) {
	t.Parallel()
	var ids []storage.UserID
	for id := range storage.UserID(30) {
		ids = append(ids, id+1)
	}
	s := newSource(t, ids...)
	masters := testenv.RedisCluster(t, 3)
	replica := testenv.RedisClusterReplica(t, masters[0])
	client := admin(t, replica)
	runs := new(epoch.Runs)
	watched := redis.NewClient(&redis.Options{Addr: replica.Addr(), DialerRetries: 1, OnConnect: runs.OnConnect})
	defer watched.Close()
	err := watched.Ping(context.Background()).Err()
	check.Says(t, "a connection to a replica", err, "a replica, which is not read")

	a := connect(t, s, masters, func(c *Cache) { c.timeout = 300 * time.Millisecond })
	must.Soon(t, "connected", func() bool { a.agrees(t, s, ids...); return !a.Behind() })
	before := a.epoch(t).Keys
	masters[0].Kill(t)
	must.OK(t, client.Do(t.Context(), "CLUSTER", "FAILOVER", "TAKEOVER").Err())
	must.Soon(t, "a new epoch", func() bool {
		s.write(t, 1, 2, storage.Following)
		a.Changed(t.Context(), s.both(1, 2))
		a.agrees(t, s, ids...)
		return !a.Behind() && a.epoch(t).Keys != before
	})
	check.Is(t, "a connection to the new master", watched.Ping(context.Background()).Err(), nil)
}
