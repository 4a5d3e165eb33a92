package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kith/internal/testenv"
	"kith/storage"
	"kith/storage/sqlstore"
)

// A request that has found a shard silent reads what is on other shards as every request does: it is kept, and counted
// once. What is on the silent shard fails at once.
func TestOneSilentShardLeavesTheOthersKept(t *testing.T) {
	t.Parallel()
	servers := []*testenv.MariaDBServer{testenv.MariaDB(t), testenv.MariaDB(t)}
	const limit = 2 * time.Second
	g := openFeedGatewayOf(t, Config{Redundancy: Sync}, sqlstore.Config{
		Location:         "mysql:" + strings.Join([]string{servers[0].CreateDatabase(t, "kith_0"), servers[1].CreateDatabase(t, "kith_1")}, ";"),
		StatementTimeout: limit,
	}, 0)
	silent, other := onTwoShards(t, g.caches.store)
	server := servers[g.caches.store.ShardOf(silent)]
	server.Freeze(t)
	defer server.Thaw(t)
	ctx := storage.RememberOutages(t.Context())
	users := func(ids ...storage.UserID) []storage.Result[storage.User] {
		return storage.UserLookups.Read(ctx, g.caches.Reader(), ids...)
	}
	if r := users(silent)[0]; r.Err == nil {
		t.Fatal("the server answers")
	}
	hits, misses := countedUsers(t, g.registry, "kith_cache_hits_total"), countedUsers(t, g.registry, "kith_cache_misses_total")
	began := time.Now()
	if r := users(silent, other); r[0].Err == nil || r[1].Err != nil || !r[1].Found {
		t.Errorf("%+v", r)
	}
	if took := time.Since(began); took >= limit {
		t.Errorf("it has waited again, %s", took)
	}
	if n := countedUsers(t, g.registry, "kith_cache_misses_total") - misses; n != 2 {
		t.Errorf("%g misses counted of 2", n)
	}
	if r := users(other)[0]; !r.Found {
		t.Errorf("%+v", r)
	}
	if n := countedUsers(t, g.registry, "kith_cache_hits_total") - hits; n != 1 {
		t.Errorf("%g hits: it is not kept", n)
	}
}

// countedUsers is the number of users that a counter of the cache shows.
func countedUsers(t *testing.T, registry *prometheus.Registry, name string) (n float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == "user" {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}
