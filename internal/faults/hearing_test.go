package faults_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"kith/internal/apitest"
	"kith/internal/testenv"
)

// On servers that write no binlog, the realtime mode pairs what gateways tell each other: a follow whose other half nobody writes has it
// soon, also once the connection to Redis was cut. What was written before it listened stays as it is.
func TestRealtimeHearsOfWritesWithoutABinlog(t *testing.T) {
	t.Parallel()
	const users = 400
	d := prepare(t, testenv.Servers{testenv.MariaDB(t, "--skip-log-bin"), testenv.MariaDB(t, "--skip-log-bin")}, "stream", users)
	d.gateways = append(d.gateways, d.serving("gateway", "--no-replicate")) // and no other replicator
	d.gateways[0].start(t)
	gateway := d.gateways[0].now.Load().gateway
	followed := 0
	// follow has a user follow the first one, and says whether the other half of a follow before is there.
	follow := func() (repaired bool) {
		t.Helper()
		followed++
		user := int64(1 + followed)
		apitest.At(t, gateway.URL, d.token(t, user)).Ask(`mutation { follow(userId: 1) { changed } }`, nil).Whole()
		for _, shard := range d.shards {
			var n int
			if err := shard.QueryRow("SELECT COUNT(*) FROM follower WHERE to_user_id = 1").Scan(&n); err != nil {
				t.Fatal(err)
			}
			repaired = repaired || n > 0
		}
		return repaired
	}
	if follow() {
		t.Fatal("somebody replicates")
	}
	watch := d.command("reconcile", "realtime", "--window", "500ms")(t)
	watch.Until(t, "repairs", follow)
	cut := redis.NewClient(&redis.Options{Addr: d.redis.Addr()})
	defer cut.Close()
	if err := cut.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	for _, shard := range d.shards {
		if _, err := shard.Exec("DELETE FROM follower"); err != nil {
			t.Fatal(err)
		}
	}
	watch.Until(t, "repairs after a cut", follow)
	first := d.shards[d.shardOf(1)]
	var n int
	if err := first.QueryRow("SELECT COUNT(*) FROM follower WHERE to_user_id = 1 AND from_user_id = 2").Scan(&n); err != nil || n != 0 {
		t.Errorf("what it did not hear of: %d rows, %v", n, err)
	}
	watch.Interrupt(t)
}
