package faults_test

import (
	"testing"
	"time"

	"kith/internal/check"
	"kith/internal/must"
	"kith/internal/testenv"
)

// keeps reports whether a gateway keeps values in its memory.
func (n *node) keeps(t testing.TB) bool { return n.now.Load().metric(t, "kith_cache_enabled", "") == 1 }

// TestGatewaysWithoutRedis: a gateway without a Redis keeps values while it is the only one. By the
// time that a second gateway serves, the first has forgotten everything, and soon both hear of each other by the binlog,
// and keep values. The first goes on when the second ends.
func TestGatewaysWithoutRedis(t *testing.T) {
	t.Parallel()
	d := prepareAlone(t, "sync", 1, 20)
	first, second := d.serving("the first"), d.serving("the second")
	d.gateways = []*node{first, second}
	c := d.client(t)
	first.start(t)
	until(t, "the first keeps things", func() bool { return first.keeps(t) })
	d.sees(t, c, 0, 7)
	check.That(t, first.now.Load().metric(t, "kith_cache_entries", "") != 0, "the first has kept nothing")

	second.start(t) // returns once it serves
	check.Least(t, "times that the first has forgotten everything when the second serves", first.now.Load().metric(t, "kith_cache_forgotten_total", ""), 2)
	until(t, "both keep things", func() bool { return first.keeps(t) && second.keeps(t) })
	d.sees(t, c, 0, 7)
	d.rename(t, c, 1, 7, "User 7 #1")
	renamed := time.Now()
	for seen := d.sees(t, c, 0, 7); seen.Name != "User 7 #1"; seen = d.sees(t, c, 0, 7) {
		must.That(t, time.Since(renamed) <= reportedWithin, "the first shows %v", seen)
	}

	began := time.Now()
	second.now.Load().Interrupt(t)
	until(t, "the first keeps things again", func() bool { return first.keeps(t) })
	t.Logf("%v after the second was asked to leave, the first began to keep things", time.Since(began).Round(time.Millisecond))
	check.Equal(t, "what the first shows", d.sees(t, c, 0, 7).Name, "User 7 #1")
}

// TestLongGatewayWithoutRedisIsKilled: if a gateway is killed, the others do not know at once that
// it is gone.
func TestLongGatewayWithoutRedisIsKilled(t *testing.T) {
	testenv.Long(t)
	d := prepareAlone(t, "sync", 1, 20)
	first, second := d.serving("the first"), d.serving("the second")
	first.start(t)
	second.start(t)
	second.kill(t)
	began := time.Now()
	until(t, "the first keeps things again", func() bool { return first.keeps(t) })
	t.Logf("%v after the second was killed, the first began to keep things", time.Since(began).Round(time.Millisecond))
}

// TestReplicatorWithoutRedis: if a separate replicator propagates the rows, the only gateway follows the binlogs, and keeps things.
func TestReplicatorWithoutRedis(t *testing.T) {
	t.Parallel()
	d := prepareAlone(t, "binlog", 2, 40)
	replicator := d.replicating("kith replicate")
	replicator.start(t)
	until(t, "the replicator works", func() bool {
		return d.number(t, 0, "SELECT COUNT(*) FROM kith_checkpoints") > 0 || replicator.now.Load().Ended()
	})
	gateway := d.serving("the gateway")
	d.gateways = []*node{gateway}
	gateway.start(t)
	c := d.client(t)
	follower, idol := d.onShard(0, 3)[2], d.onShard(1, 3)[2]
	until(t, "the gateway keeps things", func() bool { return gateway.keeps(t) })
	d.sees(t, c, 0, idol)
	d.follows(t, c, 0, follower, idol)
	until(t, "the row is on the other side", func() bool {
		return d.number(t, d.shardOf(idol), "SELECT COUNT(*) FROM follower WHERE to_user_id = ?", idol) == 1
	})
	there := time.Now()
	for seen := d.sees(t, c, 0, idol); seen.FollowerCount != 1 || len(seen.followers()) != 1; seen = d.sees(t, c, 0, idol) {
		if time.Since(there) > reportedWithin {
			t.Fatalf("%s after the row was there the gateway shows %v; it keeps things: %v", reportedWithin, seen, gateway.keeps(t))
		}
	}
	replicator.now.Load().wasWell(t)
}

// TestGatewayLosesItsRedis: a gateway that is cut off from its Redis forgets everything and reads
// the tables. When Redis is back, it begins with empty caches. The other gateway continues.
func TestGatewayLosesItsRedis(t *testing.T) {
	t.Parallel()
	d, way := deployLinked(t, "sync", 1)
	c := d.client(t)
	here, other := d.gateways[0], d.gateways[1]
	here0 := here.now.Load()
	for n := range 2 {
		d.sees(t, c, n, 7)
	}
	check.Least(t, "things that are kept", here0.metric(t, "kith_cache_entries", ""), 1)
	forgotten := here0.metric(t, "kith_cache_forgotten_total", "")

	way.Cut()
	until(t, "it keeps nothing", func() bool { return !here.keeps(t) })
	check.Equal(t, "things that are kept without Redis", here0.metric(t, "kith_cache_entries", ""), 0)
	check.That(t, other.keeps(t), "the other one, which has its Redis, keeps nothing")
	d.rename(t, c, 1, 7, "User 7 #1")
	check.Equal(t, "what is shown without Redis", d.sees(t, c, 0, 7).Name, "User 7 #1")

	way.Mend(t)
	until(t, "it keeps things again", func() bool { return here.keeps(t) })
	check.Equal(t, "things with which it begins", here0.metric(t, "kith_cache_entries", ""), 0)
	check.Least(t, "times that it has forgotten everything", here0.metric(t, "kith_cache_forgotten_total", ""), forgotten+2)
	check.Equal(t, "what is shown with Redis again", d.sees(t, c, 0, 7).Name, "User 7 #1")
}
