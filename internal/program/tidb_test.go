package program_test

import (
	"strings"
	"testing"

	"kith/internal/check"
	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// TestSeveralShardsOnTiDB: TiDB has no log to follow, so follows write both sides themselves.
func TestSeveralShardsOnTiDB(t *testing.T) {
	testenv.OnlyOn(t, "MySQL and MariaDB have a binlog", "tidb")
	t.Parallel()
	shards := newMariaDB(t, 4)
	g := kithtest.Start(t, kithtest.Args("--demo", "--store", location(shards...)))
	_, ready := g.Get(t, "/readyz")
	check.That(t, strings.Contains(ready, `"ready":true`) && !strings.Contains(ready, "replication"), "/readyz: %s", ready)
	counted := func(table string) int64 { return total(t, "SELECT COUNT(*) FROM "+table+" WHERE type = 1", shards...) }
	before := counted("following")
	var followed struct {
		FollowMany struct{ Outcomes []struct{ Changed bool } }
	}
	dataAs(t, g, g.DemoToken(t), "mutation { followMany(userIds: [501, 502, 503, 504, 505, 506, 507, 508]) { outcomes { changed } } }", &followed)
	for _, o := range followed.FollowMany.Outcomes {
		if o.Changed {
			before++
		}
	}
	following, follower := counted("following"), counted("follower")
	check.That(t, following == before && follower == before, "following has %d rows and follower %d, want %d", following, follower, before)
}

// TestWhatTiDBCannotDo: the program says so in one line.
func TestWhatTiDBCannotDo(t *testing.T) {
	testenv.OnlyOn(t, "MySQL and MariaDB have a binlog", "tidb")
	t.Parallel()
	store := location(newMariaDB(t, 2)...)
	for _, c := range []struct{ command, says string }{
		{"serve --addr=127.0.0.1:0 --redundancy=binlog", "TiDB has no binlog: use sync or stream"},
		{"replicate", "TiDB has no binlog: use sync or stream"},
		{"reconcile incremental", "TiDB has no binlog, which the modes incremental and realtime read: use kith reconcile full"},
		{"reconcile realtime", "TiDB has no binlog, which the modes incremental and realtime read: use kith reconcile full"},
	} {
		end := kithtest.Run(t, kithtest.Args(append(strings.Fields(c.command), "--store", store)...))
		complains(t, c.command, end, 1, c.says)
	}
	kithtest.Ends(t, 0, kithtest.Args("reconcile", "full", "--window=1ms", "--store", store))
}
