package faults_test

import (
	"fmt"
	"testing"

	"kith/internal/apitest"
	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// On servers that write no binlog, the realtime mode pairs what gateways tell each other: a follow whose other half nobody writes has it
// soon, also once the connection to Redis was cut. What was written before it listened stays as it is.
func TestRealtimeHearsOfWritesWithoutABinlog(t *testing.T) {
	t.Parallel()
	const users = 40
	d := prepare(t, testenv.Servers{testenv.MariaDB(t, "--skip-log-bin"), testenv.MariaDB(t, "--skip-log-bin")}, "stream", users)
	d.gateways = append(d.gateways, d.serving("gateway", "--no-replicate")) // and no other replicator
	d.gateways[0].start(t)
	gateway := d.gateways[0].now.Load().gateway
	followed := 0
	// follow writes a follow that was not there, and says whether the other half of one before is there.
	follow := func() (repaired bool) {
		t.Helper()
		from := followed % users
		to := (from + 1 + followed/users) % users
		followed++
		apitest.At(t, gateway.URL, d.token(t, int64(1+from))).Ask(fmt.Sprintf(`mutation { follow(userId: %d) { changed } }`, 1+to), nil).Whole()
		return d.total(t, "SELECT COUNT(*) FROM follower") > 0
	}
	must.That(t, !follow(), "somebody replicates")
	watch := d.command("reconcile", "realtime", "--window", "500ms")(t)
	watch.Until(t, "repairs", follow)
	must.OK(t, d.admin(t).ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err())
	for _, shard := range d.shards {
		_, err := shard.Exec("DELETE FROM follower")
		must.OK(t, err)
	}
	watch.Until(t, "repairs after a cut", follow)
	check.Equal(t, "rows of what it did not hear of", d.total(t, "SELECT COUNT(*) FROM follower WHERE from_user_id = 1 AND to_user_id = 2"), 0)
	watch.Interrupt(t)
}
