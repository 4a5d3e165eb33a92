package faults_test

import (
	"os"
	"path/filepath"
	"testing"

	"kith/internal/kithtest"
	"kith/internal/must"
	"kith/internal/testenv"
)

// cachedDeployment is a deployment whose gateways keep values in memory and in a Redis. Redis can
// come back with the data on its disk, new or old.
type cachedDeployment struct{ *deployment }

// deployCached starts two gateways with caches over shards, each a database on its own server, with a Redis or without. In the modes
// that need a replicator, it starts one.
func deployCached(t testing.TB, servers testenv.Servers, redis *testenv.RedisServer, mode string, users int) *cachedDeployment {
	t.Helper()
	d := &cachedDeployment{assemble(t, servers, servers.FreshDatabases(t, 1), redis, mode, users)}
	d.inRedis = redis != nil
	d.twoGateways("--no-replicate", "--max-cost", "10000000")
	if mode != "sync" {
		d.replicators = []*node{d.serving("replicator")}
	}
	d.start(t)
	d.ready(t)
	return d
}

// prepareCached prepares a cached deployment, whose nodes are started later.
func prepareCached(t testing.TB, mode string, shards, users int) *cachedDeployment {
	t.Helper()
	d := prepareAlone(t, mode, shards, users)
	d.redis, d.inRedis = testenv.Redis(t), true
	return d
}

// prepareAlone prepares a deployment without a Redis.
func prepareAlone(t testing.TB, mode string, shards, users int) *cachedDeployment {
	t.Helper()
	servers := testenv.SharedMariaDB(t, shards)
	return &cachedDeployment{assemble(t, servers, servers.FreshDatabases(t, 1), nil, mode, users)}
}

// ready waits until all gateways are notified of each other's changes, and so use their caches.
func (d *cachedDeployment) ready(t testing.TB) {
	t.Helper()
	for _, n := range d.gateways {
		l := n.now.Load()
		until(t, l.name+" keeps things in memory", func() bool { return l.metric(t, "kith_cache_enabled", "") == 1 })
	}
}

// cold starts one more gateway, which has no cache and reads the tables.
func (d *cachedDeployment) cold(t testing.TB) *life {
	t.Helper()
	args := append(d.settings(), "--jwt-secret", secret, "--no-replicate", "--max-cost", "10000000", "--cache-bytes", "0")
	if d.redis != nil {
		args = append(args, "--redis", "127.0.0.1:1") // one that never answers is not compared with the others'
	}
	g := kithtest.Start(t, kithtest.Args(args...))
	return &life{Command: g.Command, gateway: g, name: "the gateway without caches"}
}

// save makes Redis write its data to disk.
func (d *cachedDeployment) save(t testing.TB) {
	t.Helper()
	must.OK(t, d.admin(t).Save(t.Context()).Err())
}

// dump is the file that Redis loads at its start.
func (d *cachedDeployment) dump() string {
	return filepath.Join(filepath.Dir(d.redis.Socket()), "dump.rdb")
}

// copyTo copies a file over another.
func copyTo(t testing.TB, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	must.OK(t, err)
}
