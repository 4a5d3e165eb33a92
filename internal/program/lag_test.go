package program_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"kith/internal/kithtest"
	"kith/internal/testenv"
)

// TestGatewaysSeeThatNobodyReplicates runs a gateway that does not replicate: its lag grows while no replicator works, and
// /readyz says so, but the gateway stays ready.
func TestGatewaysSeeThatNobodyReplicates(t *testing.T) {
	t.Parallel()
	store := kithtest.Args("--store", location(newMariaDB(t, 2)...))
	g := kithtest.Start(t, store, kithtest.Args("--no-replicate"))
	until := func(what string, grows bool) {
		t.Helper()
		g.Until(t, what, func() bool {
			r := askReadyz(t, g)
			_, metrics := g.Get(t, "/metrics")
			lags := regexp.MustCompile(`kith_replication_lag_seconds\{source="binlog [^"]+"\} (\S+)`).FindAllStringSubmatch(metrics, -1)
			if r.status != http.StatusOK || !strings.Contains(metrics, `kith_redundancy{mode="binlog"} 1`) {
				t.Fatalf("%s: %+v", what, r)
			}
			for _, lag := range lags {
				if seconds, err := strconv.ParseFloat(lag[1], 64); err != nil || (seconds > 8) != grows {
					return false
				}
			}
			return len(lags) == 2 && r.ok["replication"] != grows
		})
	}
	until("nobody replicates", true)
	replicator := kithtest.Launch(t, kithtest.Args("replicate"), store)
	until("a replicator works", false)
	replicator.Kill(t)
	until("it is dead", true)
}

// TestTheStreamsRedisIsAway kills the Redis of a gateway in the mode stream: the lag grows, and /readyz says that the stream is not
// read, until Redis is back.
func TestTheStreamsRedisIsAway(t *testing.T) {
	t.Parallel()
	redis := testenv.Redis(t)
	g := kithtest.Start(t, kithtest.Args("--store", kithtest.DemoStore(t, 1), "--redundancy", "stream", "--redis", redis.URL()))
	until := func(what string, away bool) {
		t.Helper()
		g.Until(t, what, func() bool {
			r := askReadyz(t, g)
			_, metrics := g.Get(t, "/metrics")
			lag := regexp.MustCompile(`kith_replication_lag_seconds\{source="stream"\} (\S+)`).FindStringSubmatch(metrics)
			if r.status != http.StatusOK || lag == nil {
				t.Fatalf("%s: %+v", what, r)
			}
			seconds, err := strconv.ParseFloat(lag[1], 64)
			return err == nil && (seconds > 3) == away && r.ok["replication"] != away
		})
	}
	until("the stream is read", false)
	redis.Kill(t)
	until("Redis has gone", true)
	redis.Restart(t)
	until("Redis is back", false)
}
